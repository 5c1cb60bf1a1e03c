"""Bytes: weights, KV cache, logits, the largest activation, and the longest context that fits, to the byte.

The 8B in bfloat16, one token at a time: weights 16,060,522,496 bytes; 131,072 for each cached position; logits
128,256 × 4 = 513,024; the largest activation is the attention weights, 32 heads × context × 4, as soon as that passes the
projected scores of the vocabulary, 128,256 × 2 = 256,512, at 2,004 positions.
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
from atlas.errors import UsageError
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
    """The cache has the activations' dtype, unless it is given its own; half a byte counts as half."""
    graph = graph_of(EIGHT_B)
    assert memory(graph, dtype="F32", context=8).kv_bytes_per_token == 2 * PER_TOKEN
    assert memory(graph, dtype="F32", context=8).weights_bytes == 4 * 8_030_261_248
    found = memory(graph, kv_dtype="F8_E4M3", context=8)
    assert (found.weights_bytes, found.kv_bytes_per_token) == (WEIGHTS, PER_TOKEN // 2)
    assert memory(graph, dtype="F4", context=8).weights_bytes == 8_030_261_248 // 2


def test_a_tied_matrix_takes_its_bytes_once(graph_of: Callable[[str], Graph]) -> None:
    assert memory(graph_of("llama3.2-1b"), context=8).weights_bytes == 2 * 1_235_814_400


# ---------------------------------------------------------------- one pass, and the sum


def test_logits_and_the_largest_activation(graph_of: Callable[[str], Graph]) -> None:
    graph = graph_of(EIGHT_B)
    short = memory(graph, context=2_003)
    assert (short.logits_bytes, short.activation_bytes) == (128_256 * 4, 128_256 * 2)
    long = memory(graph, context=2_005)
    assert long.activation_bytes == 32 * 2_005 * 4
    prompt = memory(graph, batch=3, context=4_096, positions=4_096)
    assert prompt.logits_bytes == 3 * 4_096 * 128_256 * 4
    assert prompt.activation_bytes == 3 * 32 * 4_096 * 4_096 * 4
    assert "attention.weights" in prompt.calculations["activation"]
    assert any("One pass of 1 position for" in note for note in short.notes)
    assert any("One pass of 4,096 positions for" in note for note in prompt.notes)


def test_the_sum(graph_of: Callable[[str], Graph]) -> None:
    found = memory(graph_of(EIGHT_B), batch=2, context=10_000)
    expected = WEIGHTS + 2 * 10_000 * 131_072 + 2 * 128_256 * 4 + 2 * 32 * 10_000 * 4
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
    assert found.per_device_bytes == weights + 2**30 // 8 + 128_256 * 4 + 32 * 8_192 * 4
    assert found.total_bytes == WEIGHTS + 2**30 + 128_256 * 4 + 32 * 8_192 * 4


def test_sixteen_devices_hold_each_key_and_value_head_twice(graph_of: Callable[[str], Graph]) -> None:
    found = memory(graph_of(EIGHT_B), context=8_192, devices=16)
    norms, keys_and_values = 65 * 4_096, 32 * 2 * 4_194_304
    weights = 2 * ((8_030_261_248 - norms - keys_and_values) // 16 + keys_and_values // 8 + norms)
    assert found.per_device_bytes == weights + 2**30 // 8 + 128_256 * 4 + 32 * 8_192 * 4


# ---------------------------------------------------------------- the longest context that fits


def bytes_at(context: int, batch: int = 1) -> int:
    """What the 8B needs at a context beyond 2,004, by hand."""
    return WEIGHTS + batch * (context * 131_072 + 128_256 * 4 + 32 * context * 4)


@settings(deadline=None, max_examples=60)
@given(context=st.integers(2_005, 131_071), batch=st.integers(1, 9), spare=st.integers(0, 131_199))
def test_the_border_is_exact(context: int, batch: int, spare: int, graph_of: Callable[[str], Graph]) -> None:
    """A size that holds this context, and lacks at least a byte for one position more."""
    size = bytes_at(context, batch) + spare
    assert size < bytes_at(context + 1, batch)
    (fit,) = memory(graph_of(EIGHT_B), batch=batch, fit=[size]).fit
    assert (fit.size_bytes, fit.context, fit.limited_by) == (size, context, "memory")
    (one_less,) = memory(graph_of(EIGHT_B), batch=batch, fit=[bytes_at(context, batch) - 1]).fit
    assert one_less.context == context - 1


def test_sizes_people_have(graph_of: Callable[[str], Graph]) -> None:
    """(24 × 10⁹ − 16,061,035,520) / 131,200 = 60,510.4; 16 × 10⁹ do not hold the weights; 80 × 10⁹ hold it all."""
    found = memory(graph_of(EIGHT_B), fit=[16 * 10**9, 24 * 10**9, 80 * 10**9])
    assert [(fit.context, fit.limited_by) for fit in found.fit] == [
        (0, "memory"),
        (60_510, "memory"),
        (131_072, "model"),
    ]
    assert bytes_at(60_510) <= 24 * 10**9 < bytes_at(60_511)


def test_the_very_model_and_one_position(bound: Callable[..., Graph], small: dict[str, Any]) -> None:
    """The small model: 3 layers, 48 wide, 12 heads of 4 and 6 for keys and values, 80 inside, 100 tokens."""
    layer = 48 * 48 * 2 + 2 * 24 * 48 + 3 * 80 * 48 + 2 * 48
    weights = 2 * (2 * 100 * 48 + 3 * layer + 48)
    # One position: logits 100 × 4; the largest results are the scores of 100 × 2 bytes and the norm's 48 × 4.
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
    # Beyond 50 positions the attention weights are the largest: 12 heads × 4 bytes. 288 bytes a position are cached.
    weights = found.weights_bytes
    assert weights + fit.context * (288 + 48) + 400 <= 10**9 < weights + (fit.context + 1) * (288 + 48) + 400


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
        ({"devices": 3}, "cannot be cut evenly over 3 devices"),
    ],
)
def test_options_that_make_no_sense(
    options: dict[str, Any], words: str, graph_of: Callable[[str], Graph]
) -> None:
    with pytest.raises(UsageError, match=words):
        memory(graph_of(EIGHT_B), **options)
