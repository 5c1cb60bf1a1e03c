"""Bytes: weights, KV cache, logits, the largest activation, and the longest context that fits, to the byte.

The 8B in bfloat16, one token at a time: weights 16,060,522,496 bytes; 131,072 for each cached position; logits
128,256 × 4 = 513,024; the largest activation is the projected scores of the vocabulary, 128,256 × 2 = 256,512. Without
fused attention it is the attention weights, 32 heads × context × 4, from 2,005 positions on.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atlas.analyse.memory import Memory, memory
from atlas.errors import NotDescribed, UsageError
from atlas.graph.graph import Graph

EIGHT_B = "llama3.1-8b"
WEIGHTS = 2 * 8_030_261_248
PER_TOKEN = 32 * 2 * 8 * 128 * 2  # layers, keys and values, heads, their width, bytes


def product(calculation: str) -> int:
    """All the numbers of a calculation multiplied: names may stand between them."""
    return math.prod(int(number) for number in re.findall(r"\d+", calculation.replace(",", "")))


# ---------------------------------------------------------------- the KV cache


def test_the_cache_of_the_8b(graph_of: Callable[[str], Graph]) -> None:
    found = memory(graph_of(EIGHT_B), context=8_192)
    assert found.kv_bytes_per_token == PER_TOKEN == 131_072
    assert found.kv_bytes == 131_072 * 8_192 == 2**30  # 1.00 GiB
    assert found.kv_reserved_bytes == 131_072 * 131_072
    assert (found.dtype, found.kv_dtype, found.context, found.batch) == ("BF16", "BF16", 8_192, 1)


@pytest.mark.parametrize(
    ("name", "per_token"),
    [
        ("llama2-7b", 32 * 2 * 32 * 128 * 2),  # not grouped: four times the 8B's
        ("llama2-13b", 40 * 2 * 40 * 128 * 2),
        ("llama3.1-70b", 80 * 2 * 8 * 128 * 2),
        ("llama3.1-405b:bf16-mp8", 126 * 2 * 8 * 128 * 2),
        ("llama3.1-405b:bf16-mp16", 126 * 2 * 16 * 128 * 2),
        ("llama3.2-1b", 16 * 2 * 8 * 64 * 2),
    ],
)
def test_the_cache_goes_with_the_key_and_value_heads(
    name: str, per_token: int, graph_of: Callable[[str], Graph]
) -> None:
    assert memory(graph_of(name), context=1).kv_bytes_per_token == per_token


@pytest.mark.parametrize(
    ("change", "heads", "width"),
    [
        ({"num_key_value_heads": 12}, 12, 4),
        ({"num_key_value_heads": None}, 12, 4),  # multi-head: as many as query heads
        ({"num_key_value_heads": 6}, 6, 4),
        ({"num_key_value_heads": 1}, 1, 4),  # multi-query
        ({"num_key_value_heads": 6, "head_dim": 10}, 6, 10),
    ],
)
def test_small_caches(
    change: dict[str, Any], heads: int, width: int, bound: Callable[..., Graph], small: dict[str, Any]
) -> None:
    found = memory(bound(small | change), batch=7, context=50)
    assert found.kv_bytes_per_token == 3 * 2 * heads * width * 2
    assert found.kv_bytes == 7 * 50 * found.kv_bytes_per_token
    assert found.kv_reserved_bytes == 7 * 64 * found.kv_bytes_per_token


def test_dtypes(graph_of: Callable[[str], Graph]) -> None:
    """The cache has the activations' dtype, which 16 or 32 bits of the weights set and fewer do not."""
    graph = graph_of(EIGHT_B)
    for code, bits in (("I8", 8), ("F8_E4M3", 8), ("F4", 4)):
        found = memory(graph, dtype=code, context=8_192)
        assert found.weights_bytes == 8_030_261_248 * bits // 8
        assert (found.kv_dtype, found.kv_bytes) == ("BF16", 2**30)
        assert any("scales" in note for note in found.notes)
    assert memory(graph, dtype="F16", context=8).kv_dtype == "F16"
    assert memory(graph, dtype="F64", context=8).kv_dtype == "BF16"
    assert memory(graph, dtype="I8", kv_dtype="F8_E4M3", context=8_192).kv_bytes == 2**29
    assert memory(graph, dtype="F32", context=8).kv_bytes_per_token == 2 * PER_TOKEN
    assert memory(graph, dtype="F32", context=8).weights_bytes == 4 * 8_030_261_248
    found = memory(graph, kv_dtype="F8_E4M3", context=8)
    assert (found.weights_bytes, found.kv_bytes_per_token) == (WEIGHTS, PER_TOKEN // 2)
    assert memory(graph, dtype="F4", context=8).weights_bytes == 8_030_261_248 // 2


@pytest.mark.parametrize(
    ("stored", "cache"),
    [("float8_e4m3fn", "BF16"), ("float64", "BF16"), ("float16", "F16"), ("float32", "F32")],
)
def test_the_cache_of_weights_stored_in_other_dtypes(
    stored: str, cache: str, bound: Callable[..., Graph], small: dict[str, Any]
) -> None:
    """Activations are computed, and keys and values cached, in F32, F16 or BF16 only."""
    found = memory(bound(small | {"torch_dtype": stored}))
    assert found.kv_dtype == cache
    assert found.kv_bytes_per_token == 3 * 2 * 6 * 4 * (4 if cache == "F32" else 2)


def test_a_tied_matrix_takes_its_bytes_once(graph_of: Callable[[str], Graph]) -> None:
    assert memory(graph_of("llama3.2-1b"), context=8).weights_bytes == 2 * 1_235_814_400


# ---------------------------------------------------------------- one pass, and the sum


def test_logits_and_the_largest_activation(graph_of: Callable[[str], Graph]) -> None:
    graph = graph_of(EIGHT_B)
    short = memory(graph, context=2_003, attention="eager")
    assert (short.logits_bytes, short.activation_bytes) == (128_256 * 4, 128_256 * 2)
    long = memory(graph, context=2_005, attention="eager")
    assert long.activation_bytes == 32 * 2_005 * 4
    prompt = memory(graph, batch=3, context=4_096, positions=4_096, attention="eager")
    assert prompt.logits_bytes == 3 * 4_096 * 128_256 * 4
    assert prompt.activation_bytes == 3 * 32 * 4_096 * 4_096 * 4
    assert "attention.weights" in prompt.calculations["activation"]
    assert any("One pass of 1 position of" in note for note in short.notes)
    assert any("One pass of 4,096 positions of" in note for note in prompt.notes)


def test_fused_attention_has_no_scores_in_memory(graph_of: Callable[[str], Graph]) -> None:
    """8,192 positions: eager weights take 32 × 8,192² × 4 = 8 GiB; fused, the vocabulary's scores are the largest."""
    graph = graph_of(EIGHT_B)
    eager = memory(graph, context=8_192, positions=8_192, attention="eager")
    assert eager.activation_bytes == 8 * 2**30
    found = memory(graph, context=8_192, positions=8_192)
    assert found.attention == "fused"
    assert found.activation_bytes == 8_192 * 128_256 * 2
    assert found.total_bytes is not None
    assert eager.total_bytes == found.total_bytes + 8 * 2**30 - 8_192 * 128_256 * 2
    assert "attention is fused" in " ".join(found.notes)
    assert "attention is not fused" in " ".join(eager.notes)


def test_the_sum(graph_of: Callable[[str], Graph]) -> None:
    found = memory(graph_of(EIGHT_B), batch=2, context=10_000)
    expected = WEIGHTS + 2 * 10_000 * 131_072 + 2 * 128_256 * 4 + 2 * 128_256 * 2
    assert found.total_bytes == found.per_device_bytes == expected


def test_the_context_is_the_models_own_by_default(graph_of: Callable[[str], Graph]) -> None:
    found = memory(graph_of("llama-guard-2-8b"))
    assert found.context == 8_192  # the catalogue says 4,096; the published configuration 8,192
    assert found.kv_bytes == found.kv_reserved_bytes == 2**30


def test_every_calculation_gives_its_figure(graph_of: Callable[[str], Graph]) -> None:
    found = memory(graph_of(EIGHT_B), batch=2, context=300, positions=5)
    figures = {
        "weights": found.weights_bytes,
        "kv_per_token": found.kv_bytes_per_token,
        "kv": found.kv_bytes,
        "kv_reserved": found.kv_reserved_bytes,
        "logits": found.logits_bytes,
        "activation": found.activation_bytes,
    }
    assert found.calculations.keys() == figures.keys()
    for name, figure in figures.items():
        assert product(found.calculations[name].rpartition(":")[2]) == figure, name


def test_devices(graph_of: Callable[[str], Graph]) -> None:
    """Eight devices: an eighth of every matrix, every norm, one key and value head's cache, and the whole pass."""
    found = memory(graph_of(EIGHT_B), context=8_192, devices=8)
    norms = 65 * 4_096
    weights = 2 * ((8_030_261_248 - norms) // 8 + norms)
    assert found.per_device_bytes == weights + 2**30 // 8 + 128_256 * 6
    assert found.total_bytes == WEIGHTS + 2**30 + 128_256 * 6


def test_sixteen_devices_have_each_key_and_value_head_twice(graph_of: Callable[[str], Graph]) -> None:
    found = memory(graph_of(EIGHT_B), context=8_192, devices=16)
    norms, keys_and_values = 65 * 4_096, 32 * 2 * 4_194_304
    weights = 2 * ((8_030_261_248 - norms - keys_and_values) // 16 + keys_and_values // 8 + norms)
    assert found.per_device_bytes == weights + 2**30 // 8 + 128_256 * 6


def test_repeated_heads_are_said(graph_of: Callable[[str], Graph]) -> None:
    found = memory(graph_of(EIGHT_B), context=8_192, devices=16)
    assert found.kv_head_copies == 2
    assert any("each is on 2 devices" in note for note in found.notes)
    assert memory(graph_of(EIGHT_B), context=8_192, devices=8).kv_head_copies == 1


# ---------------------------------------------------------------- the longest context that fits


def bytes_at(context: int, batch: int = 1) -> int:
    """What the 8B needs at a context, with fused attention, by hand."""
    return WEIGHTS + batch * (context * 131_072 + 128_256 * 4 + 128_256 * 2)


def eager_bytes_at(context: int) -> int:
    """The same without fused attention, beyond 2,004 positions."""
    return WEIGHTS + context * 131_072 + 128_256 * 4 + 32 * context * 4


@settings(deadline=None, max_examples=60)
@given(context=st.integers(1, 131_071), batch=st.integers(1, 9), spare=st.integers(0, 131_071))
def test_the_border_is_exact(context: int, batch: int, spare: int, graph_of: Callable[[str], Graph]) -> None:
    """A size that has room for this context, and lacks at least a byte for one position more."""
    size = bytes_at(context, batch) + spare
    assert size < bytes_at(context + 1, batch)
    (fit,) = memory(graph_of(EIGHT_B), batch=batch, fit=[size]).fit
    assert (fit.size_bytes, fit.context, fit.limited_by) == (size, context, "memory")
    (one_less,) = memory(graph_of(EIGHT_B), batch=batch, fit=[bytes_at(context, batch) - 1]).fit
    assert one_less.context == context - 1


def test_sizes_people_have(graph_of: Callable[[str], Graph]) -> None:
    """(24 × 10⁹ − 16,061,292,032) / 131,072 = 60,567.5; 16 × 10⁹ do not hold the weights; 80 × 10⁹ hold it all."""
    sizes = [16 * 10**9, 24 * 10**9, 80 * 10**9]
    found = memory(graph_of(EIGHT_B), fit=sizes)
    assert [(fit.context, fit.limited_by) for fit in found.fit] == [
        (0, "memory"),
        (60_567, "memory"),
        (131_072, "model"),
    ]
    assert bytes_at(60_567) <= 24 * 10**9 < bytes_at(60_568)
    # Eager, (24 × 10⁹ − 16,061,035,520) / 131,200 = 60,510.4: each position adds 32 heads × 4 bytes of scores.
    (eager,) = memory(graph_of(EIGHT_B), fit=sizes[1:2], attention="eager").fit
    assert eager.context == 60_510
    assert eager_bytes_at(60_510) <= 24 * 10**9 < eager_bytes_at(60_511)


def test_whether_it_fits_and_what_is_short(graph_of: Callable[[str], Graph]) -> None:
    """The whole context into 24 GB: each of 2 devices needs half of the matrices and of the cache, and fits."""
    found = memory(graph_of(EIGHT_B), fit=[24 * 10**9, 80 * 10**9])
    small, large = found.fit
    assert (small.fits, small.short_bytes) == (False, bytes_at(131_072) - 24 * 10**9)
    assert (small.devices, small.sequences) == (2, 0)
    assert (large.fits, large.short_bytes, large.devices) == (True, 0, 1)
    # (80 × 10⁹ − weights) / (131,072 × 131,072 + 769,536) = 3.72 sequences of the whole context
    assert large.sequences == 3
    assert bytes_at(131_072, 3) <= 80 * 10**9 < bytes_at(131_072, 4)


def test_the_number_of_devices_it_takes(graph_of: Callable[[str], Graph]) -> None:
    """70.55 B numbers of 2 bytes are 141 GB: over 2 devices of 80 GB they fit with a short context, over 4 of 40 GB not."""
    graph = graph_of("llama3.1-70b")
    fits = memory(graph, context=1_024, fit=[80 * 10**9, 40 * 10**9, 10**9]).fit
    assert [fit.devices for fit in fits] == [2, 4, None]
    assert memory(graph, context=1_024, devices=4, fit=[80 * 10**9]).fit[0].devices == 4
    for fit in fits[:2]:
        assert fit.devices is not None
        assert (memory(graph, context=1_024, devices=fit.devices).per_device_bytes or 0) <= fit.size_bytes
        below = memory(graph, context=1_024, devices=fit.devices // 2).per_device_bytes or 0
        assert below > fit.size_bytes


def test_reserve_and_utilization(graph_of: Callable[[str], Graph]) -> None:
    """Of 24 × 10⁹ bytes nine tenths, less 10⁹: 20.6 × 10⁹ are filled and 3.4 × 10⁹ are reserved."""
    graph = graph_of(EIGHT_B)
    found = memory(graph, fit=[24 * 10**9], reserve=10**9, utilization="0.9")
    (fit,) = found.fit
    assert (found.reserved_bytes, fit.reserved_bytes) == (10**9, 34 * 10**8)
    assert fit.size_bytes == 24 * 10**9
    assert fit.context == memory(graph, fit=[206 * 10**8]).fit[0].context
    assert fit.short_bytes == bytes_at(131_072) - 206 * 10**8
    (whole,) = memory(graph, fit=[24 * 10**9]).fit
    assert whole.reserved_bytes == 0
    # Exactly as written: 0.29 × 100 is 29 bytes, not 28.999….
    assert memory(graph, fit=[100], utilization="0.29").fit[0].reserved_bytes == 71
    assert memory(graph, fit=[100], utilization=0.29).fit[0].reserved_bytes == 71


def test_a_longer_context_than_the_models_own_is_searched(graph_of: Callable[[str], Graph]) -> None:
    (fit,) = memory(graph_of(EIGHT_B), context=200_000, fit=[80 * 10**9]).fit
    assert (fit.fits, fit.context, fit.limited_by) == (True, 200_000, "asked")


# ---------------------------------------------------------------- settings that are not described


def test_a_sliding_window_matters_beyond_it_only(bound: Callable[..., Graph], small: dict[str, Any]) -> None:
    """40 of 64 positions: up to 40 every key is attended to, as without a window."""
    graph = bound(small | {"sliding_window": 40})
    plain = bound(small)
    for context in (1, 40):
        found, other = memory(graph, context=context), memory(plain, context=context)
        assert found.kv_bytes == other.kv_bytes
        assert found.total_bytes == other.total_bytes
        assert found.kv_reserved_bytes is None  # of 64 positions it is not known
        assert any("inside it and not affected" in note for note in found.notes)
    for context in (41, None):
        with pytest.raises(NotDescribed, match="sliding window of 40 positions") as caught:
            memory(graph, context=context)
        assert "contexts of up to 40 positions are answered" in caught.value.hint
    (fit,) = memory(graph, context=8, fit=[10**9]).fit
    assert (fit.context, fit.limited_by) == (40, "window")


@pytest.mark.parametrize("window", [None, 64, 100])
def test_a_window_as_long_as_the_context(
    window: int | None, bound: Callable[..., Graph], small: dict[str, Any]
) -> None:
    found = memory(bound(small | {"sliding_window": window}))
    assert found.total_bytes == memory(bound(small)).total_bytes
    assert found.kv_reserved_bytes == memory(bound(small)).kv_reserved_bytes


QUANTISED = {"quantization_config": {"quant_method": "gptq", "bits": 4}}


def test_a_quantisation_leaves_the_weights_open(bound: Callable[..., Graph], small: dict[str, Any]) -> None:
    graph, plain = bound(small | QUANTISED), memory(bound(small))
    found = memory(graph, fit=[10**9])
    assert (found.weights_bytes, found.total_bytes, found.per_device_bytes) == (None, None, None)
    assert "quantised" in (found.weights_reason or "")
    assert (found.kv_bytes, found.kv_reserved_bytes) == (plain.kv_bytes, plain.kv_reserved_bytes)
    assert (found.logits_bytes, found.activation_bytes) == (plain.logits_bytes, plain.activation_bytes)
    (fit,) = found.fit
    assert (fit.fits, fit.context, fit.short_bytes, fit.devices) == (None, None, None, None)
    given = memory(graph, dtype="F4")
    assert given.weights_bytes == (plain.weights_bytes or 0) // 4
    assert given.weights_reason is None


def test_the_very_model_and_one_position(bound: Callable[..., Graph], small: dict[str, Any]) -> None:
    """The small model: 3 layers, 48 wide, 12 heads of 4 and 6 for keys and values, 80 inside, 100 tokens."""
    layer = 48 * 48 * 2 + 2 * 24 * 48 + 3 * 80 * 48 + 2 * 48
    weights = 2 * (2 * 100 * 48 + 3 * layer + 48)
    # One position: logits 100 × 4; the largest result is the vocabulary's scores of 100 × 2 bytes.
    least = weights + 3 * 2 * 6 * 4 * 2 + 100 * 4 + 100 * 2
    graph = bound(small)
    assert memory(graph, context=1).total_bytes == least
    fits = memory(graph, fit=[least - 1, least, least + 287, least + 288]).fit
    assert [fit.context for fit in fits] == [0, 1, 1, 2]


def test_a_model_that_states_no_context(bound: Callable[..., Graph], small: dict[str, Any]) -> None:
    del small["max_position_embeddings"]
    graph = bound(small)
    with pytest.raises(UsageError, match="states no context length") as caught:
        memory(graph)
    assert "--context" in caught.value.hint
    found: Memory = memory(graph, context=1_000_000, fit=[10**9])
    assert found.kv_reserved_bytes is None
    (fit,) = found.fit
    assert fit.limited_by == "memory"
    # 288 bytes a position are cached; logits and the largest activation are 400 and 200 bytes.
    weights, context = found.weights_bytes or 0, fit.context or 0
    assert weights + context * 288 + 600 <= 10**9 < weights + (context + 1) * 288 + 600


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch": 0}, "--batch is 0, expected 1 or more"),
        ({"context": 0}, "--context is 0, expected 1 or more"),
        ({"context": -1}, "--context is -1, expected 1 or more"),
        ({"positions": 0}, "--positions is 0, expected 1 or more"),
        ({"devices": 0}, "--devices is 0, expected 1 or more"),
        ({"context": 5, "positions": 6}, "--positions is 6, more than the context of 5"),
        ({"devices": 3}, "does not divide evenly over 3 devices"),
        ({"fit": [10], "reserve": 10}, "--reserve of 10 bytes leave nothing"),
        ({"reserve": -1}, "--reserve is -1 bytes, expected 0"),
        ({"utilization": 0}, "--utilization is 0, expected a number above 0 and at most 1"),
        ({"utilization": 1.01}, "--utilization is 1.01, expected"),
        ({"utilization": "half"}, '--utilization is "half", expected'),
        ({"utilization": "1/0"}, "--utilization is"),
        ({"utilization": "nan"}, "--utilization is"),
    ],
)
def test_options_that_make_no_sense(
    options: dict[str, Any], words: str, graph_of: Callable[[str], Graph]
) -> None:
    with pytest.raises(UsageError, match=words):
        memory(graph_of(EIGHT_B), **options)
