"""The shape grammar and its exact arithmetic, mostly by property."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlas.errors import SpecError
from atlas.grammar import shapes

axes = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
groups = st.lists(st.one_of(axes, st.just(shapes.REST)), min_size=1, max_size=4).map(tuple)
written = st.lists(groups, max_size=5).map(tuple)


# ---------------------------------------------------------------- parse and render


@given(written)
def test_parse_of_render_gives_the_shape_back(shape: shapes.Shape) -> None:
    assert shapes.parse(shapes.render(shape)) == shape


@given(written, st.lists(st.sampled_from(["", " ", "  ", "\t"]), min_size=40, max_size=40))
def test_spaces_do_not_matter_but_between_words(shape: shapes.Shape, spaces: list[str]) -> None:
    text, blanks = "", iter(spaces)
    for token in shapes.render(shape).replace("(", "( ").replace(")", " )").split():
        text += token + " " + next(blanks, " ")
    assert shapes.parse(text) == shape


@given(st.text(max_size=30))
def test_any_text_is_a_shape_or_one_error(text: str) -> None:
    try:
        shape = shapes.parse(text)
    except SpecError as error:
        said = error.message
    else:
        assert shapes.parse(shapes.render(shape)) == shape
        assert all(axis == shapes.REST or axis.isidentifier() for axis in shapes.atoms(shape))
        return
    assert said.startswith(f"shape {text!r}: ")


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("", ()),
        ("batch positions dim", (("batch",), ("positions",), ("dim",))),
        ("(n_heads head_dim) dim", (("n_heads", "head_dim"), ("dim",))),
        ("n_experts dim *", (("n_experts",), ("dim",), ("*",))),
        ("(n_heads *) kv_rank", (("n_heads", "*"), ("kv_rank",))),
        ("(dim)", (("dim",),)),
    ],
)
def test_shapes_as_they_are_written(text: str, shape: shapes.Shape) -> None:
    assert shapes.parse(text) == shape


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("(a (b) c)", "a parenthesis inside a parenthesis"),
        ("a )", "'\\)' closes nothing"),
        ("a () b", "'\\)' closes an empty group"),
        ("(a b", "'\\(' is not closed"),
        ("a 3", "'3' is neither an axis nor a parenthesis"),
        ("a, b", "',' is neither an axis nor a parenthesis"),
        ("a-b", "'-' is neither an axis nor a parenthesis"),
    ],
)
def test_shapes_that_are_none(text: str, words: str) -> None:
    with pytest.raises(SpecError, match=words) as caught:
        shapes.parse(text)
    assert repr(text) in caught.value.message


@given(written, st.dictionaries(axes, axes, max_size=5))
def test_renaming_touches_names_only(shape: shapes.Shape, names: dict[str, str]) -> None:
    renamed = shapes.rename(shape, names)
    assert [len(group) for group in renamed] == [len(group) for group in shape]
    assert shapes.atoms(renamed) == [names.get(axis, axis) for axis in shapes.atoms(shape)]


# ---------------------------------------------------------------- products of axes

PARTS = {"heads": ("kv_heads", "group"), "width": ("pair", "two"), "all": ("heads", "width")}


@pytest.mark.parametrize(
    ("operand", "beside", "opened"),
    [
        ("heads width", "heads", "heads width"),  # nothing names a part
        ("heads width", "kv_heads", "kv_heads group width"),
        ("heads width", "two", "heads pair two"),
        ("all", "kv_heads", "kv_heads group width"),
        ("all", "kv_heads two", "kv_heads group pair two"),
        ("all", "heads", "heads width"),
        ("group", "heads", "group"),
    ],
)
def test_a_product_is_taken_apart_where_a_part_is_named(operand: str, beside: str, opened: str) -> None:
    assert shapes.take_apart(operand.split(), beside.split(), PARTS) == opened.split()


@given(st.lists(st.sampled_from(["heads", "width", "all", "group", "dim"]), max_size=4), st.data())
def test_taking_apart_keeps_the_size(operand: list[str], data: st.DataObject) -> None:
    sizes = {name: data.draw(st.integers(1, 30)) for name in ("kv_heads", "group", "pair", "two", "dim")}
    for name, parts in PARTS.items():
        sizes[name] = math.prod(sizes[part] for part in parts)
    named = data.draw(st.sets(st.sampled_from(sorted(sizes))))
    opened = shapes.take_apart(operand, named, PARTS)
    assert shapes.size(opened, sizes) == math.prod(sizes[axis] for axis in operand)


# ---------------------------------------------------------------- arithmetic

VALUES = {"dim": 4096, "n_heads": 32, "n_kv_heads": 8, "share": 0.5}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("dim / n_heads", 128),
        ("n_heads / n_kv_heads", 4),
        ("2 * dim + 3 - 1", 8194),
        ("-dim", -4096),
        ("dim * share", 2048.0),
        ("(dim + 4) / 4", 1025),
        ("2 ** 3", 8),
        ("dim ** -0.5", 1 / 64),
        ("n_heads ** 0", 1),
        ("2 ** 64", 18446744073709551616),
        ("(-n_kv_heads) ** 2", 64),
        ("0 ** 2", 0),
    ],
)
def test_expressions(text: str, value: float) -> None:
    found = shapes.evaluate(text, VALUES)
    assert found == value
    assert type(found) is type(value)


@given(st.integers(-(2**70), 2**70), st.integers(-(2**70), 2**70))
def test_division_of_integers_is_exact_or_an_error(top: int, bottom: int) -> None:
    values = {"a": top, "b": bottom}
    if bottom == 0:
        with pytest.raises(SpecError, match="'a / b': division by zero"):
            shapes.evaluate("a / b", values)
    elif Fraction(top, bottom).denominator == 1:
        found = shapes.evaluate("a / b", values)
        assert isinstance(found, int)
        assert found * bottom == top
    else:
        with pytest.raises(SpecError, match="without a remainder") as caught:
            shapes.evaluate("a / b", values)
        assert f"{top:,} does not divide by {bottom:,}" in caught.value.message


def test_a_name_without_a_value_is_its_own_error() -> None:
    with pytest.raises(shapes.MissingName, match="'dim / heads': heads has no value here"):
        shapes.evaluate("dim / heads", VALUES)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("dim ** 65", "'dim ** 65': the exponent 65 is too large"),
        ("dim ** -65", "the exponent -65 is too large"),
        ("(-dim) ** 0.5", "a root of the negative number -4,096"),
        ("0 ** -1", "'0 ** -1': division by zero"),
        ("dim / (n_heads - 32)", "division by zero"),
    ],
)
def test_powers_and_divisions_that_give_no_number(text: str, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        shapes.evaluate(text, VALUES)
    assert words in caught.value.message


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "dim if n_heads else 1",
        "dim // n_heads",
        "dim % n_heads",
        "'dim'",
        "True",
        "[1]",
        "dim.real",
        "dim <",
        "",
        "a b",
        "lambda: 1",
        "1j",
        "...",
    ],
)
def test_only_arithmetic_is_arithmetic(text: str) -> None:
    with pytest.raises(SpecError, match="is not arithmetic on named axes") as caught:
        shapes.evaluate(text, VALUES)
    assert repr(text) in caught.value.message


@pytest.mark.parametrize(
    "text",
    ["dim\0", "(" * 3000 + "dim" + ")" * 3000, "-" * 20000 + "dim", "dim ** 64.0 ** 64", "9" * 9000],
)
def test_absurd_expressions_end_in_an_error(text: str) -> None:
    with pytest.raises(SpecError):
        shapes.evaluate(text, VALUES)


@given(st.text(alphabet="ab12 +-*/().\0é", max_size=12))
def test_any_text_is_a_number_or_one_error(text: str) -> None:
    try:
        found = shapes.evaluate(text, {"a": 6, "b": 3})
    except SpecError:
        return
    assert isinstance(found, int | float)
