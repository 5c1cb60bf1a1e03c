"""What each operation computes: a bound step -> a closure over plain torch, compiled once.

Names become positions when a step is compiled and are forgotten at run time. A closure receives the moment and the
step's operands. No operation knows a model, and the equation beside each is the whole of what it means:

    contract   y = Σ over the axes the result lacks of x · w      take      y = table[indices]
    add, mul   y = a + b, y = a · b, spread by name               scale     y = by · x
    rms        y = x / √(mean(x²) + by)   (Zhang, Sennrich 2019)  activate  silu(x) = x · σ(x)   (Elfwing et al., 2018)
    softmax    y = exp(x) / Σ exp(x)                              mask      y = −∞ where a key is after the position
    cast       x in the result's dtype                            cache     the positions read before, then these
    sigmoid, tanh, sum; top_k: the indices of the largest; pick: the values at indices; rename: the same numbers under
    another axis of the same size; rotate is in `rotary`
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812  torch's own documentation calls it F
from torch import Tensor

from atlas.errors import NotDescribed, SpecError
from atlas.execution.align import aligned, closed, opened, taken_apart
from atlas.execution.devices import FLOATS
from atlas.execution.layouts import Order
from atlas.execution.moment import Kernel, Moment
from atlas.execution.rotary import rotation
from atlas.grammar import shapes
from atlas.grammar.shapes import Shape, atoms
from atlas.graph.graph import Graph, Step

ACTIVATIONS = {"silu": F.silu}


def compile_step(step: Step, graph: Graph, order: Order, dtype: torch.dtype) -> Kernel:
    """The closure that computes a step.

    Arithmetic declared in a dtype of its own (`computed_in`) is done there, and its result cast where another is
    declared. All else has whatever dtype its operands give it, so that what is observed says something.

    Args:
        order: how the parts of the operands' axes lie, where not as the vocabulary has them.
        dtype: of the activations, what `A` in a description means.

    Raises:
        SpecError, NotDescribed: the step is written in a way that cannot be run.
    """
    if step.op == "cast":
        kind = _torch(step, step.dtype, dtype)
        return lambda moment, x: x.to(kind)
    if any(operand.chosen for operand in step.of) and step.op != "pick":
        raise NotDescribed(f"{step.id}: weights chosen for each token cannot be run yet")
    kernel = BUILDERS[step.op](step, graph, order)
    if step.computed_in == "A":
        return kernel
    inside = _torch(step, step.computed_in, dtype)

    def in_its_own_dtype(moment: Moment, *operands: Tensor) -> Tensor:
        return kernel(moment, *(x.to(inside) if x.is_floating_point() else x for x in operands))

    if step.dtype == step.computed_in:
        return in_its_own_dtype
    result = _torch(step, step.dtype, dtype)
    return lambda moment, *operands: in_its_own_dtype(moment, *operands).to(result)


def _torch(step: Step, code: str, activations: torch.dtype) -> torch.dtype:
    if code != "A" and code not in FLOATS:
        raise SpecError(f"{step.id}: nothing is computed in {code}; there are A, {', '.join(FLOATS)}")
    return activations if code == "A" else FLOATS[code]


def _contract(step: Step, graph: Graph, order: Order) -> Kernel:
    linear = _linear(step, graph)
    if linear is not None:
        return linear
    operands, result = taken_apart(step, graph)
    axes = list(dict.fromkeys(axis for apart in (*operands, result) for group in apart for axis in group))
    letters = dict(zip(axes, "abcdefghijklmnopqrstuvwxyz", strict=False))
    left, right, out = (
        "".join(letters[axis] for group in apart for axis in group) for apart in (*operands, result)
    )
    equation = f"{left},{right}->{out}"
    open_left, open_right = (opened(apart, graph.dims) for apart in operands)
    close = closed(result)
    return lambda moment, x, y: close(torch.einsum(equation, open_left(x), open_right(y)))


def _linear(step: Step, graph: Graph) -> Kernel | None:
    """The commonest product, of an activation's last axes and a matrix [out, in], by torch's own `linear`."""
    x, matrix = step.of
    if matrix.weight is None or len(matrix.shape) != 2:
        return None
    rows, columns = map(list, matrix.shape)
    last = next((n for n in range(1, len(x.shape)) if atoms(x.shape[-n:]) == columns), None)
    if last is None:
        return None
    lead = x.shape[:-last]
    made = step.shape[len(lead) :]
    if step.shape[: len(lead)] != lead or atoms(made) != rows:
        return None
    sizes = [shapes.size(group, graph.dims) for group in made]
    if len(sizes) == 1:
        return lambda moment, x, w: F.linear(x.flatten(-last), w)
    return lambda moment, x, w: torch.unflatten(F.linear(x.flatten(-last), w), -1, sizes)


def _spread(compute: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Step, Graph, Order], Kernel]:
    """The builder of an elementwise operation on two operands, spread over the result's axes by name."""

    def build(step: Step, graph: Graph, order: Order) -> Kernel:
        operands, result = taken_apart(step, graph)
        target = [axis for group in result for axis in group]
        left, right = (aligned(apart, target, graph.dims) for apart in operands)
        close = closed(result)
        return lambda moment, a, b: close(compute(left(a), right(b)))

    return build


