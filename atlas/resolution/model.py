"""A resolved model: its dimensions and settings, from a catalogue entry or from a configuration file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from atlas.errors import NotDescribed

Scalar = bool | int | float | str


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
    """The commands whose answer depends on it. They refuse."""


@dataclass(frozen=True, slots=True)
class Model:
    """The values of an architecture's free choices.

    Attributes:
        dims: sizes of axes, exact positive integers.
        numbers: numbers that the arithmetic uses: `norm_eps`, `rope_theta`.
        flags: options of the architecture: `tied`, `attention_bias`, ...
        rope: the parameters of RoPE scaling; empty if RoPE is not scaled.
        lists: lists of layer indices, for architectures whose layers follow no rule.
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
    lists: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    dtype: str = "BF16"
    dtype_stated: bool = True
    context_length: int | None = None
    family: str = ""
    kind: str = ""
    hub_id: str | None = None
    rests_on: str = ""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    gaps: tuple[Gap, ...] = ()
    cites: tuple[str, ...] = ()
    as_catalogued: Model | None = None
    """For a catalogued model: the model that Meta's reference code builds from the unmodified entry."""


def require_described(model: Model, command: str) -> None:
    """Refuse if the command's answer depends on a setting that is not described.

    Raises:
        NotDescribed: naming each such setting.
    """
    reasons = [gap.reason for gap in model.gaps if command in gap.affects]
    if reasons:
        raise NotDescribed(
            f"{model.id}: {'; '.join(reasons)}. The answer of `atlas {command}` depends on it",
            hint="`atlas params` still counts its parameters",
        )
