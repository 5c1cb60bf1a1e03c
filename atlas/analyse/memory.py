"""The bytes a model needs: weights, KV cache, states, logits, the largest activation; and what fits into a device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from atlas import dtypes
from atlas.analyse import devices as parallel
from atlas.analyse import fit as fitting
from atlas.analyse.caches import state_elements
from atlas.analyse.fit import Fit
from atlas.analyse.fused import Attention, fused
from atlas.analyse.sizing import Sizing, width
from atlas.analyse.undescribed import reason, weights_gaps, window, window_notes
from atlas.errors import UsageError, shown
from atlas.graph.graph import Graph
from atlas.resolution.model import require_described
from atlas.tables import Tabular
from atlas.units import MOST_BYTES, require_count, require_integer

DTYPES = ("F64", "F32", "BF16", "F16", "F8_E5M2", "F8_E4M3", "I8", "U8", "F4")
"""The dtypes accepted for weights and for the cache."""


@dataclass(frozen=True, slots=True)
class LayerKind:
    """What the layers of one kind keep between passes.

    Attributes:
        kind: the block that these layers have.
        window: the positions that they keep; None if they keep all.
        kv_bytes_per_token: of one position of one sequence inside the window, in all of these layers.
        kv_bytes: of `batch` sequences of `context` positions.
        state_elements: of one sequence's constant states in all of these layers.
        state_bytes: those of `batch` sequences.
        calculation: of `kv_bytes_per_token`, or of `state_bytes` where they keep nothing else.
    """

    kind: str
    layers: int
    window: int | None
    kv_bytes_per_token: int
    kv_bytes: int
    state_elements: int
    state_bytes: int
    calculation: str


@dataclass(frozen=True, slots=True, repr=False)
class Memory(Tabular):
    """The result of `atlas memory`, all sizes in bytes.

    Attributes:
        dtype: of the weights.
        kv_dtype: of the cached keys and values.
        weights_bytes: None if the weights are stored in a way that is not described; `weights_reason` names it.
        kv_bytes_per_token: what is cached of one position of one sequence, in all layers: of one inside every window.
        kv_bytes_per_token_beyond_window: what one more position adds beyond every window; the same without windows.
        kv_bytes: those of `batch` sequences of `context` positions.
        kv_reserved_bytes: of an engine that reserves the model's own context, or the longer one asked for, for every sequence.
        state_bytes: the constant states of `batch` sequences, which no context makes longer.
        by_layer_kind: what each kind of layer keeps.
        logits_bytes: of the positions of one pass.
        activation_bytes: the largest result of a step of that pass that is in memory.
        total_bytes: weights, KV cache, states, logits and the largest activation; of all devices' parts, each counted once.
        per_device_bytes: the same on each device.
        kv_head_copies: on how many devices each key and value head is.
        reserved_bytes: of each device, left free at the caller's wish (`--reserve`).
        calculations: the calculation of each figure.
    """

    model: str
    dtype: str
    kv_dtype: str
    batch: int
    context: int
    positions: int
    devices: int
    attention: str
    weights_bytes: int | None
    weights_reason: str | None
    kv_bytes_per_token: int
    kv_bytes_per_token_beyond_window: int
    kv_bytes: int
    kv_reserved_bytes: int | None
    state_bytes: int
    by_layer_kind: tuple[LayerKind, ...]
    logits_bytes: int
    activation_bytes: int
    total_bytes: int | None
    per_device_bytes: int | None
    kv_head_copies: int
    reserved_bytes: int
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
    attention: str = Attention.fused,
    fit: Sequence[int] = (),
    reserve: int = 0,
    utilization: float | str = 1,
) -> Memory:
    """The memory a model needs while it generates.

    Args:
        dtype: of the weights; by default the stored one. Activations and cache have it too if it is F32, F16 or BF16.
        kv_dtype: of the cache; by default that of the activations: the stored dtype if it is F32, F16 or BF16, else BF16.
        context: positions of each sequence, those of this pass included; by default the model's own context.
        positions: tokens of each sequence in one pass: 1 while generating, more while a prompt is read.
        attention: `fused`: the scores are never in memory; `eager`: every step's result is.
        fit: sizes of devices in bytes.
        reserve: bytes of each device to leave free.
        utilization: the share of each device's memory that may be used.

    Raises:
        NotDescribed: the cache depends on a setting that is not described, such as a sliding window shorter than the context.
        UsageError: a size below 1, no context is given and the model states none, or a matrix that does not divide over
            the devices.
    """
    model = graph.model
    for option, value in (
        ("--batch", batch),
        ("--positions", positions),
        ("--devices", devices),
        ("--context", context),
    ):
        if value is not None:
            require_count(value, option)
    for size in fit:
        require_count(size, "--fit", most=MOST_BYTES)
    require_integer(reserve, "--reserve")
    if not 0 <= reserve <= MOST_BYTES:
        raise UsageError(f"--reserve is {shown(reserve)} bytes, expected 0 to {MOST_BYTES:,}")
    share = fitting.utilization(utilization)
    for option, code in (("--dtype", dtype), ("--kv-dtype", kv_dtype)):
        if code is not None and code not in DTYPES:
            raise UsageError(
                f"{option} is {code}, which neither weights nor a cache are stored in",
                hint=f"use {', '.join(DTYPES)}",
            )
    own = model.context_length
    length = context or own
    require_described(model, "memory", length)
    if length is None:
        raise UsageError(f"{model.id} states no context length", hint="give one with --context")
    if positions > length:
        raise UsageError(f"--positions is {positions:,}, more than the context of {length:,}")
    unsized = weights_gaps(model) if dtype is None else []
    activations = dtypes.of_activations(dtype if dtype in dtypes.ACTIVATIONS else model.dtype)
    sizing = Sizing(
        graph=graph,
        weights_dtype=None if unsized else dtype or model.dtype,
        activations=activations,
        kv_dtype=kv_dtype or activations,
        unwritten=frozenset() if attention == Attention.eager else fused(graph).unwritten,
        positions=positions,
    )
    weights, weights_each = sizing.weights(), sizing.weights(devices)
    kv, states = batch * sizing.kv(length), batch * sizing.state()
    made = sizing.one_pass(length, batch)
    rest = made.logits + made.largest
    longest = None if own is None else max(own, length)
    limit = window(model, "memory")
    reservable = longest is not None and (limit is None or longest <= limit)
    each = batch * (sizing.kv(length, devices) + sizing.state(devices)) + rest
    return Memory(
        model=model.id,
        dtype=dtype or model.dtype,
        kv_dtype=sizing.kv_dtype,
        batch=batch,
        context=length,
        positions=positions,
        devices=devices,
        attention=str(attention),
        weights_bytes=weights,
        weights_reason=reason(unsized),
        kv_bytes_per_token=sizing.kv_per_token(),
        kv_bytes_per_token_beyond_window=sizing.kv_per_token_beyond(),
        kv_bytes=kv,
        kv_reserved_bytes=batch * sizing.kv(longest) if longest is not None and reservable else None,
        state_bytes=states,
        by_layer_kind=tuple(_kinds(sizing, batch, length)),
        logits_bytes=made.logits,
        activation_bytes=made.largest,
        total_bytes=None if weights is None else weights + kv + states + rest,
        per_device_bytes=None if weights_each is None else weights_each + each,
        kv_head_copies=parallel.kv_head_copies(graph, devices),
        reserved_bytes=reserve,
        fit=_fits(sizing, fit, reserve, share, length, batch, devices) if fit else (),
        calculations={
            "weights": "" if unsized else f"{sizing.elements:,} numbers × {width(dtype or model.dtype)}",
            "kv_per_token": sizing.kv_calculation(),
            **_of_windows(sizing),
            "kv": sizing.context_calculation(batch, length),
            "kv_reserved": sizing.context_calculation(batch, longest)
            if reservable and longest is not None
            else "",
            **({"state": sizing.state_calculation(batch)} if states else {}),
            "logits": sizing.product(graph.blocks[-1].nodes[-1].steps[-1], made.sizes),
            "activation": f"{made.step.sets}: {sizing.product(made.step, made.sizes)}",
        },
        notes=tuple(_notes(graph, sizing, dtype, length, devices, attention, bool(fit))),
    )


def _of_windows(sizing: Sizing) -> dict[str, str]:
    if not sizing.windows:
        return {}
    return {
        "kv_per_token_beyond_window": sizing.kv_calculation([c for c in sizing.caches if c.window is None])
    }


def _kinds(sizing: Sizing, batch: int, context: int) -> list[LayerKind]:
    return [
        LayerKind(
            kind=cache.kind,
            layers=cache.layers,
            window=cache.window,
            kv_bytes_per_token=sizing.kv_of(cache, 1),
            kv_bytes=batch * sizing.kv_of(cache, context),
            state_elements=sum(state_elements(sizing.graph, cache, step) for step in cache.states),
            state_bytes=batch * sizing.state_of(cache),
            calculation=sizing.kv_calculation([cache])
            if cache.steps
            else sizing.state_calculation(batch, [cache]),
        )
        for cache in sizing.caches
    ]


def _fits(
    sizing: Sizing,
    sizes: Sequence[int],
    reserve: int,
    share: Fraction,
    context: int,
    batch: int,
    devices: int,
) -> tuple[Fit, ...]:
    if sizing.weights_dtype is None:
        return tuple(fitting.unknown(size, reserve, share) for size in sizes)
    fixed: dict[int, tuple[int, int]] = {}  # the search asks for the same devices many times

    def needed(context: int, batch: int, devices: int) -> int:
        if devices not in fixed:
            fixed[devices] = (sizing.weights(devices) or 0, sizing.state(devices))
        weights, state = fixed[devices]
        made = sizing.one_pass(context, batch)
        return weights + batch * (sizing.kv(context, devices) + state) + made.logits + made.largest

    request = fitting.Request(
        context=context,
        batch=batch,
        devices=devices,
        own=sizing.graph.model.context_length,
        window=window(sizing.graph.model, "memory"),
        more=[many for many in parallel.dividing(sizing.graph) if many > devices],
    )
    return tuple(fitting.fit(size, reserve, share, needed, request) for size in sizes)


def _and(lengths: Sequence[int]) -> str:
    return " and ".join(f"{length:,}" for length in lengths)


def _notes(
    graph: Graph,
    sizing: Sizing,
    dtype: str | None,
    context: int,
    devices: int,
    attention: str,
    fits: bool,
) -> list[str]:
    model = graph.model
    found = window_notes(model, "memory", context)
    if dtype is None and not model.dtype_stated:
        found.append(f"The configuration states no dtype; bytes are for {model.dtype}, an assumption.")
    if sizing.weights_dtype is not None and sizing.weights_dtype not in (*dtypes.ACTIVATIONS, "F64"):
        found.append(
            f"Weights: {width(sizing.weights_dtype)} for every number; scales and unquantised tensors are not counted. "
            f"Activations are {sizing.activations}."
        )
    if sizing.windows:
        found.append(
            f"Layers with a window keep its positions alone ({_and(sizing.windows)}); the others keep the whole context. "
            "kv_bytes_per_token is that of a position inside every window."
        )
    if devices > 1:
        found.append(
            "On each device: its share of the matrices and of the cache; vectors, logits and the largest activation whole."
        )
        found += parallel.copies_note(graph, devices)
    own = model.context_length
    if own is not None and context > own:
        found.append(f"The context is longer than the model's own, {own:,}.")
    many = sizing.positions
    how = (
        "attention is not fused, so scores are in memory"
        if attention == Attention.eager
        else "attention is fused, so scores are never in memory (--attention eager counts them)"
    )
    found.append(f"One pass of {many:,} position{'s' * (many > 1)} of each sequence; {how}.")
    if fits:
        found.append(
            "What fits is weights, KV cache, logits and the largest activation; drivers and engines need more "
            "(--reserve, --utilization)."
        )
    return found
