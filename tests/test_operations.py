"""Each operation on axes: what it can give, and what it says where it cannot."""

from __future__ import annotations

import pytest

from atlas.graph.operations import NEEDS_OVER, OPERATIONS, fault


def said(op: str, operands: list[str], result: str, over: str | None = None) -> str | None:
    return fault(op, [operand.split() for operand in operands], result.split(), over)


GOOD: list[tuple[str, list[str], str, str | None]] = [
    ("contract", ["b t d", "f d"], "b t f", None),
    ("contract", ["b t k g h", "b s k h"], "b k g t s", None),
    ("contract", ["b t d", "b t x f d"], "b t x f", None),
    ("take", ["b t", "v d"], "b t d", None),
    ("add", ["b t d", "b t d"], "b t d", None),
    ("add", ["b t d", "d"], "b t d", None),
    ("mul", ["b t x", "b t d"], "b t x d", None),
    ("scale", ["b t d"], "b t d", None),
    ("cast", ["b t d"], "b t d", None),
    ("activate", ["b t f"], "b t f", None),
    ("sigmoid", ["b t x"], "b t x", None),
    ("tanh", ["one"], "one", None),
    ("rms", ["b t d"], "b t d", "d"),
    ("rotate", ["b t k h"], "b t k h", "h"),
    ("mask", ["b k t s"], "b k t s", None),
    ("softmax", ["b k t s"], "b k t s", "s"),
    ("sum", ["b t x d"], "b t d", "x"),
    ("top_k", ["b t n"], "b t x", "n"),
    ("pick", ["b t x"], "b t x", None),
    ("cache", ["b positions k h"], "b keys k h", None),
    ("of_layer", ["b t n d"], "b t d", "n"),
    ("rename", ["b patches h"], "b seen h", None),
    *(
        (op, ["b t d"], "b t d", None)
        for op in (
            "plus",
            "clamp",
            "clamp_max",
            "softcap",
            "softplus",
            "exp",
            "negate",
            "regroup",
            "scale_rounded",
        )
    ),
    *((op, ["b t d"], "b t d", "d") for op in ("standardize", "l2norm", "normalize", "best_groups")),
    ("subtract", ["b t d", "d"], "b t d", None),
    ("softmax_sink", ["b k t s", "k"], "b k t s", "s"),
    ("alibi", ["b k t keys"], "b k t keys", "k"),
    ("convolve", ["batch positions d", "d w"], "batch positions d", None),
    ("mixer_share", ["b t n", "b t x"], "b t x", "n"),
    ("delta_rule", ["b t k h", "b t k h", "b t k g v", "b t k g", "b t k g"], "b t k g v", None),
]

BAD: list[tuple[str, list[str], str, str | None, str]] = [
    ("contrct", ["b t d"], "b t d", None, "unknown operation 'contrct'; expected one of contract, take"),
    ("contract", ["b t d"], "b t d", None, "contract takes 2 operands, given 1"),
    ("cast", ["b t d", "d"], "b t d", None, "cast takes 1 operand, given 2"),
    ("rms", ["b t d"], "b t d", None, "rms needs the axis it runs over (`over`)"),
    ("contract", ["b t d", "f d"], "b t g", None, "contract cannot give (b t g): no operand has g"),
    ("contract", ["b t d", "f e"], "b t f", None, "d, e is in one operand only and not in the result"),
    ("contract", ["b t d", "f d"], "b t f d", None, "no axis is summed over"),
    ("take", ["b t", "v d"], "b t v", None, "its result is (b t d)"),
    ("add", ["b t d", "b t f"], "b t d", None, "an operand has f, which the result lacks"),
    ("mul", ["b t", "d"], "b t d h", None, "no operand has h"),
    ("scale", ["b t d"], "b d t", None, "the result must have the axes of the operand, (b t d)"),
    ("softmax", ["b t s"], "b t s", "d", "it runs over d, which is not an axis of the operand"),
    ("sum", ["b t d"], "b t", "x", "it removes x, which is not an axis of the operand"),
    ("sum", ["b t x d"], "b t x", "x", "its result is (b t d)"),
    ("top_k", ["b t n"], "b t x", "m", "it selects along m, which is not an axis of the operand"),
    ("top_k", ["b t n"], "t b x", "n", "its result is (b t) and one more axis"),
    ("cache", ["b positions k"], "b positions k", None, "its result is (b keys k), on keys"),
    ("cache", ["b t k"], "b t k", None, "on keys"),
    ("rename", ["b patches h"], "b h", None, "its operand has the axes (b patches h)"),
    ("rename", ["b patches h"], "b patches h", None, "no axis is renamed"),
    (
        "softmax_sink",
        ["b k t s", "s"],
        "b k t s",
        "s",
        "the sinks have s, expected axes of the scores other than s",
    ),
    ("alibi", ["b k t s"], "b k t s", "k", "there is no axis keys"),
    (
        "convolve",
        ["batch positions d", "w d"],
        "batch positions d",
        None,
        "its kernel has the operand's axes without",
    ),
    ("convolve", ["b t d", "d w"], "b t d", None, "its kernel has the operand's axes without"),
    (
        "delta_rule",
        ["b t k h", "b t k g", "b t k v", "b t k", "b t k"],
        "b t k v",
        None,
        "queries and keys must have the same",
    ),
    (
        "delta_rule",
        ["b t k h", "b t k h", "b t j v", "b t j", "b t j"],
        "b t j v",
        None,
        "values must have their axes",
    ),
    (
        "delta_rule",
        ["b t k h", "b t k h", "b t k v", "b t", "b t k"],
        "b t k v",
        None,
        "decay and strength must have",
    ),
    (
        "delta_rule",
        ["b t k h", "b t k h", "b t k v", "b t k", "b t k"],
        "b t k h",
        None,
        "its result is (b t k v)",
    ),
]


@pytest.mark.parametrize(("op", "operands", "result", "over"), GOOD)
def test_what_an_operation_can_give(op: str, operands: list[str], result: str, over: str | None) -> None:
    assert said(op, operands, result, over) is None


@pytest.mark.parametrize(("op", "operands", "result", "over", "words"), BAD)
def test_what_it_cannot(op: str, operands: list[str], result: str, over: str | None, words: str) -> None:
    assert words in (said(op, operands, result, over) or "")


def test_every_operation_is_tried() -> None:
    assert {op for op, *_ in GOOD} == set(OPERATIONS)
    assert set(OPERATIONS) >= NEEDS_OVER


@pytest.mark.parametrize(("op", "operands", "result", "over"), GOOD)
def test_no_operation_takes_another_number_of_operands(
    op: str, operands: list[str], result: str, over: str | None
) -> None:
    assert f"{op} takes {len(operands)}" in (said(op, [*operands, "b"], result, over) or "")
    assert f"{op} takes {len(operands)}" in (said(op, operands[1:], result, over) or "")
