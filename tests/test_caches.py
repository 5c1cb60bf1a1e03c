"""What layers keep, count and compute where they are of different kinds: windows, latents, states, buffers, chosen experts.

`tests/keeping` describes an architecture of eight layers: layer 0 is a recurrence with two states; layers 2 and 5 (every
third) cache a latent; 3 and 7 (every fourth) cache all keys and values; 1, 4 and 6 cache a window of 5 positions. Every layer
has a router with a buffer and routed experts. All sizes are different, and every figure is written out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from atlas.analyse import counts, devices, parameters
from atlas.analyse.diff import diff
from atlas.analyse.flops import flops
from atlas.analyse.fused import fused
from atlas.analyse.memory import memory
from atlas.analyse.show import facts, show
from atlas.analyse.trace import Pass, trace
from atlas.errors import UsageError
from atlas.graph import tensors
from atlas.graph.binding import bind
from atlas.graph.graph import Graph
from atlas.report.memory import memory_table
from atlas.resolution import config
from atlas.spec.library import Library

KEEPING = Path(__file__).with_name("keeping")

D, H, KV, W = 20, 12, 6, 10  # width, heads, key and value heads, width of a head
LATENT, STATES, KEY, VALUE, KERNEL = 9, 18, 7, 8, 4
EXPERTS, CHOSEN, FFN = 13, 3, 16
VOCABULARY, ROWS, WINDOW = 50, 64, 5

SETTINGS: dict[str, Any] = {
    "model_type": "keeping",
    "hidden_size": D,
    "num_hidden_layers": 8,
    "num_attention_heads": H,
    "num_key_value_heads": KV,
    "head_dim": W,
    "vocab_size": VOCABULARY,
    "position_rows": ROWS,
    "latent_dim": LATENT,
    "state_heads": STATES,
    "state_key_dim": KEY,
    "state_value_dim": VALUE,
    "kernel_dim": KERNEL,
    "num_experts": EXPERTS,
    "num_experts_per_tok": CHOSEN,
    "moe_intermediate_size": FFN,
    "max_position_embeddings": 60,
    "sliding_window": WINDOW,
    "torch_dtype": "bfloat16",
}

ATTENTION = 2 * H * W * D + 2 * KV * W * D  # a layer's parameters
LATENT_ATTENTION = LATENT * D + 2 * H * LATENT * D
RECURRENCE = STATES * KEY * D + 2 * STATES * VALUE * D + STATES * D + STATES * VALUE * KERNEL
EXPERT = 2 * FFN * D + FFN
ROUTER = EXPERTS * D
ENDS = 2 * VOCABULARY * D + ROWS * D
TOTAL = 2 * D + ENDS + 5 * ATTENTION + 2 * LATENT_ATTENTION + RECURRENCE + 8 * (ROUTER + EXPERTS * EXPERT)

PER_POSITION = 2 * KV * W * 2  # bytes of keys and values in one layer: BF16
LATENT_POSITION = LATENT * 2
CONVOLUTION = STATES * VALUE * KERNEL * 2  # the last inputs, BF16
SUMS = STATES * KEY * VALUE * 4  # computed and kept in F32


@pytest.fixture(scope="module")
def keeping() -> Library:
    return Library(KEEPING)


@pytest.fixture(scope="module")
def graph(keeping: Library) -> Graph:
    return bound(keeping)


def bound(library: Library, **changes: Any) -> Graph:
    return bind(config.describe(SETTINGS | changes, library, id="keeping"), library)


def test_layers(graph: Graph) -> None:
    blocks = [block.id for layer, block in graph.blocks_in_order() if layer is not None][::2]
    expected = ["recurrence", "windowed", "latent", "full", "windowed", "latent", "windowed", "full"]
    assert blocks == expected


# ---------------------------------------------------------------- parameters


def test_a_buffer_is_stored_and_no_parameter(graph: Graph, keeping: Library) -> None:
    found = counts.count(graph, keeping, by="tensor")
    assert found.total_parameters == found.logical_parameters == TOTAL
    assert found.stored_elements == TOTAL + 8 * EXPERTS
    assert (found.buffer_tensors, found.buffer_elements) == (8, 8 * EXPERTS)
    assert found.weight_bytes == 2 * (TOTAL + 8 * EXPERTS)
    assert sum(row.parameters for row in found.components) == TOTAL
    assert sum(row.parameters_per_instance * row.instances for row in found.components) == TOTAL
    assert sum(row.parameters for row in found.tensors) == TOTAL
    assert sum(row.bytes or 0 for row in found.components) == found.weight_bytes
    assert sum(row.bytes or 0 for row in found.tensors) == found.weight_bytes
    (buffer,) = [row for row in found.components if not row.trained]
    assert (buffer.id, buffer.parameters, buffer.bytes) == ("router.correction", 0, 2 * 8 * EXPERTS)
    assert buffer.calculation == "13, not trained"
    layers = counts.count(graph, keeping, by="layer").layers
    assert layers[0].parameters == RECURRENCE + ROUTER + EXPERTS * EXPERT
    assert layers[0].bytes == 2 * (layers[0].parameters + EXPERTS)
    assert sum(layer.parameters for layer in layers) == TOTAL - ENDS


def test_a_weight_that_only_one_of_two_blocks_has(graph: Graph, keeping: Library) -> None:
    """`full` is `windowed` with a bias: two layers have it, though five have the node."""
    by_id = {row.id: row for row in counts.count(graph, keeping).components}
    assert (by_id["attention.bo"].instances, by_id["attention.bo"].parameters) == (2, 2 * D)
    assert by_id["attention.wo"].instances == 5
    names = {tensor.name for tensor in tensors.expected(graph, "hf") if tensor.name.endswith("o.bias")}
    assert names == {"layers.3.o.bias", "layers.7.o.bias"}


def test_a_model_without_buffers_has_none(graph_of: Any, library: Library) -> None:
    found = counts.count(graph_of("llama3.1-8b"), library)
    assert (found.buffer_tensors, found.buffer_elements) == (0, 0)
    assert all(row.trained for row in found.components)


def test_active_parameters(graph: Graph) -> None:
    """Three of thirteen experts with their biases, the table of positions whole, no buffer."""
    assert parameters.active(graph) == TOTAL - 8 * (EXPERTS - CHOSEN) * EXPERT


def test_the_trace_counts_no_buffer(graph: Graph) -> None:
    by_id = {step.id: step.parameters for step in trace(graph).steps}
    assert by_id["layers.1.router.corrected"] == 0
    assert by_id["layers.1.router.logits"] == ROUTER


# ---------------------------------------------------------------- what is kept


def test_bytes_of_a_position(graph: Graph) -> None:
    found = memory(graph, context=4)
    assert found.kv_bytes_per_token == 5 * PER_POSITION + 2 * LATENT_POSITION == 1_236
    assert found.kv_bytes_per_token_beyond_window == 2 * PER_POSITION + 2 * LATENT_POSITION == 516
    assert found.kv_bytes == 4 * 1_236


@pytest.mark.parametrize("context", [1, WINDOW, WINDOW + 1, 60])
def test_a_window_keeps_its_positions(context: int, graph: Graph) -> None:
    found = memory(graph, batch=3, context=context)
    windowed = min(context, WINDOW)
    expected = 3 * (2 * context * PER_POSITION + 3 * windowed * PER_POSITION + 2 * context * LATENT_POSITION)
    assert found.kv_bytes == expected
    kinds = {kind.kind: kind for kind in found.by_layer_kind}
    assert {name: (kind.layers, kind.window) for name, kind in kinds.items()} == {
        "recurrence": (1, None),
        "latent": (2, None),
        "full": (2, None),
        "windowed": (3, WINDOW),
    }
    assert kinds["windowed"].kv_bytes == 3 * 3 * windowed * PER_POSITION
    assert kinds["windowed"].kv_bytes_per_token == 3 * PER_POSITION
    assert sum(kind.kv_bytes for kind in found.by_layer_kind) == expected


def test_a_whole_context_reserved(graph: Graph) -> None:
    """An engine that reserves the model's own 60 positions: 5 in the layers with a window."""
    found = memory(graph, context=3)
    assert found.kv_reserved_bytes == memory(graph, context=60).kv_bytes
    assert found.kv_reserved_bytes == 60 * 516 + WINDOW * 3 * PER_POSITION


