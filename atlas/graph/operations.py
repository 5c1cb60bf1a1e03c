"""The operations of steps, and the check of each operation's axes.

Operations are independent of models. When a description is bound, these checks decide from axes alone whether the declared
operands can give the declared result. `atlas.execution` computes the values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Axes = list[str]


def _same(operands: Sequence[Axes], result: Axes, over: str | None) -> str | None:
    if operands[0] != result:
        return f"the result must have the axes of the operand, ({' '.join(operands[0])})"
    if over is not None and over not in result:
        return f"it runs over {over}, which is not an axis of the operand"
    return None


def _spread(operands: Sequence[Axes], result: Axes, over: str | None) -> str | None:
    for operand in operands:
        if strange := [axis for axis in operand if axis not in result]:
            return f"an operand has {', '.join(strange)}, which the result lacks"
    if missing := [axis for axis in result if not any(axis in operand for operand in operands)]:
        return f"no operand has {', '.join(missing)}"
    return None


def _contract(operands: Sequence[Axes], result: Axes, over: str | None) -> str | None:
    left, right = operands
    if missing := [axis for axis in result if axis not in left and axis not in right]:
        return f"no operand has {', '.join(missing)}"
    if alone := [
        axis for axis in (*left, *right) if axis not in result and not (axis in left and axis in right)
    ]:
        return f"{', '.join(alone)} is in one operand only and not in the result"
    if all(axis in result for axis in left):
        return "no axis is summed over"
    return None


def _take(operands: Sequence[Axes], result: Axes, over: str | None) -> str | None:
    indices, table = operands
    return None if result == indices + table[1:] else f"its result is ({' '.join(indices + table[1:])})"


def _without_one(operands: Sequence[Axes], result: Axes, over: str | None) -> str | None:
    rest = [axis for axis in operands[0] if axis != over]
    if len(rest) == len(operands[0]):
        return f"it removes {over}, which is not an axis of the operand"
    return None if result == rest else f"its result is ({' '.join(rest)})"


def _top_k(operands: Sequence[Axes], result: Axes, over: str | None) -> str | None:
    if over not in operands[0]:
        return f"it selects along {over}, which is not an axis of the operand"
    kept = [axis for axis in operands[0] if axis != over]
    return None if result[:-1] == kept else f"its result is ({' '.join(kept)}) and one more axis"


def _cache(operands: Sequence[Axes], result: Axes, over: str | None) -> str | None:
    longer = ["keys" if axis == "positions" else axis for axis in operands[0]]
    return None if result == longer and "keys" in longer else f"its result is ({' '.join(longer)}), on keys"


def _rename(operands: Sequence[Axes], result: Axes, over: str | None) -> str | None:
    if len(operands[0]) != len(result):
        return f"its operand has the axes ({' '.join(operands[0])})"
    if operands[0] == result:
        return "no axis is renamed"
    return None


def _sinks(operands: Sequence[Axes], result: Axes, over: str | None) -> str | None:
    scores, sinks = operands
    if strange := [axis for axis in sinks if axis not in scores or axis == over]:
        return f"the sinks have {', '.join(strange)}, expected axes of the scores other than {over}"
    return _same([scores], result, over)


def _alibi(operands: Sequence[Axes], result: Axes, over: str | None) -> str | None:
    if "keys" not in result:
        return "it adds a bias for each key, and there is no axis keys"
    return _same(operands, result, over)


def _mixer_share(operands: Sequence[Axes], result: Axes, over: str | None) -> str | None:
    scores, chosen = operands
    if over not in scores or scores[:-1] != chosen[:-1] or scores[-1] != over:
        return f"its scores end with {over}, and the choice has their other axes and one more"
    return _same([chosen], result, None)


def _convolve(operands: Sequence[Axes], result: Axes, over: str | None) -> str | None:
    x, kernel = operands
    if x != result:
        return f"the result must have the axes of the operand, ({' '.join(x)})"
    channels = [axis for axis in kernel[:-1] if axis != "one"]
    if "positions" not in x or channels != [axis for axis in x if axis not in ("batch", "positions")]:
        return "its kernel has the operand's axes without batch and positions, and one more for the kernel's width"
    return None


def _delta_rule(operands: Sequence[Axes], result: Axes, over: str | None) -> str | None:
    q, k, v, decay, strength = operands
    if q != k:
        return "queries and keys must have the same axes"
    if v[: len(q) - 1] != q[:-1]:
        return f"values must have their axes, ({' '.join(q[:-1])}), and more"
    if decay != v[:-1] or strength != v[:-1]:
        return "decay and strength must have the axes of the values without the last"
    return None if result == v else f"its result is ({' '.join(v)})"


Check = Callable[[Sequence[Axes], Axes, str | None], str | None]

# name -> number of operands, and the check of axes
OPERATIONS: dict[str, tuple[int, Check]] = {
    "contract": (2, _contract),
    "take": (2, _take),
    "add": (2, _spread),
    "mul": (2, _spread),
    "scale": (1, _same),
    "cast": (1, _same),
    "activate": (1, _same),
    "sigmoid": (1, _same),
    "tanh": (1, _same),
    "rms": (1, _same),
    "rotate": (1, _same),
    "mask": (1, _same),
    "softmax": (1, _same),
    "sum": (1, _without_one),
    "top_k": (1, _top_k),
    "pick": (1, _same),
    "cache": (1, _cache),
    "of_layer": (1, _without_one),
    "rename": (1, _rename),
    "regroup": (1, _same),
    "scale_rounded": (1, _same),
    "subtract": (2, _spread),
    "plus": (1, _same),
    "clamp": (1, _same),
    "clamp_max": (1, _same),
    "softcap": (1, _same),
    "softplus": (1, _same),
    "exp": (1, _same),
    "negate": (1, _same),
    "standardize": (1, _same),
    "l2norm": (1, _same),
    "normalize": (1, _same),
    "softmax_sink": (2, _sinks),
    "alibi": (1, _alibi),
    "best_groups": (1, _same),
    "mixer_share": (2, _mixer_share),
    "convolve": (2, _convolve),
    "delta_rule": (5, _delta_rule),
}

NEEDS_OVER = {
    "rms", "rotate", "softmax", "softmax_sink", "sum", "top_k", "standardize", "l2norm", "normalize", "alibi", "best_groups",
    "mixer_share", "of_layer",
}  # fmt: skip
"""Operations that run over an axis: of `alibi` the heads, of `best_groups` the experts."""


def fault(op: str, operands: Sequence[Axes], result: Axes, over: str | None) -> str | None:
    """The fault of a step as the end of a sentence; None if there is none.

    Args:
        operands: the axes of each operand, product axes split where another operand has a part.
        result: the axes of the declared result, split likewise.
    """
    if op not in OPERATIONS:
        return f"unknown operation {op!r}; expected one of {', '.join(OPERATIONS)}"
    arity, check = OPERATIONS[op]
    if len(operands) != arity:
        return f"{op} takes {arity} operand{'s' * (arity > 1)}, given {len(operands)}"
    if op in NEEDS_OVER and over is None:
        return f"{op} needs the axis it runs over (`over`)"
    problem = check(operands, result, over)
    return f"{op} cannot give ({' '.join(result)}): {problem}" if problem else None
