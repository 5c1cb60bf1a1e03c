"""Choosing the next token, and listing the likeliest ones."""

from __future__ import annotations

import torch
from torch import Tensor


def choose(
    logits: Tensor,
    temperature: float,
    top_k: int | None,
    generator: torch.Generator,
    top_p: float | None = None,
) -> int:
    """A token id: the likeliest at temperature 0, else drawn from softmax(logits / temperature).

    Args:
        logits: vocab_size, float32.
        top_k: how many of the likeliest tokens are sampled from; None for all.
        generator: on the CPU, so that a seed gives the same tokens on every device.
        top_p: of those, the fewest likeliest whose probabilities sum to at least this are sampled from (Holtzman et al.,
            2020); None for all.
    """
    if temperature == 0:
        return int(logits.argmax())
    values, ids = logits.cpu().topk(min(top_k or len(logits), len(logits)))
    # The largest is subtracted first, so that a low temperature does not overflow.
    probabilities = torch.softmax((values - values[0]).double() / temperature, 0)
    if top_p is not None:
        before = probabilities.cumsum(0) - probabilities  # the sum of all likelier ones; 0 for the first
        probabilities = probabilities * (before < top_p)
    return int(ids[torch.multinomial(probabilities, 1, generator=generator)])


def likeliest(logits: Tensor, count: int) -> list[tuple[int, float, float]]:
    """(id, logit, probability) of the likeliest tokens, the likeliest first.

    Args:
        logits: vocab_size, float32.
    """
    values, ids = logits.topk(min(count, len(logits)))
    probabilities = torch.exp(values - torch.logsumexp(logits, 0))
    return list(zip(ids.tolist(), values.tolist(), probabilities.tolist(), strict=True))