def test_states_do_not_grow(graph: Graph) -> None:
    for context in (1, 60):
        found = memory(graph, batch=2, context=context)
        assert found.state_bytes == 2 * (CONVOLUTION + SUMS)
        assert found.total_bytes == sum(
            (
                found.weights_bytes or 0,
                found.kv_bytes,
                found.state_bytes,
                found.logits_bytes,
                found.activation_bytes,
            )
        )
    (kind,) = [kind for kind in found.by_layer_kind if kind.state_bytes]
    assert (kind.kind, kind.kv_bytes) == ("recurrence", 0)
    assert kind.state_elements == STATES * VALUE * KERNEL + STATES * KEY * VALUE
    assert memory(graph, kv_dtype="F8_E4M3").state_bytes == CONVOLUTION + SUMS  # a state is no KV cache


def test_what_is_written_out(graph: Graph) -> None:
    how = memory(graph, batch=2, context=60).calculations
    assert (
        how["kv_per_token"] == "(2 layers × 1 × 9 + 2 layers × 2 × 6 × 10 + 3 layers × 2 × 6 × 10) × 2 bytes"
    )
    assert how["kv_per_token_beyond_window"] == "(2 layers × 1 × 9 + 2 layers × 2 × 6 × 10) × 2 bytes"
    assert how["kv"] == "batch 2 × (60 positions × 516 bytes + 5 positions × 720 bytes)"
    states = "(1 layers × 18 × 8 × 4 × 2 bytes + 1 layers × 18 × 7 × 8 × 4 bytes)"
    assert how["state"] == f"batch 2 × {states}"


