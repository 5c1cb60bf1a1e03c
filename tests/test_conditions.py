"""Conditions: whether an optional weight, step or note is there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlas.errors import SpecError
from atlas.grammar.conditions import holds

VALUES: dict[str, bool | int | float | str] = {
    "on": True,
    "off_": False,
    "none": 0,
    "zero": 0.0,
    "three": 3,
    "half": 0.5,
    "word": "before",
    "off": "off",
}


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        (None, True),
        ("on", True),
        ("off_", False),
        ("none", False),
        ("zero", False),
        ("three", True),
        ("half", True),
        ("word", True),
        ("off", False),
        ("on=true", True),
        ("on=false", False),
        ("off_=false", True),
        ("off_=true", False),
        ("three=3", True),
        ("three=4", False),
        ("half=0.5", True),
        ("word=before", True),
        ("word=after", False),
        ("off=off", True),
        ("on=1", False),  # a switch is true or false, never a number
        ("none=false", False),
    ],
)
def test_conditions(when: str | None, expected: bool) -> None:
    assert holds(when, VALUES) is expected


@pytest.mark.parametrize("when", ["bias", "bias=true", "", "=true"])
def test_a_condition_on_nothing_known_is_an_error(when: str) -> None:
    with pytest.raises(SpecError, match="nothing is called") as caught:
        holds(when, VALUES)
    assert repr(when) in caught.value.message


@given(st.booleans())
def test_a_switch_is_set_or_it_is_false(value: bool) -> None:
    assert holds("switch", {"switch": value}) is holds("switch=true", {"switch": value}) is value
    assert holds("switch=false", {"switch": value}) is not value
