"""Fused attention: which steps one kernel computes without writing the scores to memory, and the causal half of its FLOPs.

A fused kernel (FlashAttention and its like) computes softmax(q kᵀ) v block by block: queries, keys and values are read once,
the result is written once, and the positions × keys matrices between stay on the chip.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from atlas.graph.graph import Graph, Node, Step

_BETWEEN = {"scale", "mask", "add", "mul", "tanh", "cast"}
"""Elementwise operations that a fused kernel applies to the scores or to their softmax."""


class Attention(StrEnum):
    """How attention is computed: in one fused kernel, or step by step with every result in memory."""

    fused = "fused"
    eager = "eager"


@dataclass(frozen=True, slots=True)
class Fused:
    """What fused kernels of a graph replace.

    Attributes:
        unwritten: ids of the steps whose results are never in memory.
        causal: ids of the two matrix products around a causal mask.
    """

    unwritten: frozenset[str] = frozenset()
    causal: frozenset[str] = frozenset()


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
    for node in nodes:
        for i, step in enumerate(node.steps):
            chain = _chain(node, i) if step.op == "softmax" else []
            inner, ids = chain[:-1], {each.id for each in chain}
            if chain and all(readers.get(each.sets, set()) <= ids for each in inner):
                unwritten |= {each.id for each in inner}
                if any(each.op == "mask" for each in chain):
                    causal |= {chain[0].id, chain[-1].id}
    return Fused(frozenset(unwritten), frozenset(causal))


def _chain(node: Node, at: int) -> list[Step]:
    """The steps from the scores' product through the softmax to the product with the values; empty if it is no attention."""
    steps = node.steps
    chain = [steps[at]]
    for step in reversed(steps[:at]):
        if step.sets == chain[0].of[0].name:
            chain.insert(0, step)
            if step.op not in _BETWEEN:
                break
    for step in steps[at + 1 :]:
        if chain[-1].sets in (operand.name for operand in step.of):
            chain.append(step)
            if step.op not in _BETWEEN:
                break
    ends = (chain[0], chain[-1])
    return chain if all(end.op == "contract" and not end.weights for end in ends) else []


def masked_flops(step: Step, flops: int, sizes: Mapping[str, int]) -> int:
    """The part of a causal product's FLOPs that the mask discards.

    Of positions × keys pairs, position t of T sees all but the T − t last keys: T (T − 1) / 2 pairs are masked.
    """
    positions, keys = sizes["positions"], sizes["keys"]
    pairs = positions * keys
    return flops // pairs * (positions * (positions - 1) // 2) if flops % pairs == 0 else 0
