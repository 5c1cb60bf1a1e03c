"""The shape grammar, and exact arithmetic on named axes.

The notation is that of einops and jaxtyping: words are axes, parentheses merge several axes into one stored dimension,
`*` in the layout of a packed tensor is replaced by the remaining axes, and `...` at the beginning of a component's shape
stands for the axes before the others.

    "batch positions dim"         three dimensions
    "(n_heads head_dim) dim"      two: n_heads × head_dim rows, dim columns
    "n_experts dim *"             a layout with several weights concatenated along the last axis

It is parsed once into nested tuples, `(("n_heads", "head_dim"), ("dim",))`.
"""

from __future__ import annotations

import ast
import math
import operator
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import cache

from atlas.errors import SpecError


class MissingName(SpecError):
    """An expression uses a name without a value. Callers may skip it."""


class Remainder(SpecError):
    """A division of integers leaves a remainder. It is an error only if something needs the result."""


Group = tuple[str, ...]
Shape = tuple[Group, ...]
Number = int | float

REST = "*"
LEADING = "..."
"""At the beginning of a component's shape: any axes before the others."""

MOST_CHARACTERS = 1_000
"""Longest shape or expression. The longest built-in one has 35 characters."""

MOST_AXES = 32
"""Most axes of one shape, counting those inside parentheses."""

MOST_BITS = 256
"""Most bits of an intermediate integer. A size has fewer than 64, so a product of several fits."""

_TOKEN = re.compile(r"\(|\)|\*|\.\.\.|[A-Za-z_]\w*|\S")


@cache
def parse(text: str) -> Shape:
    """The groups of axes a shape is written as.

    Raises:
        SpecError: unbalanced or nested parentheses, an empty group, a character that is not part of an axis name, or too
            many axes.
    """
    if len(text) > MOST_CHARACTERS:
        raise SpecError(
            f"shape {_short(text)}: {len(text):,} characters, expected at most {MOST_CHARACTERS:,}"
        )
    groups: list[Group] = []
    open_group: list[str] | None = None
    for token in _TOKEN.findall(text):
        if token == "(":
            if open_group is not None:
                raise SpecError(f"shape {text!r}: a parenthesis inside a parenthesis")
            open_group = []
        elif token == ")":
            if not open_group:
                raise SpecError(
                    f"shape {text!r}: ')' closes " + ("nothing" if open_group is None else "an empty group")
                )
            groups.append(tuple(open_group))
            open_group = None
        elif token == LEADING and (groups or open_group is not None):
            raise SpecError(f"shape {text!r}: '...' may only be at the beginning")
        elif token not in (REST, LEADING) and not token.isidentifier():
            raise SpecError(f"shape {text!r}: {token!r} is neither an axis nor a parenthesis")
        elif open_group is not None:
            open_group.append(token)
        else:
            groups.append((token,))
    if open_group is not None:
        raise SpecError(f"shape {text!r}: '(' is not closed")
    if (count := sum(map(len, groups))) > MOST_AXES:
        raise SpecError(f"shape {_short(text)}: {count} axes, expected at most {MOST_AXES}")
    return tuple(groups)


def _short(text: str) -> str:
    """The repr of a text, shortened for a message."""
    return repr(text if len(text) <= 80 else f"{text[:77]}...")


def render(shape: Shape) -> str:
    """The text of a shape; the inverse of `parse`."""
    return " ".join(group[0] if len(group) == 1 else f"({' '.join(group)})" for group in shape)


def atoms(shape: Iterable[Group]) -> list[str]:
    """Every axis in order, without grouping."""
    return [axis for group in shape for axis in group]


def rename(shape: Shape, names: Mapping[str, str]) -> Shape:
    """The same shape with renamed axes."""
    if not names:
        return shape
    return tuple(tuple(names.get(axis, axis) for axis in group) for group in shape)


