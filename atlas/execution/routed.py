"""Products with weights that are selected for each token: routed experts.

    contract   y[t, c] = W[e] x[t]  or  W[e] x[t, c],  e = chosen[t, c]
    add        y[t, c] = x[t, c] + b[e]

Visits are grouped by expert, so that there is one product for each expert that any token visits, and an expert's weights
are read only if one does.
"""

from __future__ import annotations

from typing import Protocol

import torch
import torch.nn.functional as F  # noqa: N812  torch's own documentation calls it F
from torch import Tensor

from atlas.errors import SpecError
from atlas.execution.state import ExecutionState, Kernel
from atlas.grammar.shapes import render
from atlas.graph.graph import Graph, Step


class Experts(Protocol):
    """The weights of all experts, of which one can be read at a time: a tensor, or a reader of files."""

    def __getitem__(self, expert: int) -> Tensor: ...


def routed_product(step: Step, graph: Graph) -> Kernel:
    """The kernel of a `contract` whose matrix is selected for each token.

    Raises:
        SpecError: the matrix is not [experts, out, in], or the shapes are not those of a product for each visit.
    """
    x, w = step.of
    weight = w.weight
    if weight is None or len(weight.shape) != 3 or weight.shape[0] != (w.instead_of,):
        raise SpecError(
            f"{step.id}: selects from ({render(w.shape)}), expected a weight of experts, out and in"
        )
    visits = len(w.shape) - 2  # batch, positions and the chosen ones
    spreads = len(x.shape) == visits  # the same vector for each of its visits
    if x.shape[-1] != weight.shape[2] or step.shape[-1] != weight.shape[1] or len(step.shape) != visits + 1:
        raise SpecError(
            f"{step.id}: cannot multiply ({render(x.shape)}) with ({render(weight.shape)}) for each visit"
        )

    def product(state: ExecutionState, x: Tensor, w: Experts, chosen: Tensor) -> Tensor:
        each = chosen.shape[-1]
        flat = chosen.reshape(-1)
        order = flat.argsort(stable=True)
        rows = x.reshape(-1, x.shape[-1])[order // each if spreads else order]
        experts, counts = torch.unique_consecutive(flat[order], return_counts=True)
        parts = [
            F.linear(part, w[int(expert)])
            for expert, part in zip(experts.tolist(), torch.split(rows, counts.tolist()), strict=True)
        ]
        found = torch.cat(parts)
        result = torch.empty_like(found)
        result[order] = found
        return result.reshape(*chosen.shape, -1)

    return product


def routed_add(step: Step, graph: Graph) -> Kernel:
    """The kernel of an `add` whose second operand is selected for each token.

    Raises:
        SpecError: it is not one vector for each expert.
    """
    weight = step.of[1].weight
    if weight is None or len(weight.shape) != 2 or weight.shape[0] != (step.of[1].instead_of,):
        raise SpecError(
            f"{step.id}: selects from ({render(step.of[1].shape)}), expected a vector for each expert"
        )

    def add(state: ExecutionState, x: Tensor, b: Experts, chosen: Tensor) -> Tensor:
        experts, places = torch.unique(chosen, return_inverse=True)
        return x + torch.stack([b[int(expert)] for expert in experts.tolist()])[places]

    return add
