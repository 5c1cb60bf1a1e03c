"""Counts that may depend on free axes: a formula's value at numbers is what multiplying the numbers gives."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlas.grammar.formula import Formula, total

SYMBOLS = {"batch": "B", "positions": "T", "keys": "S", "dim": "d", "ffn_dim": "f"}
AXES = st.lists(st.sampled_from(sorted(SYMBOLS)), max_size=5)
SIZES = st.fixed_dictionaries({axis: st.integers(0, 50) for axis in SYMBOLS})


def at(formula: Formula, sizes: dict[str, int]) -> int:
    """Its value by Python's own arithmetic on what it is written as."""
    values = {symbol: sizes[axis] for axis, symbol in SYMBOLS.items()}
    found = eval(str(formula), {"__builtins__": {}}, values)
    assert isinstance(found, int)
    return found


@given(AXES, SIZES, st.sets(st.sampled_from(sorted(SYMBOLS))), st.integers(0, 9))
def test_a_product(axes: list[str], sizes: dict[str, int], free: set[str], times: int) -> None:
    known = {axis: size for axis, size in sizes.items() if axis not in free}
    formula = Formula.product(axes, known, SYMBOLS, times)
    assert at(formula, sizes) == times * math.prod(sizes[axis] for axis in axes)


@given(
    st.lists(st.tuples(AXES, st.integers(0, 9)), max_size=6), SIZES, st.sets(st.sampled_from(sorted(SYMBOLS)))
)
def test_a_sum(products: list[tuple[list[str], int]], sizes: dict[str, int], free: set[str]) -> None:
    known = {axis: size for axis, size in sizes.items() if axis not in free}
    whole = total(Formula.product(axes, known, SYMBOLS, times) for axes, times in products)
    expected = sum(times * math.prod(sizes[axis] for axis in axes) for axes, times in products)
    assert at(whole, sizes) == expected
    assert at(whole * 7, sizes) == 7 * expected
    if not free:
        assert whole.value == expected
        assert (whole * 7).value == 7 * expected


@given(st.permutations(["batch", "positions", "keys"]), st.permutations(["batch", "positions", "keys"]))
def test_the_order_of_axes_makes_no_other_term(left: list[str], right: list[str]) -> None:
    both = Formula.product(left, {}, SYMBOLS, 2) + Formula.product(right, {}, SYMBOLS, 3)
    assert str(both) == "5*B*T*S"


def test_as_it_is_written() -> None:
    sizes = {"dim": 4, "ffn_dim": 6}
    first = Formula.product(["batch", "positions", "dim", "ffn_dim"], sizes, SYMBOLS, 2)
    second = Formula.product(["batch", "positions", "keys", "dim"], sizes, SYMBOLS, 2)
    assert str(first) == "48*B*T"
    assert str(first + second) == "48*B*T + 8*B*T*S"
    assert str(first + first) == "96*B*T"
    assert str(Formula.product(["dim"], sizes, SYMBOLS)) == "4"
    assert str(Formula({})) == "0"


@pytest.mark.parametrize(
    ("axes", "value"), [([], 1), (["dim"], 4), (["dim", "dim"], 16), (["batch", "dim"], None)]
)
def test_the_value_is_there_where_nothing_is_free(axes: list[str], value: int | None) -> None:
    assert Formula.product(axes, {"dim": 4}, SYMBOLS).value == value


def test_nothing_is_zero_whatever_is_free() -> None:
    assert (Formula.product(["batch"], {}, SYMBOLS) * 0).value == 0
    assert Formula.product(["batch", "dim"], {"dim": 0}, SYMBOLS).value == 0
    assert total([]).value == 0
