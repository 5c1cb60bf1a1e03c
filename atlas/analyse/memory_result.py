"""The result of `atlas memory`, all sizes in bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from atlas.analyse.fit import Fit
from atlas.tables import Tabular


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
