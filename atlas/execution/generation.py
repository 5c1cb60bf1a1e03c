"""The tokens after the prompt, one forward pass each, up to the first that ends the text."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from atlas.errors import RunError
from atlas.execution import sampling
from atlas.execution.options import Options
from atlas.execution.prompt import Prompt, TextStream
from atlas.execution.runner import OnProgress, Runner
from atlas.execution.state import KVCache

OnText = Callable[[str], None]
"""Receives the generated text piece by piece; without a tokenizer the ids, with commas between them."""


def generate(
    runner: Runner,
    logits: Tensor,
    prompt: Prompt,
    options: Options,
    cache: KVCache | None,
    stream: TextStream,
    on_progress: OnProgress,
    on_text: OnText | None,
) -> list[int]:
    """The generated ids.

    Args:
        logits: of the prompt's last position: vocab_size, float32.
        cache: has the prompt's keys and values; needed for more than one token.
        stream: decodes the ids.

    Raises:
        RunError: a pass failed, or its logits are not finite.
    """
    send = on_text or (lambda text: None)
    generator = torch.Generator().manual_seed(options.seed)
    ids: list[int] = []
    while len(ids) < options.max_new_tokens:
        on_progress("tokens", len(ids), options.max_new_tokens)
        if ids:
            past = len(prompt.ids) + len(ids) - 1
            logits = runner(torch.tensor([ids[-1:]]), past=past, cache=cache)[0, -1]
            if not logits.isfinite().all():
                raise RunError(
                    f"after {len(ids)} tokens the logits are not finite", hint="try --dtype float32"
                )
        ids.append(sampling.choose(logits, options.temperature, options.top_k, generator, options.top_p))
        text = stream.push(ids[-1])
        if stream.text is None:
            text = f", {ids[-1]}" if len(ids) > 1 else str(ids[-1])
        if text:
            send(text)
        if ids[-1] in prompt.eos:
            break
    if rest := stream.end():
        send(rest)
    return ids