def take_apart(axes: Iterable[str], named: Iterable[str], parts: Mapping[str, Group]) -> list[str]:
    """Replace a product axis by its parts if one of the parts is among the named axes.

    `n_heads` is `n_kv_heads × group`. It is split if another operand has `n_kv_heads`, so that grouped heads need no
    repetition. It is not split if the other operand has `n_heads`.
    """
    wanted = set(named)

    def open_up(axis: str) -> list[str]:
        inner = parts.get(axis)
        if inner is None or not wanted.intersection(_all_parts(axis, parts)):
            return [axis]
        return [atom for part in inner for atom in open_up(part)]

    return [atom for axis in axes for atom in open_up(axis)]


def _all_parts(axis: str, parts: Mapping[str, Group]) -> set[str]:
    inner = parts.get(axis, ())
    return set(inner).union(*(_all_parts(part, parts) for part in inner)) if inner else set()


def size(group: Iterable[str], dims: Mapping[str, int]) -> int:
    """The product of the axes' sizes.

    Raises:
        MissingName: one has no size.
    """
    try:
        return math.prod(dims[axis] for axis in group)
    except KeyError as missing:
        raise MissingName(f"the axis {str(missing.args[0])[:80]} has no size here") from None


_OPERATORS: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}


@cache
def _expression(text: str) -> ast.expr:
    try:
        if len(text) <= MOST_CHARACTERS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Python warns about `1if`, which is refused below
                return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # a NUL byte; nested too deep
        pass
    raise SpecError(f"{_short(text)} is not arithmetic on named axes")


def names(text: str) -> set[str]:
    """The names that an arithmetic expression reads."""
    return set(re.findall(r"[A-Za-z_]\w*", text))


def evaluate(text: str, values: Mapping[str, Number]) -> Number:
    """Arithmetic on named numbers, in integers if the operands are integers.

    `/` between integers is exact; a remainder is an error. Intermediate values are finite and have at most `MOST_BITS`
    bits, so that every expression is fast to evaluate.

    Raises:
        MissingName: a name without a value.
        SpecError: an inexact division, a value that is too large, or an operator other than `+ - * / **`.
    """

    def go(node: ast.expr) -> Number:
        return _bounded(work_out(node), text)

    def work_out(node: ast.expr) -> Number:
        match node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                return value
            case ast.Name(id=name):
                if name not in values:
                    raise MissingName(f"{_short(text)}: {name} has no value here")
                return values[name]
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return -go(inner)
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return _divide(go(left), go(right), _short(text))
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return _power(go(left), go(right), _short(text))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                return _OPERATORS[type(op)](go(left), go(right))
        raise SpecError(f"{_short(text)} is not arithmetic on named axes")

    try:
        return go(_expression(text))
    except (OverflowError, RecursionError):
        raise SpecError(f"{_short(text)} gives no finite number") from None


def _bounded(value: Number, text: str) -> Number:
    if isinstance(value, float) and not math.isfinite(value):
        raise SpecError(f"{_short(text)} gives no finite number")
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        raise SpecError(f"{_short(text)} gives an integer of more than {MOST_BITS} bits")
    return value


def _power(base: Number, exponent: Number, where: str) -> Number:
    if abs(exponent) > 64:
        raise SpecError(f"{where}: the exponent {exponent:,} is too large")
    if base < 0 and exponent != int(exponent):
        raise SpecError(f"{where}: a root of the negative number {base:,}")
    if base == 0 and exponent < 0:
        raise SpecError(f"{where}: division by zero")
    # A lower bound on the bits of the result, checked before computing it.
    if isinstance(base, int) and (base.bit_length() - 1) * exponent > MOST_BITS:
        raise SpecError(f"{where} gives an integer of more than {MOST_BITS} bits")
    result: Number = base**exponent
    return result


def _divide(top: Number, bottom: Number, where: str) -> Number:
    if bottom == 0:
        raise SpecError(f"{where}: division by zero")
    if isinstance(top, int) and isinstance(bottom, int):
        if top % bottom:
            raise Remainder(f"{where}: {top:,} does not divide by {bottom:,} without a remainder")
        return top // bottom
    return top / bottom
