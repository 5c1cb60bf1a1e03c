"""Attention in one call, where a description has exactly these steps: contract · scale · mask · softmax · cast · contract.

torch's `scaled_dot_product_attention` never stores the scores of all positions at once, and selects the fastest kernel.
Steps that differ in any operation, dtype or axis run one by one, as they are declared.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

import torch.nn.functional as F  # noqa: N812  torch's own documentation calls it F
from torch import Tensor

from atlas.execution.masks import window_of
from atlas.execution.state import ExecutionState, Kernel
from atlas.graph.graph import Graph, Step

NAME = "scaled_dot_product_attention"

_SEQUENCE = ("contract", "scale", "mask", "softmax", "cast", "contract")
_DTYPES = ("A", "A", "A", "F32", "A", "A")


def fusion_groups(steps: Sequence[Step], graph: Graph, kept: Collection[str]) -> list[tuple[Step, ...]]:
    """The steps in order: those that one call can compute together as one group, every other step alone.

    Args:
        kept: symbols that are read after these steps.
    """
    groups: list[tuple[Step, ...]] = []
    at = 0
    while at < len(steps):
        run = tuple(steps[at : at + len(_SEQUENCE)])
        later = {operand.name for step in steps[at + len(run) :] for operand in step.of} | set(kept)
        if not _is_attention(run, graph) or any(step.sets in later for step in run[:-1]):
            run = run[:1]
        groups.append(run)
        at += len(run)
    return groups


def _is_attention(run: tuple[Step, ...], graph: Graph) -> bool:
    """Whether these steps compute what the one call does: the same operations, dtypes, operands and axes."""
    if tuple(s.op for s in run) != _SEQUENCE or tuple(s.dtype for s in run) != _DTYPES:
        return False
    scores, weights, mixed = run[0], run[3], run[5]
    chain = all(step.of[0].name == before.sets for before, step in pairwise(run))
    if not chain or any(step.weights for step in run):
        return False
    query, key, value = scores.of[0].shape, scores.of[1].shape, mixed.of[1].shape
    if not len(query) == len(key) == len(value) == 4:
        return False
    batch, positions, heads, width = query
    _, keys, kv_heads, _ = key
    # Query heads that share a key head are consecutive, as the call expects.
    shared = heads == kv_heads or graph.products.get(heads[0], ())[:1] == kv_heads
    return (
        shared
        and isinstance(run[1].by, int | float)
        and (positions, keys) == (("positions",), ("keys",))
        and weights.over == "keys"
        and key == (batch, keys, kv_heads, width)
        and value[:3] == key[:3]
        and all(step.shape == (batch, heads, positions, keys) for step in run[:-1])
        and mixed.shape == (batch, positions, heads, value[3])
    )


def fused_attention(run: tuple[Step, ...]) -> Kernel:
    """The kernel of those six steps. Its operands are the queries, the keys and the values."""
    scale = run[1].by
    assert isinstance(scale, int | float)
    window = window_of(run[2])

    def attend(state: ExecutionState, query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        # From batch, positions, heads, width to batch, heads, positions, width; and back.
        q, k, v = (x.transpose(1, 2) for x in (query, keys, values))
        narrow = bool(window) and state.keys > window
        needs_mask = narrow or bool(state.past and state.positions > 1)
        mixed = F.scaled_dot_product_attention(
            q,
            k,
            v,
            attn_mask=~state.hidden(window) if needs_mask else None,
            is_causal=not needs_mask and not state.past and state.positions > 1,
            scale=scale,
            enable_gqa=q.shape[1] != k.shape[1],
        )
        return mixed.transpose(1, 2)

    return attend
