"""Fused attention: which steps one kernel computes without writing the scores to memory, and the causal half of its FLOPs.

A fused kernel (FlashAttention and its like) computes softmax(q kᵀ) v block by block: queries, keys and values are read once,
the result is written once, and the positions × keys matrices between stay on the chip.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from atlas.analyse.caches import window_of
from atlas.graph.graph import Graph, Node, Step

_BETWEEN = {"scale", "mask", "add", "mul", "tanh", "cast", "softcap", "alibi", "plus", "clamp"}
"""Elementwise operations that a fused kernel applies to the scores or to their softmax."""

_SOFTMAX = {"softmax", "softmax_sink"}


class Attention(StrEnum):
    """How attention is computed: in one fused kernel, or step by step with every result in memory."""

    fused = "fused"
    eager = "eager"


@dataclass(frozen=True, slots=True)
class Fused:
    """What fused kernels of a graph replace.

    Attributes:
        unwritten: ids of the steps whose results are never in memory.
        causal: ids of the matrix products around a causal mask.
        windows: those of them whose mask has a window -> its positions.
    """

    unwritten: frozenset[str] = frozenset()
    causal: frozenset[str] = frozenset()
    windows: Mapping[str, int] = field(default_factory=dict)


def fused(graph: Graph) -> Fused:
    """The steps that fused attention kernels replace, in all blocks."""
    readers: dict[str, set[str]] = {}
    nodes = [node for block in graph.blocks for node in block.nodes]
    for node in nodes:
        for step in node.steps:
            for operand in step.of:
                readers.setdefault(operand.name, set()).add(step.id)
    unwritten: set[str] = set()
    causal: set[str] = set()
    windows: dict[str, int] = {}
    for node in nodes:
        for i, step in enumerate(node.steps):
            scores, inner, last = _attention(node, i) if step.op in _SOFTMAX else ([], [], None)
            if last is None:
                continue
            ids = {each.id for each in (*scores, *inner, last)}
            if all(readers.get(each.sets, set()) <= ids for each in (*scores, *inner)):
                unwritten |= ids - {last.id}
                masks = [each for each in inner if each.op == "mask"]
                products = {each.id for each in (*scores, last)} if masks else set()
                causal |= products
                for window in filter(None, map(window_of, masks)):
                    windows |= dict.fromkeys(products, window)
    return Fused(frozenset(unwritten), frozenset(causal), windows)


def _attention(node: Node, at: int) -> tuple[list[Step], list[Step], Step | None]:
    """The products that are the scores (their sum, if several), the steps up to the values, and the product with the values.

    The last one is None if the softmax at this place belongs to no attention.
    """
    steps = node.steps
    scores: list[Step] = []
    inner = [steps[at]]
    wanted = {steps[at].of[0].name}
    for step in reversed(steps[:at]):
        if step.sets not in wanted:
            continue
        if step.op in _BETWEEN:
            inner.insert(0, step)
            wanted = wanted - {step.sets} | {operand.name for operand in step.of if operand.weight is None}
        elif step.op == "contract" and not step.weights:
            scores.insert(0, step)
            wanted -= {step.sets}
    for step in steps[at + 1 :]:
        if inner[-1].sets in (operand.name for operand in step.of):
            if step.op not in _BETWEEN:
                known = step.op == "contract" and not step.weights and bool(scores)
                return scores, inner, step if known else None
            inner.append(step)
    return scores, inner, None


def masked_flops(step: Step, flops: int, sizes: Mapping[str, int], window: int | None = None) -> int:
    """The part of a causal product's FLOPs that the mask discards.

    Of positions × keys pairs, position t of T, with S keys, sees S − T + t + 1 keys, and with a window of w at most w of
    them. Without one, T (T − 1) / 2 pairs are masked.
    """
    positions, keys = sizes["positions"], sizes["keys"]
    pairs = positions * keys
    past = keys - positions
    seen = positions * past + positions * (positions + 1) // 2
    if window is not None and keys > window:
        whole = max(0, min(positions, window - past))  # positions that see all that is before them
        seen = whole * past + whole * (whole + 1) // 2 + (positions - whole) * window
    return flops // pairs * (pairs - seen) if flops % pairs == 0 else 0