def _elementwise(compute: Callable[[Tensor], Tensor]) -> Callable[[Step, Graph, Order], Kernel]:
    return lambda step, graph, order: lambda moment, x: compute(x)


def _rename(step: Step, graph: Graph, order: Order) -> Kernel:
    operands, result = taken_apart(step, graph)
    open_up, close = opened(operands[0], graph.dims), closed(result)
    return lambda moment, x: close(open_up(x))


def _take(step: Step, graph: Graph, order: Order) -> Kernel:
    return lambda moment, indices, table: table[indices]


def _scale(step: Step, graph: Graph, order: Order) -> Kernel:
    by = _number(step)
    return lambda moment, x: x * by


def _activate(step: Step, graph: Graph, order: Order) -> Kernel:
    if step.by not in ACTIVATIONS:
        raise SpecError(f"{step.id}: no activation is called {step.by!r}; there are {', '.join(ACTIVATIONS)}")
    compute = ACTIVATIONS[str(step.by)]
    return lambda moment, x: compute(x)


def _rms(step: Step, graph: Graph, order: Order) -> Kernel:
    along, epsilon = _dimension(step, step.over, step.shape), _number(step)
    return lambda moment, x: x * torch.rsqrt(x.pow(2).mean(along, keepdim=True) + epsilon)


def _softmax(step: Step, graph: Graph, order: Order) -> Kernel:
    along = _dimension(step, step.over, step.shape)
    return lambda moment, x: torch.softmax(x, along)


def _sum(step: Step, graph: Graph, order: Order) -> Kernel:
    along = _dimension(step, step.over, step.of[0].shape)
    return lambda moment, x: x.sum(along)


def _top_k(step: Step, graph: Graph, order: Order) -> Kernel:
    along = _dimension(step, step.over, step.of[0].shape)
    count = shapes.size(step.shape[-1], graph.dims)
    return lambda moment, x: x.movedim(along, -1).topk(count).indices


def _pick(step: Step, graph: Graph, order: Order) -> Kernel:
    return lambda moment, x, chosen: x.gather(-1, chosen)


def _mask(step: Step, graph: Graph, order: Order) -> Kernel:
    spread = aligned([["positions"], ["keys"]], atoms(step.shape), graph.dims)
    return lambda moment, x: x.masked_fill(spread(moment.hidden), -torch.inf)


def _cache(step: Step, graph: Graph, order: Order) -> Kernel:
    along = _dimension(step, "keys", step.shape)

    def cache(moment: Moment, fresh: Tensor) -> Tensor:
        if moment.cache is None:
            return fresh
        return moment.cache.extend((moment.layer, step.sets), fresh, along, moment.past)

    return cache


def _dimension(step: Step, axis: str | None, shape: Shape) -> int:
    if axis is None or (axis,) not in shape:
        raise SpecError(f"{step.id}: {axis} is no dimension of its own in ({shapes.render(shape)})")
    return shape.index((axis,))


def _number(step: Step) -> float:
    if not isinstance(step.by, int | float):
        raise SpecError(f"{step.id}: {step.op} by {step.by!r}: expected a number")
    return step.by


BUILDERS: dict[str, Callable[[Step, Graph, Order], Kernel]] = {
    "contract": _contract,
    "take": _take,
    "add": _spread(torch.add),
    "mul": _spread(torch.mul),
    "scale": _scale,
    "activate": _activate,
    "sigmoid": _elementwise(torch.sigmoid),
    "tanh": _elementwise(torch.tanh),
    "rms": _rms,
    "rotate": rotation,
    "mask": _mask,
    "softmax": _softmax,
    "sum": _sum,
    "top_k": _top_k,
    "pick": _pick,
    "cache": _cache,
    "rename": _rename,
}
