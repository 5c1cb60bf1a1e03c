"""The trace: every step in order, its shape, its dtypes, its parameters and its FLOPs.

FLOPs are compared with torch's counter in `test_against_transformers` and `test_against_meta`; here against the figures of
the issue and arithmetic, and the symbolic form against the numeric one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atlas.analyse import parameters
from atlas.analyse.trace import Pass, Trace, trace
from atlas.errors import UsageError
from atlas.graph.graph import Graph

EIGHT_B = "llama3.1-8b"

# One layer of Meta's TransformerBlock, in the order its code runs: step, shape after (batch, positions), dtype handed on,
# dtype of the arithmetic. `norm(x.float()).type_as(x) * weight`; rotation in float32 and back; the cache; softmax of
# `scores.float()` and back; w2(silu(w1(x)) * w3(x)).
LAYER = [
    ("attention_norm.normed", ("B", "T", 4096), "F32", "F32"),
    ("attention_norm.rounded", ("B", "T", 4096), "BF16", "BF16"),
    ("attention_norm.scaled", ("B", "T", 4096), "BF16", "BF16"),
    ("attention.q", ("B", "T", 32, 128), "BF16", "BF16"),
    ("attention.k", ("B", "T", 8, 128), "BF16", "BF16"),
    ("attention.v", ("B", "T", 8, 128), "BF16", "BF16"),
    ("attention.q_rotated", ("B", "T", 32, 128), "BF16", "F32"),
    ("attention.k_rotated", ("B", "T", 8, 128), "BF16", "F32"),
    ("attention.keys", ("B", "S", 8, 128), "BF16", "BF16"),
    ("attention.values", ("B", "S", 8, 128), "BF16", "BF16"),
    ("attention.scores", ("B", 32, "T", "S"), "BF16", "BF16"),
    ("attention.scaled", ("B", 32, "T", "S"), "BF16", "BF16"),
    ("attention.masked", ("B", 32, "T", "S"), "BF16", "BF16"),
    ("attention.weights", ("B", 32, "T", "S"), "F32", "F32"),
    ("attention.weights_rounded", ("B", 32, "T", "S"), "BF16", "BF16"),
    ("attention.mixed", ("B", "T", 32, 128), "BF16", "BF16"),
    ("attention.projected", ("B", "T", 4096), "BF16", "BF16"),
    ("h.sum", ("B", "T", 4096), "BF16", "BF16"),
    ("ffn_norm.normed", ("B", "T", 4096), "F32", "F32"),
    ("ffn_norm.rounded", ("B", "T", 4096), "BF16", "BF16"),
    ("ffn_norm.scaled", ("B", "T", 4096), "BF16", "BF16"),
    ("feed_forward.gate", ("B", "T", 14336), "BF16", "BF16"),
    ("feed_forward.opened", ("B", "T", 14336), "BF16", "BF16"),
    ("feed_forward.up", ("B", "T", 14336), "BF16", "BF16"),
    ("feed_forward.hidden", ("B", "T", 14336), "BF16", "BF16"),
    ("feed_forward.down", ("B", "T", 4096), "BF16", "BF16"),
    ("out.sum", ("B", "T", 4096), "BF16", "BF16"),
]
AFTER = [
    ("norm.normed", ("B", "T", 4096), "F32", "F32"),
    ("norm.rounded", ("B", "T", 4096), "BF16", "BF16"),
    ("norm.scaled", ("B", "T", 4096), "BF16", "BF16"),
    ("output.projected", ("B", "T", 128256), "BF16", "BF16"),
    ("output.logits", ("B", "T", 128256), "F32", "F32"),
]


def at(formula: str, batch: int, positions: int, past: int) -> int:
    """A formula's value, by Python's own arithmetic."""
    value = eval(formula, {"__builtins__": {}}, {"B": batch, "T": positions, "S": past + positions})
    assert isinstance(value, int)
    return value


# ---------------------------------------------------------------- FLOPs


def test_flops_of_a_prompt_of_128(graph_of: Callable[[str], Graph]) -> None:
    found = trace(graph_of(EIGHT_B), Pass(batch=1, positions=128))
    assert found.total_flops == 1_929_782_493_184
    layer = [step for step in found.steps if step.layer == 17]
    assert sum(step.flops or 0 for step in layer) == 56_103_010_304
    scores_and_mix = [step.flops for step in layer if step.symbol in ("scores", "mixed") and step.flops]
    assert scores_and_mix == [134_217_728, 134_217_728]
    assert sum(scores_and_mix) == 268_435_456


def test_flops_of_one_token_after_127(graph_of: Callable[[str], Graph]) -> None:
    assert trace(graph_of(EIGHT_B), Pass(batch=1, positions=1, past=127)).total_flops == 15_076_425_728


def test_each_product_is_two_flops_a_multiply_add(graph_of: Callable[[str], Graph]) -> None:
    """Written out for batch 2, 3 positions after 5: nothing else in the layer has any."""
    found = trace(graph_of(EIGHT_B), Pass(batch=2, positions=3, past=5))
    layer = {step.id: step.flops for step in found.steps if step.layer == 0}
    tokens = 2 * 3
    expected = {
        "attention.q": 2 * tokens * 4096 * 4096,
        "attention.k": 2 * tokens * 4096 * 1024,
        "attention.v": 2 * tokens * 4096 * 1024,
        "attention.scores": 2 * tokens * 32 * 128 * 8,
        "attention.mixed": 2 * tokens * 32 * 8 * 128,
        "attention.projected": 2 * tokens * 4096 * 4096,
        "feed_forward.gate": 2 * tokens * 4096 * 14336,
        "feed_forward.up": 2 * tokens * 4096 * 14336,
        "feed_forward.down": 2 * tokens * 14336 * 4096,
    }
    assert {name.removeprefix("layers.0."): flops for name, flops in layer.items() if flops} == expected
    outside = {step.id: step.flops for step in found.steps if step.layer is None and step.flops}
    assert outside == {"output.projected": 2 * tokens * 4096 * 128256}


@settings(deadline=None, max_examples=40)
@given(
    name=st.sampled_from([EIGHT_B, "llama3.2-1b", "llama2-13b"]),
    batch=st.integers(1, 512),
    positions=st.integers(1, 200_000),
    past=st.integers(0, 200_000),
)
def test_formulas_at_numbers_are_the_numbers(
    name: str, batch: int, positions: int, past: int, graph_of: Callable[[str], Graph]
) -> None:
    graph = graph_of(name)
    symbolic = trace(graph)
    numeric = trace(graph, Pass(batch, positions, past))
    assert symbolic.total_flops is None
    assert numeric.total_flops == at(symbolic.total_flops_formula, batch, positions, past)
    for free, known in zip(symbolic.steps[:60], numeric.steps[:60], strict=True):
        assert known.flops == at(free.flops_formula, batch, positions, past)
        assert known.flops_formula == str(known.flops)


@pytest.mark.parametrize(
    ("sizes", "free"),
    [
        (Pass(), {"B", "T", "S"}),
        (Pass(batch=3), {"T", "S"}),
        (Pass(positions=4), {"B"}),
        (Pass(batch=3, positions=4), set()),
    ],
)
def test_what_is_not_given_stays_a_symbol(
    sizes: Pass, free: set[str], graph_of: Callable[[str], Graph]
) -> None:
    found = trace(graph_of(EIGHT_B), sizes)
    assert set(found.symbols) == free
    shown = {size for step in found.steps for size in step.shape if isinstance(size, str)}
    assert shown == free
    assert (found.total_flops is None) is bool(free)
    past = sizes.past or 0
    expected = 3 * (15_009_316_864 * 4 + 524_288 * 4 * (4 + past))
    assert at(found.total_flops_formula, 3, 4, past) == expected


def test_the_total_in_symbols(graph_of: Callable[[str], Graph]) -> None:
    """2 × the parameters of every matrix but the embedding, and 2 × 2 × 32 layers × 32 heads × 128 for attention."""
    matrices = 8_030_261_248 - 525_336_576 - 65 * 4_096
    assert (
        trace(graph_of(EIGHT_B)).total_flops_formula == f"{2 * matrices}*B*T + {2 * 2 * 32 * 32 * 128}*B*T*S"
    )


# ---------------------------------------------------------------- order, shapes, dtypes


def test_every_step_in_order(graph_of: Callable[[str], Graph]) -> None:
    found = trace(graph_of(EIGHT_B))
    expected: list[tuple[str, int | None, tuple[Any, ...], str, str]] = [
        ("tok_embeddings.embedded", None, ("B", "T", 4096), "BF16", "BF16")
    ]
    for layer in range(32):
        expected += [
            (f"layers.{layer}.{step}", layer, shape, dtype, computed)
            for step, shape, dtype, computed in LAYER
        ]
    expected += [(step, None, shape, dtype, computed) for step, shape, dtype, computed in AFTER]
    assert [
        (step.id, step.layer, step.shape, step.dtype, step.computed_in) for step in found.steps
    ] == expected


def test_shapes_in_numbers(graph_of: Callable[[str], Graph]) -> None:
    found = trace(graph_of(EIGHT_B), Pass(batch=2, positions=3, past=5))
    shapes = {
        step.id.removeprefix("layers.31."): step.shape for step in found.steps if step.layer in (None, 31)
    }
    assert shapes["attention.q"] == (2, 3, 32, 128)
    assert shapes["attention.keys"] == (2, 8, 8, 128)
    assert shapes["attention.weights"] == (2, 32, 3, 8)
    assert shapes["out.sum"] == (2, 3, 4096)
    assert shapes["output.logits"] == (2, 3, 128256)


def test_logits(graph_of: Callable[[str], Graph]) -> None:
    logits = trace(graph_of(EIGHT_B)).logits
    assert logits.axes == ("batch", "positions", "vocab_size")
    assert logits.shape == ("B", "T", 128256)
    assert logits.dtype == "F32"


def test_the_stored_dtype_is_what_flows(graph_of: Callable[[str], Graph]) -> None:
    """Llama 2 is stored in float16; the same steps leave it for float32 and come back."""
    steps = trace(graph_of("llama2-7b")).steps
    assert {step.dtype for step in steps} == {"F16", "F32"}
    wide = [step.id for step in steps if step.dtype == "F32" and not step.layer]
    assert wide == [
        "layers.0.attention_norm.normed",
        "layers.0.attention.weights",
        "layers.0.ffn_norm.normed",
        "norm.normed",
        "output.logits",
    ]


def test_biases_are_added_where_they_are(bound: Callable[..., Graph], small: dict[str, Any]) -> None:
    found = trace(bound(small | {"attention_bias": True, "mlp_bias": True}))
    names = [step.id.removeprefix("layers.1.") for step in found.steps if step.layer == 1]
    order = names.index
    assert order("attention.k") < order("attention.k_biased") < order("attention.k_rotated")
    assert order("attention.v") < order("attention.v_biased") < order("attention.values")
    assert order("attention.projected") < order("attention.projected_biased") < order("h.sum")
    assert order("feed_forward.gate") < order("feed_forward.gate_biased") < order("feed_forward.opened")
    assert order("feed_forward.down") < order("feed_forward.down_biased") < order("out.sum")
    plain = [step.id.removeprefix("layers.1.") for step in trace(bound(small)).steps if step.layer == 1]
    assert [name for name in names if not name.endswith("_biased")] == plain
    assert len(names) == len(plain) + 7


# ---------------------------------------------------------------- what steps read, and whose they are


def reads_only_what_is_there(found: Trace, graph: Graph) -> None:
    there = {*graph.inputs, *graph.weights, "x"}
    for step in found.steps:
        assert there.issuperset(step.inputs), step.id
        node = step.id.removeprefix(f"layers.{step.layer}.").partition(".")[0]
        there |= {f"{node}.{step.symbol}", node, "layers"}


@pytest.mark.parametrize("name", [EIGHT_B, "llama3.2-3b", "llama2-7b"])
def test_steps_read_what_earlier_steps_set(name: str, graph_of: Callable[[str], Graph]) -> None:
    graph = graph_of(name)
    reads_only_what_is_there(trace(graph), graph)


def test_inputs_by_name(graph_of: Callable[[str], Graph]) -> None:
    inputs = {step.id: step.inputs for step in trace(graph_of(EIGHT_B)).steps}
    assert inputs["tok_embeddings.embedded"] == ("tokens", "tok_embeddings.weight")
    assert inputs["layers.0.attention_norm.normed"] == ("x",)
    assert inputs["layers.0.attention.q"] == ("attention_norm", "attention.wq")
    assert inputs["layers.0.attention.scores"] == ("attention.q", "attention.keys")
    assert inputs["layers.0.attention.mixed"] == ("attention.weights", "attention.values")
    assert inputs["layers.0.h.sum"] == ("x", "attention")
    assert inputs["output.projected"] == ("norm", "output.weight")


@pytest.mark.parametrize(
    ("name", "total"),
    [
        (EIGHT_B, 8_030_261_248),
        ("llama3.2-1b", 1_235_814_400),  # the tied output has none of its own
        ("llama-guard-3-1b", 1_498_482_688),
        ("llama3.1-405b:bf16-mp16", 410_081_247_232),
    ],
)
def test_the_steps_parameters_add_up(name: str, total: int, graph_of: Callable[[str], Graph]) -> None:
    assert sum(step.parameters for step in trace(graph_of(name)).steps) == total


def test_a_step_belongs_to_a_component_that_is_counted_or_to_its_node(
    graph_of: Callable[[str], Graph],
) -> None:
    graph = graph_of(EIGHT_B)
    owners = {
        step.id.removeprefix("layers.0."): step.component for step in trace(graph).steps if not step.layer
    }
    assert owners["attention.q"] == "attention.wq"
    assert owners["attention.scores"] == "attention"
    assert owners["feed_forward.down"] == "feed_forward.w2"
    assert owners["norm.scaled"] == "norm"
    assert owners["output.projected"] == "output"
    components = {weight.component for weight in graph.weights.values()}
    assert components <= set(owners.values())
    assert len(components) == 12
    assert parameters.total(graph) == 8_030_261_248


def test_every_step_has_its_equation(graph_of: Callable[[str], Graph]) -> None:
    assert all(step.equation for step in trace(graph_of(EIGHT_B)).steps)


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        (Pass(batch=0), "--batch is 0, expected 1 or more"),
        (Pass(positions=-3), "--positions is -3, expected 1 or more"),
        (Pass(positions=4, past=-1), "--past is -1, expected 0 or more"),
    ],
)
def test_sizes_that_are_none_are_refused(sizes: Pass, words: str, graph_of: Callable[[str], Graph]) -> None:
    with pytest.raises(UsageError, match=words):
        trace(graph_of(EIGHT_B), sizes)


def test_past_alone_is_refused_since_keys_depend_on_positions_too(graph_of: Callable[[str], Graph]) -> None:
    with pytest.raises(UsageError, match="--past needs --positions"):
        trace(graph_of(EIGHT_B), Pass(batch=3, past=5))
