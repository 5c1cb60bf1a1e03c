"""Two traces compared step by step."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from atlas.analyse.trace_diff import diff_traces
from atlas.errors import UsageError

STEPS = [
    {"id": "a.one", "shape": [2, 3], "dtype": "F32", "mean": 0.5},
    {"id": "b.two", "shape": [2, 4], "dtype": "F32", "mean": 1.5},
    {"id": "c.three", "shape": [2], "dtype": "BF16", "mean": 2.5},
]


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def made(name: str, steps: Any, **whole: Any) -> Path:
        path = tmp_path / name
        path.write_text(json.dumps({"model": "m", "steps": steps, **whole}))
        return path

    return made


def test_equal_traces(write: Callable[..., Path]) -> None:
    found = diff_traces(write("a", STEPS, seconds={"load": 1.0}), write("b", STEPS, seconds={"load": 2.0}))
    assert not found.differs
    assert found.steps == {"a": 3, "b": 3}
    assert found.first is None


def test_the_first_step_that_differs_and_both_values(write: Callable[..., Path]) -> None:
    other = [STEPS[0], STEPS[1] | {"mean": 1.25}, STEPS[2] | {"shape": [3]}]
    found = diff_traces(write("a", STEPS), write("b", other, total_flops=8))
    assert found.differs
    assert found.first == "b.two"
    assert [(row.step, row.field, row.a, row.b) for row in found.changed] == [
        (None, "total_flops", None, 8),
        ("b.two", "mean", 1.5, 1.25),
        ("c.three", "shape", (2,), (3,)),
    ]


def test_steps_of_one_side_and_another_order(write: Callable[..., Path]) -> None:
    found = diff_traces(write("a", STEPS), write("b", [STEPS[2], STEPS[0], {"id": "d.four"}]))
    assert (found.only_a, found.only_b) == (("b.two",), ("d.four",))
    assert not found.same_order
    assert found.first == "b.two"
    assert found.differs


def test_another_order_alone_is_a_difference(write: Callable[..., Path]) -> None:
    found = diff_traces(write("a", STEPS), write("b", STEPS[::-1]))
    assert found.differs
    assert found.changed == ()


def test_nan_equals_nan(write: Callable[..., Path]) -> None:
    rows = [STEPS[0] | {"mean": float("nan")}]
    assert not diff_traces(write("a", rows), write("b", rows)).differs
    assert diff_traces(write("a", rows), write("b", STEPS[:1])).changed[0].a == "nan"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("steps", "not JSON"),
        ("[]", "no list of `steps`"),
        ('{"steps": []}', "no list of `steps`"),
        ('{"steps": {"declared": 3}}', "no list of `steps`"),
        ('{"steps": [{"shape": [1]}]}', r"steps\[0\] is .*expected an object with an `id`"),
        ('{"steps": [3]}', r"steps\[0\] is 3"),
        ('{"steps": [{"id": "a"}, {"id": "a"}]}', "the step 'a' occurs twice"),
        ('{"steps": [{"id": "a", "id": "b"}]}', "the key 'id' occurs twice"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_trace_is_refused(
    text: str, words: str, tmp_path: Path, write: Callable[..., Path]
) -> None:
    path = tmp_path / "b"
    path.write_text(text)
    with pytest.raises(UsageError, match=words):
        diff_traces(write("a", STEPS), path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path, write: Callable[..., Path]) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        diff_traces(write("a", STEPS), tmp_path / "nothing")
