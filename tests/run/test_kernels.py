"""Each operation against a few lines of NumPy in float64, on axes in orders that a description may give them."""
# ruff: noqa: E402  what needs torch is imported after the question whether it is there

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip(
    "torch", reason="`atlas run` needs the extra: pip install 'open-model-atlas[run]'"
)

from atlas.errors import NotDescribed, SpecError
from atlas.execution.kernels import BUILDERS, compile_step
from atlas.execution.rope_forms import frequencies
from atlas.execution.state import ExecutionState, KVCache
from atlas.grammar import shapes
from atlas.graph.graph import Graph, Operand, Step, Weight
from atlas.graph.operations import OPERATIONS
from atlas.spec.library import Library

DIMS = {"dim": 7, "ffn_dim": 11, "vocab_size": 13, "n_heads": 12, "n_kv_heads": 3, "group": 4}
DIMS |= {"head_dim": 10, "pair": 5, "two": 2, "n_experts": 12, "n_experts_per_token": 3}
FREE = {"batch": 6, "positions": 9, "keys": 9}
SIZES = DIMS | FREE


@pytest.fixture(scope="module")
def graph(library: Library) -> Graph:
    """No model: the vocabulary and the sizes above, which is all that a kernel is compiled from."""
    from atlas.spec import Axis

    axes = dict(library.axes)
    for name in ("n_experts", "n_experts_per_token"):
        axes.setdefault(name, Axis(meaning="experts", symbol="E"))
    unused: Any = None
    return Graph(unused, unused, axes, DIMS, {}, ())


def size(shape: str) -> list[int]:
    return [shapes.size(group, SIZES) for group in shapes.parse(shape)]


