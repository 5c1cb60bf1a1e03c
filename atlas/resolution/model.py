"""One model, resolved: what every reader reads beside its architecture.

Made from a catalogue entry or from a checkpoint's own configuration; nothing here knows which.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from atlas.errors import NotDescribed

Scalar = bool | int | float | str


@dataclass(frozen=True, slots=True)
class Conflict:
    """Where the catalogue and the released checkpoint disagree."""

    field: str
    catalogue: Scalar | None
    used: Scalar | None
    why: str
    cites: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that changes the computation, but no shape, and is not described: counted all the same."""

    says: str
    affects: frozenset[str]
    """The commands whose answer depends on it, and which therefore refuse; `weights` for the weights' bytes alone."""
    within: int | None = None
    """The longest context on which it has no effect (a sliding window's length); None if it always has one."""


@dataclass(frozen=True, slots=True)
class Model:
    """An architecture's free choices, made.

    Attributes:
        dims: sizes of axes, exact positive integers.
        numbers: what the arithmetic uses: `norm_eps`, `rope_theta`.
        flags: switches of the architecture: `tied`, `attention_bias`, ...
        rope: the parameters of scaled rotary positions; empty where they are not scaled.
        lists: layers named by index, for architectures whose layers are not alike by a rule.
        dtype: the stored weights' dtype, a safetensors code.
        dtype_stated: whether the configuration or the catalogue says so; where not, the usual one is assumed.
        rests_on: one sentence: where the dimensions come from.
        cites: ids of the cites that bear the dimensions out.
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
    names: str = ""
    """The convention whose names tables show first; the architecture's first one if empty."""
    rests_on: str = ""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    gaps: tuple[Gap, ...] = ()
    cites: tuple[str, ...] = ()
    as_catalogued: Model | None = None
    """For a catalogued model: what its entry gives when the reference code is built from it as it stands."""


def require_described(model: Model, command: str, context: int | None = None) -> None:
    """Refuse where the command's answer depends on something that is not described.

    Args:
        context: the positions that the answer covers, so that a longer sliding window does not matter; None if unknown.

    Raises:
        NotDescribed: naming every such setting.
    """
    gaps = [gap for gap in model.gaps if command in gap.affects]
    if context is not None:
        gaps = [gap for gap in gaps if gap.within is None or context > gap.within]
    reasons = [gap.says for gap in gaps]
    if reasons:
        raise NotDescribed(
            f"{model.id}: {'; '.join(reasons)}, and what `atlas {command}` would say depends on it",
            hint="`atlas params` counts it all the same"
            + _unaffected(None if context is None else [gap.within for gap in gaps]),
        )


def _unaffected(within: list[int | None] | None) -> str:
    """The end of a hint: up to which context there is an answer; empty if there is none at any."""
    known = [length for length in within or [] if length is not None]
    return f"; contexts of up to {min(known):,} positions are answered" if known and known == within else ""
