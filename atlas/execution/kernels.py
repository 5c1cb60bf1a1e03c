"""What each operation computes: a bound step -> a closure over plain torch, compiled once.

Axis names are resolved to dimensions when a step is compiled. A closure receives the execution state and the step's
operands. No operation depends on a model; its equation is all that it means:

    contract   y = Σ over the axes the result lacks of x · w      take      y = table[indices]
    add, mul   y = a + b, y = a · b, broadcast by name             scale     y = by · x
    rms        y = x / √(mean(x²) + by)   (Zhang, Sennrich 2019)  activate  silu(x) = x · σ(x)   (Elfwing et al., 2018)
    softmax    y = exp(x) / Σ exp(x)                              cache     earlier positions, then these
    cast       x in the result's dtype                            plus      y = x + by
    clamp      y = min(max(x, −by), by)                           clamp_max y = min(x, by)
    softcap    y = by · tanh(x / by)                              normalize y = x / (Σ x + by)
    standardize  y = (x − mean(x)) / √(var(x) + by)               l2norm    y = x / √(Σ x² + by)
    sigmoid, tanh, softplus, exp, negate, subtract, sum; top_k: the indices of the largest; pick: the values at indices;
    rename, regroup: the same values under other axes; of_layer: the layer's own entry; scale_rounded: `by` rounded to the operand's dtype first;
    best_groups: −∞ for the experts of groups that are not among the best, by the sum of each group's best ones

`rotate` is in `rotary`, masks and biases of attention in `masks`, selected weights in `routed`, states in `recurrent`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F  # noqa: N812  torch's own documentation calls it F
from torch import Tensor

from atlas.errors import NotDescribed, SpecError
from atlas.execution.devices import FLOATS
from atlas.execution.masks import alibi, mask, softmax_sink
from atlas.execution.named_axes import broadcast, flatten, split_axes, unflatten
from atlas.execution.recurrent import convolution, delta_rule
from atlas.execution.rotary import rotation
from atlas.execution.routed import routed_add, routed_product
from atlas.execution.state import ExecutionState, Kernel
from atlas.execution.weight_layout import AxisOrder
from atlas.grammar import shapes
from atlas.grammar.shapes import Shape, atoms
from atlas.graph.graph import Graph, Step

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "silu": F.silu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "relu": F.relu,
    "relu_squared": lambda x: F.relu(x).square(),
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
}
"""The activations by the names that descriptions use (Hendrycks and Gimpel, 2016; So et al., 2021)."""


def compile_step(step: Step, graph: Graph, order: AxisOrder, dtype: torch.dtype) -> Kernel:
    """The closure that computes a step.

    Arithmetic with a declared dtype (`computed_in`) is done in that dtype, and its result is cast where the step declares
    another one. Every other result has the dtype that its operands give it, so that an observed dtype is evidence.

    Args:
        order: the stored order of the operands' axes, where it differs from the vocabulary's.
        dtype: of the activations; `A` in a description.

    Raises:
        SpecError, NotDescribed: the step cannot be run as it is written.
    """
    if step.op == "cast":
        kind = _torch(step, step.dtype, dtype)
        return lambda state, x: x.to(kind)
    selected = any(operand.chosen for operand in step.of) and step.op != "pick"
    if selected and step.op not in ROUTED:
        raise NotDescribed(
            f"{step.id}: {step.op} of weights that are selected for each token cannot be run yet"
        )
    kernel = ROUTED[step.op](step, graph) if selected else BUILDERS[step.op](step, graph, order)
    if selected and step.computed_in != "A":
        raise NotDescribed(f"{step.id}: selected weights are computed in the activations' dtype only")
    if step.computed_in == "A":
        return kernel
    inside = _torch(step, step.computed_in, dtype)

    def in_its_own_dtype(state: ExecutionState, *operands: Tensor) -> Tensor:
        return kernel(state, *(x.to(inside) if x.is_floating_point() else x for x in operands))

    if step.dtype == step.computed_in:
        return in_its_own_dtype
    result = _torch(step, step.dtype, dtype)
    return lambda state, *operands: in_its_own_dtype(state, *operands).to(result)


def _torch(step: Step, code: str, activations: torch.dtype) -> torch.dtype:
    if code != "A" and code not in FLOATS:
        raise SpecError(f"{step.id}: cannot compute in {code}; expected one of A, {', '.join(FLOATS)}")
    return activations if code == "A" else FLOATS[code]


def _contract(step: Step, graph: Graph, order: AxisOrder) -> Kernel:
    linear = _linear(step, graph)
    if linear is not None:
        return linear
    operands, result = split_axes(step, graph)
    axes = list(dict.fromkeys(axis for split in (*operands, result) for group in split for axis in group))
    letters = dict(zip(axes, "abcdefghijklmnopqrstuvwxyz", strict=False))
    left, right, out = (
        "".join(letters[axis] for group in split for axis in group) for split in (*operands, result)
    )
    equation = f"{left},{right}->{out}"
    open_left, open_right = (unflatten(split, graph.dims) for split in operands)
    close = flatten(result)
    return lambda state, x, y: close(torch.einsum(equation, open_left(x), open_right(y)))


def _linear(step: Step, graph: Graph) -> Kernel | None:
    """A product of an activation's last axes and a matrix [out, in], as torch's `linear`; None for any other product."""
    x, matrix = step.of
    if matrix.weight is None or len(matrix.shape) != 2:
        return None
    rows, columns = map(list, matrix.shape)
    last = next((n for n in range(1, len(x.shape)) if atoms(x.shape[-n:]) == columns), None)
    if last is None:
        return None
    lead = x.shape[:-last]
    out = step.shape[len(lead) :]
    if step.shape[: len(lead)] != lead or atoms(out) != rows:
        return None
    sizes = [shapes.size(group, graph.dims) for group in out]
    if len(sizes) == 1:
        return lambda state, x, w: F.linear(x.flatten(-last), w)
    return lambda state, x, w: torch.unflatten(F.linear(x.flatten(-last), w), -1, sizes)


def _broadcasting(compute: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Step, Graph, AxisOrder], Kernel]:
    """The builder of an elementwise operation on two operands, broadcast to the result's axes by name."""

    def build(step: Step, graph: Graph, order: AxisOrder) -> Kernel:
        operands, result = split_axes(step, graph)
        target = [axis for group in result for axis in group]
        left, right = (broadcast(split, target, graph.dims) for split in operands)
        close = flatten(result)
        return lambda state, a, b: close(compute(left(a), right(b)))

    return build