def numbers(shape: str, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(size(shape))


Compute = Callable[..., Any]


@pytest.fixture
def compute(graph: Graph) -> Compute:
    """op, operands as (shape, array), the result's shape -> what the kernel gives, as an array.

    A shape that begins with `weight:` is a weight's; an operand may have the symbol that chooses from it.
    """

    def run(
        op: str,
        operands: Sequence[tuple[str, Any]],
        result: str,
        *,
        over: str | None = None,
        by: Any = None,
        dtype: str = "A",
        computed_in: str = "A",
        chosen: Any = None,
        order: dict[str, tuple[str, ...]] | None = None,
        state: ExecutionState | None = None,
        pairs: str = "halves",
        share: float = 1.0,
        activations: Any = torch.float64,
    ) -> Any:
        of = []
        for number, (shape, _) in enumerate(operands):
            parsed = shapes.parse(shape.removeprefix("weight:"))
            unused: Any = None
            weight = Weight(f"n.{number}", "n", "n", parsed, unused) if shape.startswith("weight:") else None
            of.append(Operand(f"n.{number}", parsed, weight, "n.chosen" if chosen is not None else None))
        step = Step(
            "n.s",
            "n",
            op,
            tuple(of),
            "n.s",
            shapes.parse(result),
            dtype,
            computed_in,
            over,
            by,
            None,
            share,
            pairs,
        )  # type: ignore[arg-type]
        kernel = compile_step(step, graph, order or {}, activations)
        given = [torch.as_tensor(array) for _, array in operands]
        given += [torch.as_tensor(chosen)] if chosen is not None else []
        return kernel(state or ExecutionState(0, 9, torch.device("cpu"), {}, None), *given).numpy()

    return run


def test_every_operation_of_the_vocabulary_has_a_kernel() -> None:
    assert {*BUILDERS, "cast"} == set(OPERATIONS)


@pytest.mark.parametrize(
    ("left", "right", "result", "equation"),
    [
        ("batch positions dim", "weight:ffn_dim dim", "batch positions ffn_dim", "btd,fd->btf"),
        ("batch positions dim", "weight:dim ffn_dim", "batch positions ffn_dim", "btd,df->btf"),
        ("positions batch dim", "weight:ffn_dim dim", "batch positions ffn_dim", "tbd,fd->btf"),
        ("batch positions n_heads head_dim", "weight:dim (n_heads head_dim)", "batch positions dim", "bthw,dhw->btd"),
        ("batch positions n_heads head_dim", "weight:dim (head_dim n_heads)", "batch positions dim", "bthw,dwh->btd"),
        ("batch positions dim", "weight:(n_heads head_dim) dim", "batch positions n_heads head_dim", "btd,hwd->bthw"),
        ("batch positions dim", "weight:(n_heads head_dim) dim", "batch n_heads positions head_dim", "btd,hwd->bhtw"),
        ("batch positions (n_heads head_dim)", "weight:dim (n_heads head_dim)", "batch positions dim", "bthw,dhw->btd"),
    ],
)  # fmt: skip
def test_contract_with_a_matrix(compute: Compute, left: str, right: str, result: str, equation: str) -> None:
    x, w = numbers(left), numbers(right.removeprefix("weight:"), 1)
    apart = {"h": 12, "w": 10}

    def opened(array: Any, letters: str) -> Any:
        sizes = [apart.get(c) or {"b": 6, "t": 9, "d": 7, "f": 11}[c] for c in letters]
        return array.reshape(sizes)

    a, rest = equation.split(",")
    b, _ = rest.split("->")
    expected = np.einsum(equation, opened(x, a), opened(w, b))
    np.testing.assert_allclose(compute("contract", [(left, x), (right, w)], result), expected, atol=1e-12)


@pytest.mark.parametrize("heads", ["n_heads", "n_kv_heads"])
def test_contract_of_grouped_heads(compute: Compute, heads: str) -> None:
    """Query head i meets key head i // group, as Meta's repeat_kv has it."""
    q, k = numbers("batch positions n_heads head_dim"), numbers(f"batch keys {heads} head_dim", 1)
    repeated = np.repeat(k, 12 // k.shape[2], axis=2)
    expected = np.einsum("bthw,bshw->bhts", q, repeated)
    found = compute(
        "contract",
        [("batch positions n_heads head_dim", q), (f"batch keys {heads} head_dim", k)],
        "batch n_heads positions keys",
    )
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_take(compute: Compute) -> None:
    table, ids = numbers("vocab_size dim"), np.random.default_rng(2).integers(0, 13, (6, 9))
    found = compute(
        "take", [("batch positions", ids), ("weight:vocab_size dim", table)], "batch positions dim"
    )
    np.testing.assert_array_equal(found, np.take(table, ids, axis=0))


@pytest.mark.parametrize(("op", "of"), [("add", np.add), ("mul", np.multiply)])
def test_spreading_by_name(compute: Compute, op: str, of: Any) -> None:
    x = numbers("batch positions n_heads head_dim")
    for shape, indices in [
        ("head_dim", np.s_[None, None, None, :]),
        ("n_heads", np.s_[None, None, :, None]),
        ("batch positions", np.s_[:, :, None, None]),
        ("positions head_dim", np.s_[None, :, None, :]),
    ]:
        y = numbers(shape, 1)
        found = compute(
            op, [("batch positions n_heads head_dim", x), (shape, y)], "batch positions n_heads head_dim"
        )
        np.testing.assert_allclose(found, of(x, y[indices]), atol=1e-12)
    bias = numbers("(n_heads head_dim)", 1)
    found = compute(
        op,
        [("batch positions n_heads head_dim", x), ("weight:(n_heads head_dim)", bias)],
        "batch positions n_heads head_dim",
    )
    np.testing.assert_allclose(found, of(x, bias.reshape(12, 10)), atol=1e-12)
    turned = numbers("positions batch", 1)
    found = compute(op, [("batch positions", x[:, :, 0, 0]), ("positions batch", turned)], "batch positions")
    np.testing.assert_allclose(found, of(x[:, :, 0, 0], turned.T), atol=1e-12)


def test_elementwise(compute: Compute) -> None:
    shape = "batch positions dim"
    x = numbers(shape)
    for op, by, expected in [
        ("scale", 0.25, x / 4),
        ("tanh", None, np.tanh(x)),
        ("sigmoid", None, 1 / (1 + np.exp(-x))),
        ("activate", "silu", x / (1 + np.exp(-x))),
    ]:
        np.testing.assert_allclose(compute(op, [(shape, x)], shape, by=by), expected, atol=1e-12)


@pytest.mark.parametrize(("shape", "axis"), [("batch positions dim", 2), ("batch dim positions", 1)])
def test_along_an_axis(compute: Compute, shape: str, axis: int) -> None:
    x = numbers(shape)
    grown = np.exp(x - x.max(axis, keepdims=True))
    root = np.sqrt((x**2).mean(axis, keepdims=True) + 0.1)
    np.testing.assert_allclose(compute("rms", [(shape, x)], shape, over="dim", by=0.1), x / root, atol=1e-12)
    found = compute("softmax", [(shape, x)], shape, over="dim")
    np.testing.assert_allclose(found, grown / grown.sum(axis, keepdims=True), atol=1e-12)
    found = compute("sum", [(shape, x)], "batch positions", over="dim")
    np.testing.assert_allclose(found, x.sum(axis), atol=1e-12)


def test_choosing(compute: Compute) -> None:
    shape, fewer = "batch positions n_experts", "batch positions n_experts_per_token"
    x = numbers(shape)
    largest = np.argsort(-x, axis=-1)[..., :3]
    found = compute("top_k", [(shape, x)], fewer, over="n_experts")
    np.testing.assert_array_equal(found, largest)
    picked = compute("pick", [(shape, x)], fewer, chosen=largest)
    np.testing.assert_array_equal(picked, np.take_along_axis(x, largest, axis=-1))


def test_rename(compute: Compute) -> None:
    x = numbers("batch (n_heads head_dim)")
    found = compute("rename", [("batch (n_heads head_dim)", x)], "batch n_experts head_dim")
    np.testing.assert_array_equal(found, x.reshape(6, 12, 10))


@pytest.mark.parametrize("shape", ["batch n_heads positions keys", "batch n_heads keys positions"])
def test_mask(compute: Compute, shape: str) -> None:
    past, many = 5, 4
    sizes = {"positions": many, "keys": past + many}
    x = np.zeros([sizes.get(axis) or SIZES[axis] for axis in shape.split()])
    hidden = np.arange(9)[None, :] > past + np.arange(many)[:, None]
    if shape.endswith("positions"):
        hidden = hidden.T
    found = compute(
        "mask", [(shape, x)], shape, state=ExecutionState(past, many, torch.device("cpu"), {}, None)
    )
    np.testing.assert_array_equal(found, np.broadcast_to(np.where(hidden, -np.inf, 0.0), x.shape))


@pytest.mark.parametrize(("shape", "along"), [("batch positions n_heads", 1), ("batch n_heads positions", 2)])
def test_cache(compute: Compute, shape: str, along: int) -> None:
    x = numbers(shape)
    kept = shape.replace("positions", "keys")
    cache = KVCache(9)
    for begin, end in [(0, 4), (4, 5), (5, 9)]:
        part = x.take(range(begin, end), along)
        state = ExecutionState(begin, end - begin, torch.device("cpu"), {}, cache)
        found = compute("cache", [(shape, part)], kept, state=state)
        np.testing.assert_array_equal(found, x.take(range(end), along))


# ---- rotation


@pytest.mark.parametrize("stored", [False, True], ids=["as declared", "stored in the other order"])
@pytest.mark.parametrize("pairs", ["neighbours", "halves"])
@pytest.mark.parametrize("shape", ["batch positions n_heads head_dim", "batch n_heads positions head_dim"])
def test_rotate(compute: Compute, shape: str, pairs: str, stored: bool) -> None:
    """Planes as complex numbers, turned by e^(i t θ^(−2j/h)). Rows in the other order are rotated as they are stored."""
    x = numbers(shape)
    neighbours = (pairs == "neighbours") != stored
    first, second = (x[..., ::2], x[..., 1::2]) if neighbours else (x[..., :5], x[..., 5:])
    angle = np.arange(9)[:, None] * 10000.0 ** (-np.arange(5) / 5)
    angle = angle[None, :, None] if shape.startswith("batch positions") else angle[None, None]
    turned = (first + 1j * second) * np.exp(1j * angle)
    planes = (turned.real, turned.imag)
    expected = np.stack(planes, -1).reshape(x.shape) if neighbours else np.concatenate(planes, -1)
    order = {"head_dim": ("pair", "two")} if stored else {}
    found = compute("rotate", [(shape, x)], shape, over="head_dim", by=10000.0, order=order, pairs=pairs)
    np.testing.assert_allclose(found, expected, atol=1e-6)  # angles are float32


@pytest.mark.parametrize("pairs", ["neighbours", "halves"])
def test_rotate_a_share(compute: Compute, pairs: str) -> None:
    """The first six of ten entries rotate, as those of a head that is six wide; the others stay."""
    shape = "batch positions n_heads head_dim"
    x = numbers(shape)
    found = compute("rotate", [(shape, x)], shape, over="head_dim", by=10000.0, pairs=pairs, share=0.6)
    angle = (np.arange(9)[:, None] * 10000.0 ** (-np.arange(3) / 3))[None, :, None]
    head = x[..., :6]
    first, second = (
        (head[..., ::2], head[..., 1::2]) if pairs == "neighbours" else (head[..., :3], head[..., 3:])
    )
    turned = (first + 1j * second) * np.exp(1j * angle)
    planes = (turned.real, turned.imag)
    joined = np.stack(planes, -1).reshape(head.shape) if pairs == "neighbours" else np.concatenate(planes, -1)
    np.testing.assert_allclose(found, np.concatenate((joined, x[..., 6:]), -1), atol=1e-6)


SCALED = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
SCALED |= {"original_max_position_embeddings": 8192}


def test_scaled_frequencies_are_metas(meta: ModuleType) -> None:
    plain = 1.0 / 500000.0 ** (torch.arange(0, 128, 2).float() / 128)
    found, _ = frequencies(500000.0, 128, SCALED)
    assert torch.equal(found, meta.apply_scaling(plain))
    assert torch.equal(frequencies(500000.0, 128, {})[0], plain)
    slowed = found / plain
    assert slowed.min() == 1 / 8
    assert slowed.max() == 1
    assert ((slowed > 0.126) & (slowed < 0.999)).any(), "no plane in the blend between"


def test_a_form_of_scaling_that_is_not_described_is_refused() -> None:
    with pytest.raises(SpecError, match="ntk"):
        frequencies(10000.0, 8, {"rope_type": "ntk"})


# ---- dtypes, and what is refused


def test_dtypes(compute: Compute) -> None:
    """Arithmetic in a dtype of its own is done there; a cast is to the declared dtype; the rest follows its operands."""
    shape = "batch positions dim"
    x = (numbers(shape) * 100).astype(np.float16)
    half = {"activations": torch.float16}
    in_half = compute("rms", [(shape, x)], shape, over="dim", by=1e-5, **half)
    assert in_half.dtype == np.float16
    within = compute("rms", [(shape, x)], shape, over="dim", by=1e-5, computed_in="F32", dtype="F32", **half)
    exact = x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True))
    assert within.dtype == np.float32
    np.testing.assert_allclose(within, exact, rtol=1e-5)
    back = compute("rms", [(shape, x)], shape, over="dim", by=1e-5, computed_in="F32", **half)
    np.testing.assert_array_equal(back, within.astype(np.float16))
    assert compute("cast", [(shape, within)], shape, **half).dtype == np.float16
    assert compute("cast", [(shape, x)], shape, dtype="F32", **half).dtype == np.float32
    assert compute("scale", [(shape, within)], shape, by=0.5, **half).dtype == np.float32


def test_what_cannot_be_run_is_refused_by_name(compute: Compute) -> None:
    shape = "batch positions dim"
    x = numbers(shape)
    with pytest.raises(SpecError, match="unknown activation 'mish'"):
        compute("activate", [(shape, x)], shape, by="mish")
    with pytest.raises(SpecError, match="expected a number"):
        compute("scale", [(shape, x)], shape, by="wide")
    with pytest.raises(SpecError, match="n_heads is not a dimension"):
        compute("softmax", [("batch (n_heads head_dim)", x)], "batch (n_heads head_dim)", over="n_heads")
    with pytest.raises(SpecError, match="expected the last axis"):
        compute(
            "rotate",
            [("dim batch positions", x.transpose(2, 0, 1))],
            "dim batch positions",
            over="dim",
            by=1e4,
        )
    with pytest.raises(SpecError, match="expected a weight of experts, out and in"):
        compute("contract", [(shape, x), (shape, x)], shape, chosen=x)
    with pytest.raises(NotDescribed, match="selected for each token cannot be run"):
        compute("mul", [(shape, x), (shape, x)], shape, chosen=x)
