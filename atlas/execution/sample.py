"""The choice of the next token, and the likeliest ones."""

from __future__ import annotations

import torch
from torch import Tensor


def choose(logits: Tensor, temperature: float, top_k: int | None, generator: torch.Generator) -> int:
    """An id: the likeliest at temperature 0, else one drawn from softmax(logits / temperature).

    Args:
        logits: vocab_size, float32.
        top_k: how many of the likeliest are drawn from; None for all.
        generator: on the CPU, so that a seed means the same on every device.
    """
    if temperature == 0:
        return int(logits.argmax())
    values, ids = logits.cpu().topk(min(top_k or len(logits), len(logits)))
    # The largest is taken away first: a low temperature must not overflow.
    chances = torch.softmax((values - values[0]).double() / temperature, 0)
    return int(ids[torch.multinomial(chances, 1, generator=generator)])


def likeliest(logits: Tensor, count: int) -> list[tuple[int, float, float]]:
    """(id, logit, probability among all) of the likeliest tokens, the likeliest first.

    Args:
        logits: vocab_size, float32.
    """
    values, ids = logits.topk(min(count, len(logits)))
    chances = torch.exp(values - torch.logsumexp(logits, 0))
    return list(zip(ids.tolist(), values.tolist(), chances.tolist(), strict=True))