def _elementwise(compute: Callable[[Tensor], Tensor]) -> Callable[[Step, Graph, AxisOrder], Kernel]:
    return lambda step, graph, order: lambda state, x: compute(x)


def _rename(step: Step, graph: Graph, order: AxisOrder) -> Kernel:
    operands, result = split_axes(step, graph)
    open_up, close = unflatten(operands[0], graph.dims), flatten(result)
    return lambda state, x: close(open_up(x))


def _take(step: Step, graph: Graph, order: AxisOrder) -> Kernel:
    return lambda state, indices, table: table[indices]


def _scale(step: Step, graph: Graph, order: AxisOrder) -> Kernel:
    by = _number(step)
    return lambda state, x: x * by


def _activate(step: Step, graph: Graph, order: AxisOrder) -> Kernel:
    if step.by not in ACTIVATIONS:
        raise SpecError(
            f"{step.id}: unknown activation {step.by!r}; expected one of {', '.join(ACTIVATIONS)}"
        )
    compute = ACTIVATIONS[str(step.by)]
    return lambda state, x: compute(x)


def _rms(step: Step, graph: Graph, order: AxisOrder) -> Kernel:
    along, epsilon = _dimension(step, step.over, step.shape), _number(step)
    return lambda state, x: x * torch.rsqrt(x.pow(2).mean(along, keepdim=True) + epsilon)


def _softmax(step: Step, graph: Graph, order: AxisOrder) -> Kernel:
    along = _dimension(step, step.over, step.shape)
    return lambda state, x: torch.softmax(x, along)


def _by_number(compute: Callable[[Tensor, float], Tensor]) -> Callable[[Step, Graph, AxisOrder], Kernel]:
    """The builder of an elementwise operation with a number."""

    def build(step: Step, graph: Graph, order: AxisOrder) -> Kernel:
        by = _number(step)
        return lambda state, x: compute(x, by)

    return build


def _along(compute: Callable[[Tensor, int, float], Tensor]) -> Callable[[Step, Graph, AxisOrder], Kernel]:
    """The builder of an operation along an axis with a small number, 0 if there is none."""

    def build(step: Step, graph: Graph, order: AxisOrder) -> Kernel:
        along = _dimension(step, step.over, step.shape)
        by = 0.0 if step.by is None else _number(step)
        return lambda state, x: compute(x, along, by)

    return build


def _standardize(x: Tensor, along: int, epsilon: float) -> Tensor:
    centred = x - x.mean(along, keepdim=True)
    return centred * torch.rsqrt(centred.pow(2).mean(along, keepdim=True) + epsilon)


def _best_groups(step: Step, graph: Graph, order: AxisOrder) -> Kernel:
    along, best = _dimension(step, step.over, step.shape), int(_number(step))
    groups, kept = (graph.dims.get(axis) for axis in GROUPS)
    if groups is None or kept is None or graph.dims[step.over or ""] % groups:
        raise SpecError(
            f"{step.id}: {step.over} cannot be divided into groups; expected the axes {', '.join(GROUPS)}"
        )

    def mask_others(state: ExecutionState, x: Tensor) -> Tensor:
        split = torch.unflatten(x.movedim(along, -1), -1, (groups, -1))
        score = split.topk(best, -1).values.sum(-1)
        chosen = torch.zeros_like(score, dtype=torch.bool).scatter_(-1, score.topk(kept, -1).indices, True)
        return split.masked_fill(~chosen.unsqueeze(-1), -torch.inf).flatten(-2).movedim(-1, along)

    return mask_others


