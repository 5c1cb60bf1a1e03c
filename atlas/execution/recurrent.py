"""Operations that keep a state of constant size from one pass to the next, in place of keys and values.

    convolve     y[t] = Σ_j w[j] x[t − width + 1 + j], for each channel; the state is the last width − 1 inputs
    delta_rule   S[t] = e^g[t] S[t−1] + β[t] k[t] (v[t] − e^g[t] S[t−1]ᵀ k[t])ᵀ,   o[t] = S[t]ᵀ q[t]
                 (the gated delta rule of Yang, Kautz and Hatamizadeh, 2024); the state is S, keys × values for each head

Both compute in float32.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812  torch's own documentation calls it F
from torch import Tensor

from atlas.execution.named_axes import flatten, split_axes, unflatten
from atlas.execution.state import ExecutionState, Kernel
from atlas.graph.graph import Graph, Step


def convolution(step: Step, graph: Graph) -> Kernel:
    """The kernel of a causal convolution of each channel by itself. x: batch × positions × channels…; w: channels… × width."""
    place = step.sets

    def convolve(state: ExecutionState, x: Tensor, w: Tensor) -> Tensor:
        width = w.shape[-1]
        inputs = x.flatten(2).transpose(1, 2)  # batch × channels × positions
        before = state.kept(place)
        if before is None:
            before = inputs.new_zeros(*inputs.shape[:2], width - 1)
        whole = torch.cat((before, inputs), -1)
        state.keep(place, whole[..., whole.shape[-1] - (width - 1) :])
        found = F.conv1d(whole, w.reshape(-1, 1, width), groups=whole.shape[1])
        return found.transpose(1, 2).reshape(x.shape)

    return convolve


def delta_rule(step: Step, graph: Graph) -> Kernel:
    """The kernel of the gated delta rule, one position after another.

    q, k: batch × positions × heads × key width; v: batch × positions × heads × more × value width; decay (the logarithm g)
    and strength (β): as v without its last axis.
    """
    place = step.sets
    operands, result = split_axes(step, graph)
    opens = [unflatten(split, graph.dims) for split in operands]
    close = flatten(result)
    extra = sum(map(len, operands[2])) - sum(map(len, operands[0]))  # axes that values have and queries lack

    def rule(state: ExecutionState, *given: Tensor) -> Tensor:
        q, k, v, decay, strength = (open_up(x).float() for open_up, x in zip(opens, given, strict=True))
        for _ in range(extra):
            q, k = q.unsqueeze(-2), k.unsqueeze(-2)
        memory = state.kept(place)
        if memory is None:
            memory = v.new_zeros(*v[:, 0].shape[:-1], k.shape[-1], v.shape[-1])
        results = []
        for t in range(v.shape[1]):
            key, value = k[:, t].unsqueeze(-1), v[:, t].unsqueeze(-2)
            memory = memory * decay[:, t].exp()[..., None, None]
            seen = (memory * key).sum(-2, keepdim=True)
            memory = memory + key * ((value - seen) * strength[:, t][..., None, None])
            results.append((memory * q[:, t].unsqueeze(-1)).sum(-2))
        state.keep(place, memory)
        return close(torch.stack(results, 1))

    return rule
