"""A resolved model: its dimensions and settings, from a catalogue entry or from a configuration file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from atlas.errors import NotDescribed, shown

Scalar = bool | int | float | str

MOST_UNKNOWN = 20
"""Most unknown keys that messages name; the rest are counted."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """A field where the catalogue and the released checkpoint disagree."""

    field: str
    catalogue: Scalar | None
    used: Scalar | None
    why: str
    cites: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Gap:
    """A setting that is not described and changes the computation, but no shape. Parameters are counted."""

    reason: str
    affects: frozenset[str]
    """The commands whose answer depends on it, and which refuse; `weights` for the bytes of the weights alone."""
    within: int | None = None
    """The longest context on which it has no effect (a sliding window's length); None if it always has one."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A configuration key that is in none of the architecture's tables. It was not used.

    Attributes:
        where: the configuration, for the message.
    """

    key: str
    value: Any
    where: str

    @property
    def message(self) -> str:
        plain = self.key.replace(".", "_").isidentifier() and len(self.key) <= 80
        return f"{self.where}: the key {self.key if plain else shown(self.key)} is unknown and was not used"


@dataclass(frozen=True, slots=True)
class Model:
    """The values of an architecture's free choices.

    Attributes:
        dims: sizes of axes, exact positive integers.
        numbers: numbers that the arithmetic uses: `norm_eps`, `rope_theta`.
        flags: options of the architecture: `tied`, `attention_bias`, ...
        rope: the parameters of RoPE scaling; empty if RoPE is not scaled.
        lists: lists of layer numbers, or a word for each layer (`layer_types`), for layers that follow no rule.
        dtype: the stored weights' dtype, a safetensors code.
        dtype_stated: whether the configuration or the catalogue states the dtype; if not, BF16 is assumed.
        rests_on: where the dimensions are from, as the end of the sentence "dimensions from …".
        cites: ids of the cites for the dimensions.
    """

    id: str
    name: str
    architecture: str
    dims: Mapping[str, int]
    numbers: Mapping[str, float]
    flags: Mapping[str, Scalar]
    rope: Mapping[str, Scalar] = field(default_factory=dict)
    ropes: Mapping[str, Mapping[str, Scalar]] = field(default_factory=dict)
    """Kind of layer -> its RoPE scaling, where layers differ; see `rope`."""
    lists: Mapping[str, tuple[int, ...] | tuple[str, ...]] = field(default_factory=dict)
    dtype: str = "BF16"
    dtype_stated: bool = True
    context_length: int | None = None
    family: str = ""
    kind: str = ""
    hub_id: str | None = None
    names: str = ""
    """The convention whose names tables show first; the architecture's first one if empty."""
    rests_on: str = ""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    """What is probably wrong in the configuration."""
    unknown: tuple[Unknown, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    gaps: tuple[Gap, ...] = ()
    cites: tuple[str, ...] = ()
    text_part: bool = False
    """Whether it is the language model inside a multimodal model."""
    optional: frozenset[str] = frozenset()
    """Axes that the configuration may state although no weight of this model has them."""
    underived: Mapping[str, str] = field(default_factory=dict)
    """Axis -> the message why its size cannot be derived, an error only if a weight or a step has the axis."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What the configuration states and the description does not cover: name -> value (see `undescribed`)."""
    as_catalogued: Model | None = None
    """For a catalogued model: the model that Meta's reference code builds from the unmodified entry."""


def require_described(model: Model, command: str, context: int | None = None) -> None:
    """Refuse if the command's answer depends on a setting that is not described.

    Args:
        context: the positions that the answer covers, so that a longer sliding window does not matter; None if unknown.

    Raises:
        NotDescribed: naming each such setting.
    """
    gaps = [gap for gap in model.gaps if command in gap.affects]
    if context is not None:
        gaps = [gap for gap in gaps if gap.within is None or context > gap.within]
    if gaps:
        raise NotDescribed(
            f"{model.id}: {'; '.join(gap.reason for gap in gaps)}. The answer of `atlas {command}` depends on it",
            hint="`atlas params` still counts its parameters"
            + _unaffected(None if context is None else [gap.within for gap in gaps]),
        )


def messages(model: Model) -> list[str]:
    """The warnings and unknown keys of a configuration, as a command prints them."""
    named = [each.message for each in model.unknown[:MOST_UNKNOWN]]
    if rest := len(model.unknown) - len(named):
        named.append(f"{model.unknown[0].where}: {rest:,} more keys are unknown and were not used")
    return [*model.warnings, *named]


def _unaffected(within: list[int | None] | None) -> str:
    """The end of a hint: up to which context there is an answer; empty if there is none at any."""
    known = [length for length in within or [] if length is not None]
    return f"; contexts of up to {min(known):,} positions are answered" if known and known == within else ""