def test_the_table(graph: Graph, graph_of: Any) -> None:
    rows = {row[1]: row for row in memory_table(memory(graph, context=60)).rows}
    assert rows["kv_bytes_per_token_beyond_window"][4] == 516
    assert rows["kv_bytes.windowed"][0] == "KV cache of 3 layers (windowed, window 5)"
    assert rows["kv_bytes.windowed"][4] == 3 * WINDOW * PER_POSITION
    assert rows["state_bytes"][4] == CONVOLUTION + SUMS
    plain = {row[1] for row in memory_table(memory(graph_of("llama3.1-8b"))).rows}
    assert plain.isdisjoint({"kv_bytes_per_token_beyond_window", "state_bytes", "kv_bytes.attention"})


def test_without_a_window_every_position_is_kept(keeping: Library) -> None:
    found = memory(bound(keeping, sliding_window=10**6), context=60)
    assert found.kv_bytes == 60 * found.kv_bytes_per_token


def test_the_longest_context_that_fits(graph: Graph) -> None:
    """Beyond the window a position adds 516 bytes, inside it 1,236."""
    for context in (3, 40):
        size = memory(graph, context=context).total_bytes or 0
        (fit,) = memory(graph, context=60, fit=[size]).fit
        assert fit.context == context
        (less,) = memory(graph, context=60, fit=[size - 1]).fit
        assert less.context == context - 1


# ---------------------------------------------------------------- devices


def test_devices_divide_heads_and_copy_a_latent(graph: Graph) -> None:
    """Two devices: half of the heads of keys, values and states, the latent whole on each."""
    found = memory(graph, context=60, devices=2)
    kept = 60 * 2 * PER_POSITION // 2 + WINDOW * 3 * PER_POSITION // 2 + 60 * 2 * LATENT_POSITION
    states = (CONVOLUTION + SUMS) // 2
    weights = 2 * devices.per_device(graph, 2, buffers=True)
    assert weights == 2 * (
        devices.per_device(graph, 2) + 8 * EXPERTS
    )  # the buffer is a vector: whole on each
    assert found.per_device_bytes == weights + kept + states + found.logits_bytes + found.activation_bytes
    (note,) = [note for note in found.notes if "without heads" in note]
    assert "latent.latents" in note


def test_heads_repeat_only_where_query_heads_divide_further(keeping: Library) -> None:
    """Eighteen heads of the recurrence over 36 devices are a part of no other heads: they are not repeated, and refused."""
    graph = bound(keeping)
    assert devices.kv_head_copies(graph, 12) == 2
    assert devices.cached_on_each(graph, 120, (("n_kv_heads",), ("head_dim",)), 12) == 20
    assert devices.cached_on_each(graph, 120, (("n_state_heads",),), 36) == 120
    assert devices.cached_on_each(graph, 9, (("latent_dim",),), 3) == 9
    with pytest.raises(UsageError, match="does not divide evenly"):
        devices.per_device(graph, 7)


# ---------------------------------------------------------------- FLOPs


def test_flops(graph: Graph) -> None:
    """3 positions after 7, two sequences. A convolution is a product with its kernel, a recurrence three with its state."""
    found = {row.id: row.flops for row in flops(graph, batch=2, positions=3, past=7).components}
    tokens = 2 * 3
    assert found["recurrence.kernel"] == 2 * tokens * STATES * VALUE * KERNEL
    assert found["recurrence"] == 6 * tokens * STATES * KEY * VALUE
    assert found["experts.w1"] == 8 * 2 * tokens * CHOSEN * D * FFN
    assert found["attention"] == 5 * 2 * 2 * tokens * 10 * H * W  # all ten keys, the window or not
    assert found["latent"] == 2 * 3 * 2 * tokens * 10 * H * LATENT
    assert found["router"] == 8 * 2 * tokens * D * EXPERTS


