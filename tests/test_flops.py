"""FLOPs and bytes by component, and which of the two bounds it on a given machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from atlas.analyse.flops import flops
from atlas.analyse.trace import Pass, trace
from atlas.errors import NotDescribed, UsageError
from atlas.graph.graph import Graph

EIGHT_B = "llama3.1-8b"


@pytest.mark.parametrize(
    ("positions", "past", "total"), [(128, 0, 1_929_782_493_184), (1, 127, 15_076_425_728)]
)
def test_totals(positions: int, past: int, total: int, graph_of: Callable[[str], Graph]) -> None:
    found = flops(graph_of(EIGHT_B), positions=positions, past=past)
    assert found.total_flops == total
    assert sum(row.flops for row in found.components) == total
    assert sum(row.bytes for row in found.components) == found.total_bytes
    assert (found.batch, found.positions, found.past) == (1, positions, past)


def test_components_in_execution_order(graph_of: Callable[[str], Graph]) -> None:
    """Everything with a matrix product; the products of queries, keys and values belong to the attention itself."""
    found = flops(graph_of(EIGHT_B), positions=128)
    assert {row.id: row.flops for row in found.components} == {
        "attention.wq": 32 * 2 * 128 * 4096 * 4096,
        "attention.wk": 32 * 2 * 128 * 4096 * 1024,
        "attention.wv": 32 * 2 * 128 * 4096 * 1024,
        "attention": 32 * 268_435_456,
        "attention.wo": 32 * 2 * 128 * 4096 * 4096,
        "feed_forward.w1": 32 * 2 * 128 * 4096 * 14336,
        "feed_forward.w3": 32 * 2 * 128 * 4096 * 14336,
        "feed_forward.w2": 32 * 2 * 128 * 4096 * 14336,
        "output": 2 * 128 * 4096 * 128256,
    }
    assert [row.id for row in found.components] == [
        "attention.wq",
        "attention.wk",
        "attention.wv",
        "attention",
        "attention.wo",
        "feed_forward.w1",
        "feed_forward.w3",
        "feed_forward.w2",
        "output",
    ]


def test_bytes_of_each_product_once(graph_of: Callable[[str], Graph]) -> None:
    """Two sequences, three positions after five, bfloat16."""
    rows = flops(graph_of(EIGHT_B), batch=2, positions=3, past=5, attention="eager").components
    found = {row.id: row for row in rows}
    tokens = 6
    assert found["output"].bytes == 2 * (tokens * 4096 + 128256 * 4096 + tokens * 128256)
    assert found["attention.wk"].bytes == 32 * 2 * (tokens * 4096 + 1024 * 4096 + tokens * 1024)
    queries, keys, scores = tokens * 4096, 2 * 8 * 1024, tokens * 32 * 8
    assert found["attention"].bytes == 32 * 2 * ((queries + keys + scores) + (scores + keys + queries))
    assert found["output"].intensity == found["output"].flops / found["output"].bytes


def test_fused_attention_moves_no_scores(graph_of: Callable[[str], Graph]) -> None:
    """Queries, keys, values and the result, each once; FLOPs and every other product as without it."""
    sizes = {"batch": 2, "positions": 3, "past": 5}
    found, eager = flops(graph_of(EIGHT_B), **sizes), flops(graph_of(EIGHT_B), attention="eager", **sizes)
    queries, keys = 6 * 4096, 2 * 8 * 1024
    assert {row.id: row.bytes for row in found.components} == {
        row.id: 32 * 2 * (queries + keys + keys + queries) if row.id == "attention" else row.bytes
        for row in eager.components
    }
    assert [row.flops for row in found.components] == [row.flops for row in eager.components]
    assert "fused" in found.convention
    assert "step by step" in eager.convention


def test_the_causal_half(graph_of: Callable[[str], Graph]) -> None:
    """Of 8,192² pairs of a query and a key, 8,192 × 8,191 / 2 are masked: 4 FLOPs each for 128 entries of 32 heads."""
    found = flops(graph_of(EIGHT_B), positions=8_192)
    assert found.masked_flops == 32 * 4 * 4096 * (8_192 * 8_191 // 2)
    assert flops(graph_of(EIGHT_B), positions=3, past=5).masked_flops == 32 * 4 * 4096 * 3
    assert flops(graph_of(EIGHT_B), past=100).masked_flops == 0
    assert flops(graph_of(EIGHT_B), positions=8_192, attention="eager").masked_flops == 0


def test_fused_attention_is_not_slower_than_it_can_be(graph_of: Callable[[str], Graph]) -> None:
    """At 989 TFLOP/s and 3.35 TB/s every product of a prompt of 8,192 is bound by compute: 158.14 TFLOP are 159.9 ms.

    With the scores written and read back, 280,246,616,064 bytes of attention alone take 83.7 ms, where its FLOPs take 35.6.
    """
    machine: dict[str, Any] = {"flops_per_second": 989e12, "bytes_per_second": 3.35e12}
    found = flops(graph_of(EIGHT_B), positions=8_192, **machine)
    assert found.seconds_at_least == pytest.approx(158_140_695_838_720 / 989e12)
    assert found.seconds == found.seconds_at_least
    skipped = 158_140_695_838_720 - 32 * 4 * 4096 * (8_192 * 8_191 // 2)
    assert found.seconds_at_least_masked_skipped == pytest.approx(skipped / 989e12)
    eager = flops(graph_of(EIGHT_B), positions=8_192, attention="eager", **machine)
    others = 158_140_695_838_720 - 35_184_372_088_832
    assert eager.seconds_at_least == pytest.approx(others / 989e12 + 280_246_616_064 / 3.35e12)


def test_a_sliding_window_matters_beyond_it_only(bound: Callable[..., Graph], small: dict[str, Any]) -> None:
    graph = bound(small | {"sliding_window": 40})
    found = flops(graph, positions=10, past=30)
    assert found.total_flops == flops(bound(small), positions=10, past=30).total_flops
    assert any("inside it and not affected" in note for note in found.notes)
    with pytest.raises(NotDescribed, match="sliding window of 40 positions") as caught:
        flops(graph, positions=10, past=31)
    assert "up to 40 positions" in caught.value.hint


def test_a_quantisation_leaves_bytes_of_weights_open(
    bound: Callable[..., Graph], small: dict[str, Any]
) -> None:
    graph = bound(small | {"quantization_config": {"quant_method": "gptq", "bits": 4}})
    found = flops(graph, positions=5, flops_per_second=1e15, bytes_per_second=1e12)
    plain = flops(bound(small), positions=5)
    assert found.total_flops == plain.total_flops
    assert (found.total_bytes, found.seconds, found.seconds_at_least) == (None, None, None)
    known = {row.id: row.bytes for row in found.components if row.bytes is not None}
    assert known == {row.id: row.bytes for row in plain.components if row.id == "attention"}
    assert any("quantised" in note and "not known" in note for note in found.notes)


def test_one_token_is_bound_by_memory_and_a_prompt_by_compute(graph_of: Callable[[str], Graph]) -> None:
    """10¹⁵ FLOP/s and 3.35 × 10¹² B/s: the ridge is at 298.5 FLOPs a byte."""
    machine: dict[str, Any] = {"flops_per_second": 1e15, "bytes_per_second": 3.35e12}
    one = flops(graph_of(EIGHT_B), **machine)
    assert (one.batch, one.positions, one.past) == (1, 1, 0)
    assert {row.bound for row in one.components} == {"memory"}
    assert one.seconds == pytest.approx(one.total_bytes / 3.35e12)
    prompt = flops(graph_of(EIGHT_B), positions=8_192, attention="eager", **machine)
    bounds = {row.id: row.bound for row in prompt.components}
    for row in prompt.components:
        assert (row.intensity > 1e15 / 3.35e12) == (bounds[row.id] == "compute")
    assert bounds["feed_forward.w1"] == "compute"
    assert (
        bounds["attention"] == "memory"
    )  # the scores are written and read back: 8,192² × 32 × 2 bytes, twice
    assert prompt.seconds == pytest.approx(
        sum(max(row.flops / 1e15, row.bytes / 3.35e12) for row in prompt.components)
    )


@pytest.mark.parametrize("machine", [{}, {"flops_per_second": 1e15}, {"bytes_per_second": 1e12}])
def test_without_a_machine_there_is_no_bound(
    machine: dict[str, Any], graph_of: Callable[[str], Graph]
) -> None:
    found = flops(graph_of(EIGHT_B), **machine)
    assert found.seconds is None
    assert {row.bound for row in found.components} == {None}


@pytest.mark.parametrize(("batch", "positions", "past"), [(1, 1, 0), (3, 7, 11), (2, 1, 4095)])
@pytest.mark.parametrize("name", [EIGHT_B, "llama3.2-1b", "llama2-13b"])
def test_the_trace_says_the_same(
    name: str, batch: int, positions: int, past: int, graph_of: Callable[[str], Graph]
) -> None:
    found = flops(graph_of(name), batch=batch, positions=positions, past=past)
    steps = trace(graph_of(name), Pass(batch, positions, past)).steps
    by_component: dict[str, int] = {}
    for step in steps:
        by_component[step.component] = by_component.get(step.component, 0) + (step.flops or 0)
    assert {row.id: row.flops for row in found.components} == {k: v for k, v in by_component.items() if v}


def test_the_convention_is_said(graph_of: Callable[[str], Graph]) -> None:
    words = flops(graph_of(EIGHT_B)).convention
    assert "2 FLOPs for each multiply-add" in words
    assert "causal half of attention is not discounted" in words


@pytest.mark.parametrize("options", [{"batch": 0}, {"positions": 0}, {"past": -1}])
def test_sizes_that_are_none_are_refused(options: dict[str, int], graph_of: Callable[[str], Graph]) -> None:
    with pytest.raises(UsageError, match=f"--{next(iter(options))} is"):
        flops(graph_of(EIGHT_B), **options)
