"""One run: the weights, the prompt's pass observed, the tokens after it, and what of all that was confirmed.

    from atlas.execution.session import run
    result = run(graph, Options(prompt="The capital of France is"))

Nothing is printed here. Whoever may have no torch calls `atlas.execution.require_extra` before importing this.
"""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace

import torch
from torch import Tensor

from atlas.analyse.trace import Pass
from atlas.errors import RunError
from atlas.execution import devices, fused_attention, limits, prompt, sampling
from atlas.execution.checkpoint_weights import CheckpointWeights
from atlas.execution.interrupt import Check, interruptible
from atlas.execution.observer import Observer
from atlas.execution.options import Options
from atlas.execution.random_weights import RandomWeights
from atlas.execution.result import Generated, Logits, NextToken, Result, Seconds
from atlas.execution.runner import OnProgress, Runner
from atlas.execution.state import KVCache
from atlas.execution.torch_errors import is_out_of_memory, run_error
from atlas.execution.weights import ResidentWeights, fits_in_memory
from atlas.graph.graph import Graph
from atlas.resolution.model import require_described


def run(graph: Graph, options: Options, progress: OnProgress | None = None) -> Result:
    """A real forward pass, and generation if asked for.

    Args:
        progress: told of the `layers` of the prompt's pass and of the `tokens` after it, as each is begun.

    Raises:
        NotDescribed: the model computes something that is not described, or that cannot be run yet.
        UsageError: an option is out of range, or the prompt cannot be made into ids.
        CheckpointError: the weights or the tokenizer cannot be read.
        ConfigError: the configuration states what no model can be.
        RunError: a step failed.
        KeyboardInterrupt: at once, although torch may be computing until its next step ends.
    """
    require_described(graph.model, "run")
    options.check()
    try:
        with closing(prompt.Reader(options)) as reader:
            return _run(graph, options, reader, progress)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise run_error(graph.model.id, error) from error


def _run(graph: Graph, options: Options, reader: prompt.Reader, progress: OnProgress | None) -> Result:
    started = time.perf_counter()
    device = devices.choose(options.device)
    dtype = options.dtype or (graph.model.dtype if graph.model.dtype in devices.FLOATS else "BF16")
    limits.require_possible(graph, devices.memory_bytes(device), devices.float_dtype(dtype).itemsize)
    weights = _weights(graph, options, device)
    given = reader.read(graph.dims["vocab_size"])
    code = devices.CODES[weights.dtype]
    graph = replace(graph, model=replace(graph.model, dtype=code))
    length = len(given.ids) + max(options.max_new_tokens - 1, 0)  # the last token is not read again
    several = length > len(given.ids)
    runner = Runner(
        graph,
        ResidentWeights(weights) if several and fits_in_memory(graph, weights.dtype, device) else weights,
        dtype=weights.dtype,
        device=device,
        fuse=not options.trace,
    )
    observer = Observer(graph, Pass(batch=1, positions=len(given.ids), past=0))
    cache = KVCache(length) if several else None

    loaded = time.perf_counter()
    largest = max(graph.size(weight) for weight in graph.weights.values())

    def passes(check: Check) -> tuple[Logits, Tensor, list[int], float]:
        """The prompt's logits, those of its last position, the ids after it, and when the prompt was read."""

        def told(what: str, done: int, of: int) -> None:
            check()
            if progress:
                progress(what, done, of)

        with devices.threads_for(largest, device):
            logits = runner(torch.tensor([given.ids]), cache=cache, observe=observer, on_progress=told)
            finite = bool(logits.isfinite().all())
            seen = Logits(tuple(logits.shape), devices.CODES[logits.dtype], finite)
            last = logits[0, -1].clone()  # vocab_size; the others are let go
            del logits
            prefilled = time.perf_counter()
            ids = _generate(runner, last, options, given, cache, told) if finite else []
        return seen, last, ids, prefilled

    seen, last, ids, prefilled = interruptible(passes)
    decoded = time.perf_counter()
    likeliest = sampling.likeliest(last, options.show) if seen.finite else []
    texts = given.texts([[id] for id, _, _ in likeliest], special=True)

    return Result(
        model=graph.model.id,
        weights="random" if options.weights is None else "checkpoint",
        source=weights.source,
        device=str(device),
        dtype=code,
        kernel=fused_attention.NAME if runner.fused else "as declared",
        tokenizer=given.by,
        prompt_ids=given.ids,
        logits=seen,
        confirmed=observer.confirmed and seen.finite,
        steps=observer.steps,
        next_tokens=tuple(
            NextToken(id, text, logit, probability)
            for (id, logit, probability), text in zip(likeliest, texts, strict=True)
        ),
        generated=Generated(tuple(ids), given.text(ids, special=options.special)),
        seconds=Seconds(loaded - started, prefilled - loaded, decoded - prefilled),
        peak_memory_bytes=devices.peak_memory_bytes(),
        notes=(*weights.notes, *given.notes, *_length_note(graph, len(given.ids) + options.max_new_tokens)),
    )


def _weights(graph: Graph, options: Options, device: torch.device) -> CheckpointWeights | RandomWeights:
    dtype = devices.float_dtype(options.dtype) if options.dtype else None
    if options.weights is not None:
        return CheckpointWeights(graph, options.weights, device=device, dtype=dtype)
    dtype = dtype or devices.float_dtype(graph.model.dtype)
    return RandomWeights(graph, dtype=dtype, device=device, seed=options.seed)


def _generate(
    runner: Runner,
    logits: Tensor,
    options: Options,
    given: prompt.Prompt,
    cache: KVCache | None,
    progress: OnProgress,
) -> list[int]:
    """The tokens after the prompt, to the first that ends a text.

    Args:
        logits: of the prompt's last position: vocab_size, float32.
        cache: holds the prompt's keys and values; needed for more than one token.
    """
    generator = torch.Generator().manual_seed(options.seed)
    ids: list[int] = []
    while len(ids) < options.max_new_tokens:
        progress("tokens", len(ids), options.max_new_tokens)
        if ids:
            past = len(given.ids) + len(ids) - 1
            logits = runner(torch.tensor([ids[-1:]]), past=past, cache=cache)[0, -1]
            if not logits.isfinite().all():
                raise RunError(
                    f"after {len(ids)} tokens the logits are not finite", hint="try --dtype float32"
                )
        ids.append(sampling.choose(logits, options.temperature, options.top_k, generator))
        if ids[-1] in given.eos:
            break
    return ids


def _length_note(graph: Graph, positions: int) -> tuple[str, ...]:
    own = graph.model.context_length
    if own is None or positions <= own:
        return ()
    return (f"{positions:,} positions are more than the {own:,} the model was made for",)