def test_the_convention_says_what_is_counted(graph: Graph, graph_of: Any) -> None:
    found = flops(graph, positions=3, past=7)
    assert "recurrence" in found.convention
    assert "recurrence" not in flops(graph_of("llama3.1-8b")).convention
    (note,) = found.notes
    assert "window of 5 positions" in note
    assert "all 10 keys" in note
    assert flops(graph, positions=5).notes == ()


def test_symbols_of_a_recurrence(graph: Graph) -> None:
    by_id = {step.id: step for step in trace(graph).steps}
    assert by_id["layers.0.recurrence.read"].flops_formula == f"{6 * STATES * KEY * VALUE}*B*T"
    assert by_id["layers.0.recurrence.smooth"].flops_formula == f"{2 * STATES * VALUE * KERNEL}*B*T"
    assert by_id["layers.1.attention.scores"].flops_formula == f"{2 * H * W}*B*T*S"
    whole = trace(graph, Pass(1, 3, 7))
    assert whole.total_flops == flops(graph, positions=3, past=7).total_flops


def visible(positions: int, past: int, window: int | None) -> int:
    """Pairs of a query and a key that it sees, one by one."""
    return sum(
        1
        for t in range(past, past + positions)
        for s in range(past + positions)
        if s <= t and (window is None or s > t - window)
    )


@pytest.mark.parametrize(("positions", "past"), [(1, 0), (3, 7), (12, 0), (4, 3), (1, 59), (5, 0), (2, 4)])
def test_masked_pairs(positions: int, past: int, graph: Graph) -> None:
    pairs = positions * (positions + past)
    windowed = pairs - visible(positions, past, WINDOW)
    causal = pairs - visible(positions, past, None)
    each = 2 * 2 * H * W  # scores and mix
    latent = 2 * 3 * H * LATENT
    expected = each * (3 * windowed + 2 * causal) + 2 * latent * causal
    assert flops(graph, positions=positions, past=past).masked_flops == expected


def test_a_fused_kernel_writes_no_scores(graph: Graph) -> None:
    """Capped scores, and scores that are a sum of two products."""
    unwritten = fused(graph).unwritten
    assert unwritten >= {f"attention.{step}" for step in ("scores", "capped", "masked", "weights")}
    assert unwritten >= {f"latent.{step}" for step in ("content", "place", "scores", "masked", "weights")}
    assert not unwritten & {"attention.mixed", "attention.keys", "latent.mixed", "recurrence.read"}


def test_bytes_of_a_pass(graph: Graph) -> None:
    """One position after 59: a window of 5 is read, its keys and values; a state is read and written."""
    rows = {row.id: row for row in flops(graph, past=59).components}
    queries, full, kept = H * W * 2, 60 * KV * W * 2, WINDOW * KV * W * 2
    assert rows["attention"].bytes == 2 * (2 * queries + 2 * full) + 3 * (2 * queries + 2 * kept)
    values, keys, gate = STATES * VALUE * 2, STATES * KEY * 2, STATES * 2
    assert rows["recurrence"].bytes == 2 * keys + 2 * values + 2 * gate + 2 * SUMS
    assert rows["recurrence.kernel"].bytes == 2 * values + CONVOLUTION + 2 * CONVOLUTION
    assert rows["experts.w1"].bytes == 8 * 2 * (D + CHOSEN * FFN * D + CHOSEN * FFN)


# ---------------------------------------------------------------- facts and differences


def test_two_windows_differ(keeping: Library) -> None:
    found = diff(bound(keeping), bound(keeping, sliding_window=7))
    assert [(row.name, row.a, row.b, row.described) for row in found.settings] == [("window", 5, 7, True)]
    assert found.same_tensors
    assert not diff(bound(keeping), bound(keeping)).differs


def test_what_an_architecture_lacks_and_another_has_off_is_no_difference(
    keeping: Library, graph_of: Any
) -> None:
    names = {row.name for row in diff(bound(keeping), graph_of("llama3.1-8b")).settings}
    assert "window" in names
    assert "attention_bias" not in names


def test_facts(graph: Graph, keeping: Library) -> None:
    found = facts(graph, keeping)
    assert found.settings == {"window": 5}
    assert found.layer_kinds == {"recurrence": 1, "latent": 2, "full": 2, "windowed": 3}
    assert (found.kv_bytes_per_token, found.kv_bytes_per_token_beyond_window) == (1_236, 516)
    assert found.state_bytes == CONVOLUTION + SUMS
    assert found.dims["n_routed"] == EXPERTS
    assert show([graph], keeping).axes["latent_dim"] == "width of the cached latent"
