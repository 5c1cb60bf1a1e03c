"""What attention may see, and how distance counts.

mask           y = −∞ where a key is after the position, or, with a window w, at s ≤ t − w
alibi          y = x + m · s for the key at s, with a slope m for each head (Press, Smith and Lewis, 2022)
softmax_sink   y = exp(x) / (exp(sink) + Σ exp(x))
"""

from __future__ import annotations

import torch
from torch import Tensor

from atlas.errors import SpecError
from atlas.execution.named_axes import broadcast
from atlas.execution.state import ExecutionState, Kernel
from atlas.grammar.shapes import atoms
from atlas.graph.graph import Graph, Step


def window_of(step: Step) -> int:
    """The window of a `mask` or `cache` step; 0 if it has none.

    Raises:
        SpecError: it is not a whole number.
    """
    if step.by is None:
        return 0
    if isinstance(step.by, str) or step.by != int(step.by) or step.by < 0:
        raise SpecError(f"{step.id}: {step.op} by {step.by!r}: expected a whole number of positions")
    return int(step.by)


def mask(step: Step, graph: Graph) -> Kernel:
    spread = broadcast([["positions"], ["keys"]], atoms(step.shape), graph.dims)
    window = window_of(step)
    return lambda state, x: x.masked_fill(spread(state.hidden(window)), -torch.inf)


def slopes(heads: int, most: float) -> Tensor:
    """ALiBi's slope of each head, float32: powers of 2^(−most / n) for n heads.

    For a number of heads n that is no power of two, the first ones are those of the next smaller power, and the others every
    second one of the next larger power.

    Args:
        most: the exponent of the steepest-falling head: 8 in the paper.
    """
    below = 2 ** (heads.bit_length() - 1)
    first: Tensor = 2.0 ** (-torch.arange(1, below + 1).float() * most / below)
    if below == heads:
        return first
    more = 2.0 ** (-torch.arange(1, 2 * below + 1, 2).float() * most / (2 * below))
    return torch.cat((first, more[: heads - below]))


def alibi(step: Step, graph: Graph) -> Kernel:
    heads = step.over or ""
    if isinstance(step.by, bool | str) or step.by is None or not step.by > 0:
        raise SpecError(f"{step.id}: alibi by {step.by!r}: expected a positive number")
    by_head = slopes(graph.dims[heads], float(step.by))
    target = atoms(step.shape)
    spread_heads = broadcast([[heads]], target, graph.dims)
    spread_keys = broadcast([["keys"]], target, graph.dims)

    def bias(state: ExecutionState, x: Tensor) -> Tensor:
        distance = torch.arange(state.keys, dtype=torch.float32, device=x.device)
        return x + (spread_heads(by_head.to(x.device)) * spread_keys(distance)).to(x.dtype)

    return bias


def softmax_sink(step: Step, graph: Graph) -> Kernel:
    target = atoms(step.shape)
    spread = broadcast([list(group) for group in step.of[1].shape], target, graph.dims)
    along = target.index(step.over or "")

    def softmax(state: ExecutionState, x: Tensor, sinks: Tensor) -> Tensor:
        shape = list(x.shape)
        shape[along] = 1
        sink = spread(sinks).to(x.dtype)
        sink = sink.reshape([1] * (x.dim() - sink.dim()) + list(sink.shape)).expand(shape)
        weights = torch.softmax(torch.cat((x, sink), along), along)
        return weights.narrow(along, 0, x.shape[along])

    return softmax
