"""The bytes a model needs: weights, KV cache, logits, the largest activation; and the longest context that fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from atlas import dtypes
from atlas.analyse import parameters
from atlas.errors import UsageError, shown
from atlas.grammar import shapes
from atlas.graph import tensors
from atlas.graph.graph import Graph, Step
from atlas.resolution.model import require_described
from atlas.tables import Tabular
from atlas.units import MOST_COUNT

FIT = ("F64", "F32", "BF16", "F16", "F8_E5M2", "F8_E4M3", "I8", "U8", "F4")
"""The dtypes in which weights or a cache may be sized."""


@dataclass(frozen=True, slots=True)
class Fit:
    """The longest context that fits into a size, on each device where there are several.

    Attributes:
        context: positions for each sequence; 0 where not even the weights fit.
        limited_by: `memory`, or `model` where the model's own context length ends first.
    """

    size_bytes: int
    context: int
    limited_by: str


@dataclass(frozen=True, slots=True, repr=False)
class Memory(Tabular):
    """What `atlas memory` says, all in bytes.

    Attributes:
        kv_bytes_per_token: keys and values of one position of one sequence, in all layers.
        kv_bytes: those of `batch` sequences of `context` positions.
        kv_reserved_bytes: what an engine reserves that keeps room for the model's whole context, or the longer one that is asked
            for, in every sequence.
        logits_bytes: of the positions of one pass.
        activation_bytes: the largest single result of a step of that pass.
        total_bytes: weights, KV cache, logits and the largest activation together.
        calculations: each figure's calculation.
    """

    model: str
    dtype: str
    kv_dtype: str
    batch: int
    context: int
    positions: int
    devices: int
    weights_bytes: int
    kv_bytes_per_token: int
    kv_bytes: int
    kv_reserved_bytes: int | None
    logits_bytes: int
    activation_bytes: int
    total_bytes: int
    per_device_bytes: int
    fit: tuple[Fit, ...]
    calculations: Mapping[str, str]
    notes: tuple[str, ...]


def memory(
    graph: Graph,
    *,
    dtype: str | None = None,
    kv_dtype: str | None = None,
    batch: int = 1,
    context: int | None = None,
    positions: int = 1,
    devices: int = 1,
    fit: Sequence[int] = (),
) -> Memory:
    """The memory a model needs while it generates.

    Args:
        dtype: of the weights and activations; the stored one by default.
        kv_dtype: of the cache; that of the activations by default.
        context: positions of each sequence, those of this pass included; the model's own context by default.
        positions: tokens of each sequence in one pass: 1 while generating, more while a prompt is read.
        fit: sizes in bytes for which the longest context is sought.

    Raises:
        NotDescribed: the model stores or attends in a way that is not described.
        UsageError: a size below 1, or no context is given and the model states none.
    """
    require_described(graph.model, "memory")
    for option, value in (
        ("--batch", batch),
        ("--positions", positions),
        ("--devices", devices),
        ("--context", context),
    ):
        if value is not None and value < 1:
            raise UsageError(f"{option} is {shown(value)}, expected 1 or more")
        if value is not None and value > MOST_COUNT:
            raise UsageError(f"{option} is {shown(value)}, expected at most {MOST_COUNT:,}")
    own = graph.model.context_length
    length = context or own
    if length is None:
        raise UsageError(f"{graph.model.id} states no context length", hint="give one with --context")
    if positions > length:
        raise UsageError(f"--positions is {positions:,}, more than the context of {length:,}")
    weights_dtype = dtype or graph.model.dtype
    cache_dtype = kv_dtype or weights_dtype
    for option, code in (("--dtype", dtype), ("--kv-dtype", kv_dtype)):
        if code is not None and code not in FIT:
            raise UsageError(
                f"{option} {code} is no dtype that weights or a cache have", hint=f"use {', '.join(FIT)}"
            )
    numbers = parameters.stored(graph, tensors.published(graph))[1]
    weights = dtypes.size_bytes(weights_dtype, numbers)
    per_token, per_token_how = _kv_per_token(graph, cache_dtype)

    def needs(many: int) -> tuple[int, int, Step]:
        """(logits, the largest activation, the step that makes it) of one pass in a context of that many."""
        sizes = {**graph.dims, "batch": batch, "positions": min(positions, many), "keys": many}
        return _pass_bytes(graph, sizes, weights_dtype)

    # A vector is on every device, a matrix on one; the cache goes with the key and value heads.
    kv_parts = min(devices, graph.dims.get("n_kv_heads", 1))
    weights_each = (
        dtypes.size_bytes(weights_dtype, parameters.per_device(graph, devices)) if devices > 1 else weights
    )

    def each(many: int) -> int:
        """What one device holds in a context of that many."""
        logits, largest, _ = needs(many)
        return weights_each + -(-batch * many * per_token // kv_parts) + logits + largest

    logits, largest, step = needs(length)
    kv = batch * length * per_token
    sizes = {**graph.dims, "batch": batch, "positions": positions, "keys": length}
    return Memory(
        model=graph.model.id,
        dtype=weights_dtype,
        kv_dtype=cache_dtype,
        batch=batch,
        context=length,
        positions=positions,
        devices=devices,
        weights_bytes=weights,
        kv_bytes_per_token=per_token,
        kv_bytes=kv,
        kv_reserved_bytes=None if own is None else batch * max(own, length) * per_token,
        logits_bytes=logits,
        activation_bytes=largest,
        total_bytes=weights + kv + logits + largest,
        per_device_bytes=each(length),
        fit=tuple(_fit(size, each, own) for size in fit),
        calculations={
            "weights": f"{numbers:,} numbers × {_width(weights_dtype)}",
            "kv_per_token": per_token_how,
            "kv": f"batch {batch:,} × {length:,} positions × {per_token:,} bytes",
            "kv_reserved": ""
            if own is None
            else f"batch {batch:,} × {max(own, length):,} positions × {per_token:,} bytes",
            "logits": _product(graph, _last(graph), sizes, "F32"),
            "activation": f"{step.sets}: {_product(graph, step, sizes, _dtype(step, weights_dtype))}",
        },
        notes=(
            *_assumed(graph, dtype),
            *(
                ["On each device the logits and the largest activation are counted whole."]
                if devices > 1
                else []
            ),
            *(
                [f"The context is longer than the model's own, {own:,}."]
                if own is not None and length > own
                else []
            ),
            f"One pass of {positions:,} position{'s' * (positions > 1)} for each sequence; every step's result is "
            "kept whole, so scores are counted as if attention were not fused.",
        ),
    )


def _assumed(graph: Graph, dtype: str | None) -> tuple[str, ...]:
    if dtype is not None or graph.model.dtype_stated:
        return ()
    return (f"The configuration states no dtype; bytes are for {graph.model.dtype}, an assumption.",)


def _dtype(step: Step, activations: str) -> str:
    return activations if step.dtype == "A" else step.dtype


def _width(dtype: str) -> str:
    bits = dtypes.BITS[dtype]
    return f"{bits // 8} bytes" if bits % 8 == 0 else f"{bits} bits"


def _steps(graph: Graph) -> list[Step]:
    return [step for block in graph.blocks for node in block.nodes for step in node.steps]


def _last(graph: Graph) -> Step:
    return graph.blocks[-1].nodes[-1].steps[-1]


def _bytes(graph: Graph, step: Step, sizes: Mapping[str, int], activations: str) -> int:
    return dtypes.size_bytes(_dtype(step, activations), shapes.size(shapes.atoms(step.shape), sizes))


def _pass_bytes(graph: Graph, sizes: Mapping[str, int], activations: str) -> tuple[int, int, Step]:
    last = _last(graph)
    inner = [step for step in _steps(graph) if step is not last and step.op != "cache"]
    known = [step for step in inner if all(axis in sizes for axis in shapes.atoms(step.shape))]
    largest = max(known, key=lambda step: _bytes(graph, step, sizes, activations))
    return _bytes(graph, last, sizes, activations), _bytes(graph, largest, sizes, activations), largest


def _kv_per_token(graph: Graph, dtype: str) -> tuple[int, str]:
    """Bytes of one cached position, and the calculation: the sum of the cache steps over their layers."""
    elements = 0
    terms = []
    for block in graph.blocks:
        cached = [step for node in block.nodes for step in node.steps if step.op == "cache"]
        if cached and block.instances:
            widths = [
                [graph.dims[a] for a in shapes.atoms(s.shape) if a not in ("batch", "keys")] for s in cached
            ]
            each = [
                shapes.size((a for a in shapes.atoms(s.shape) if a not in ("batch", "keys")), graph.dims)
                for s in cached
            ]
            elements += block.instances * sum(each)
            alike = len(set(each)) == 1
            inner = " × ".join(f"{n:,}" for n in widths[0]) if alike else " + ".join(f"{n:,}" for n in each)
            terms.append(
                f"{block.instances:,} layers × {len(cached)} × {inner}"
                if alike
                else f"{block.instances:,} layers × ({inner})"
            )
    return dtypes.size_bytes(dtype, elements), f"{' + '.join(terms) or '0'} × {_width(dtype)}"


def _product(graph: Graph, step: Step, sizes: Mapping[str, int], dtype: str) -> str:
    return " × ".join(f"{sizes[axis]:,} {axis}" for axis in shapes.atoms(step.shape)) + f" × {_width(dtype)}"


def _fit(size: int, total: Callable[[int], int], own: int | None) -> Fit:
    """The longest context whose total is at most `size`; the total never falls as the context grows."""
    limit = own or 2**40
    if total(1) > size:
        return Fit(size, 0, "memory")
    low, high = 1, limit
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if total(middle) <= size else (low, middle - 1)
    return Fit(size, low, "model" if low == own else "memory")