GROUPS = ("n_expert_groups", "n_groups_per_token")
"""The axes that say how many groups of experts there are, and of how many a token may visit experts."""


def _mixer_share(step: Step, graph: Graph, order: AxisOrder) -> Kernel:
    """Sparse mixer (Liu, Gao and Chen, 2023), at inference.

    The weight of the j-th chosen expert c is its softmax over the experts that are not chosen before it and whose score x is
    near its own: (x_c − x) / max(|x|, x_c) ≤ 2 · by.
    """
    by = 2 * _number(step)

    def share(state: ExecutionState, scores: Tensor, chosen: Tensor) -> Tensor:
        left, found = scores, []
        for each in torch.split(chosen, 1, -1):
            best = left.gather(-1, each)
            far = (best - left) / torch.maximum(scores.abs(), best) > by
            found.append(torch.softmax(left.masked_fill(far, -torch.inf), -1).gather(-1, each))
            left = left.scatter(-1, each, -torch.inf)
        return torch.cat(found, -1)

    return share


def _sum(step: Step, graph: Graph, order: AxisOrder) -> Kernel:
    along = _dimension(step, step.over, step.of[0].shape)
    return lambda state, x: x.sum(along)


def _top_k(step: Step, graph: Graph, order: AxisOrder) -> Kernel:
    along = _dimension(step, step.over, step.of[0].shape)
    count = shapes.size(step.shape[-1], graph.dims)
    return lambda state, x: x.movedim(along, -1).topk(count).indices


def _pick(step: Step, graph: Graph, order: AxisOrder) -> Kernel:
    return lambda state, x, chosen: x.gather(-1, chosen)


def _cache(step: Step, graph: Graph, order: AxisOrder) -> Kernel:
    along = _dimension(step, "keys", step.shape)

    def cache(state: ExecutionState, fresh: Tensor) -> Tensor:
        if state.cache is None:
            return fresh
        return state.cache.extend((state.layer, step.sets), fresh, along, state.past)

    return cache


def _of_layer(step: Step, graph: Graph, order: AxisOrder) -> Kernel:
    along = _dimension(step, step.over, step.of[0].shape)
    return lambda state, x: x.select(along, state.layer)


def _dimension(step: Step, axis: str | None, shape: Shape) -> int:
    if axis is None or (axis,) not in shape:
        raise SpecError(f"{step.id}: {axis} is not a dimension of ({shapes.render(shape)})")
    return shape.index((axis,))


def _number(step: Step) -> float:
    if not isinstance(step.by, int | float):
        raise SpecError(f"{step.id}: {step.op} by {step.by!r}: expected a number")
    return step.by


BUILDERS: dict[str, Callable[[Step, Graph, AxisOrder], Kernel]] = {
    "contract": _contract,
    "take": _take,
    "add": _broadcasting(torch.add),
    "mul": _broadcasting(torch.mul),
    "scale": _scale,
    "activate": _activate,
    "sigmoid": _elementwise(torch.sigmoid),
    "tanh": _elementwise(torch.tanh),
    "rms": _rms,
    "rotate": rotation,
    "mask": lambda step, graph, order: mask(step, graph),
    "alibi": lambda step, graph, order: alibi(step, graph),
    "softmax_sink": lambda step, graph, order: softmax_sink(step, graph),
    "convolve": lambda step, graph, order: convolution(step, graph),
    "delta_rule": lambda step, graph, order: delta_rule(step, graph),
    "softmax": _softmax,
    "sum": _sum,
    "top_k": _top_k,
    "pick": _pick,
    "cache": _cache,
    "of_layer": _of_layer,
    "rename": _rename,
    "regroup": _rename,
    "subtract": _broadcasting(torch.sub),
    "plus": _by_number(lambda x, by: x + (int(by) if not x.is_floating_point() else by)),
    "clamp": _by_number(lambda x, by: x.clamp(-by, by)),
    "clamp_max": _by_number(lambda x, by: x.clamp(max=by)),
    "softcap": _by_number(lambda x, by: torch.tanh(x / by) * by),
    "scale_rounded": _by_number(lambda x, by: x * torch.tensor(by, dtype=x.dtype, device=x.device)),
    "softplus": _elementwise(F.softplus),
    "exp": _elementwise(torch.exp),
    "negate": _elementwise(torch.neg),
    "standardize": _along(_standardize),
    "l2norm": _along(lambda x, along, by: x * torch.rsqrt(x.pow(2).sum(along, keepdim=True) + by)),
    "normalize": _along(lambda x, along, by: x / (x.sum(along, keepdim=True) + by)),
    "best_groups": _best_groups,
    "mixer_share": _mixer_share,
}

ROUTED: dict[str, Callable[[Step, Graph], Kernel]] = {"contract": routed_product, "add": routed_add}
"""Operations on weights that are selected for each token."""
