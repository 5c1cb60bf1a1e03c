"""Reads RoPE settings: which forms of scaling are described, and the parameters of each.

The `llama3` form divides frequencies with a wavelength above the original context by `factor`, keeps the short ones, and
interpolates between them (Meta's apply_scaling; transformers' rope_type llama3). RoPE changes no tensor's shape, so a fault
here never prevents counting: it becomes a gap, and the commands that need the frequencies refuse.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from atlas.errors import shown
from atlas.resolution.model import Gap, Scalar

LLAMA3_FIELDS = ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")
KNOWN_FIELDS = frozenset({"rope_theta", "rope_type", "type", *LLAMA3_FIELDS})

OTHER_STEPS = frozenset({"trace", "explain", "run"})
"""Commands that a form with other steps affects."""

FREQUENCIES = frozenset({"explain", "run"})
"""Commands that the values of the frequencies affect."""

META_SCALED: dict[str, Scalar] = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
"""What Meta's reference code does for every model with use_scaled_rope (cite: rope-scaling)."""


@dataclass
class Rope:
    """The RoPE settings of one key, `rope_scaling` or transformers 5's `rope_parameters`.

    Attributes:
        theta: the base, if the key states one.
        scaling: the parameters of the scaling; empty if there is none.
        gaps: what is not described.
        faults: what is missing or not a valid value; a command that needs it refuses.
        others: further fields: `partial_rotary_factor`, and those of forms that are not described.
        described: whether all fields of the form are known.
    """

    theta: float | None = None
    scaling: dict[str, Scalar] = field(default_factory=dict)
    gaps: list[Gap] = field(default_factory=list)
    faults: list[Gap] = field(default_factory=list)
    others: dict[str, Any] = field(default_factory=dict)
    described: bool = True


def read(key: str, value: object) -> Rope:
    """The RoPE settings that a key states. `false` means the same as null."""
    found = Rope()
    if value is False:
        return found
    if not isinstance(value, Mapping):
        found.faults.append(Gap(f"the key {key} is {shown(value)}, expected a table or null", OTHER_STEPS))
        return found
    theta = value.get("rope_theta")
    if positive(theta):
        found.theta = float(theta)
    elif theta is not None:
        found.faults.append(
            Gap(f"the key {key}.rope_theta is {shown(theta)}, expected a positive number", FREQUENCIES)
        )
    found.others = {
        name: item for name, item in value.items() if name not in KNOWN_FIELDS and item is not None
    }
    kinds = sorted({str(value[word])[:40] for word in ("rope_type", "type") if value.get(word) is not None})
    kind = kinds[0] if kinds else "default"
    if any(isinstance(each, Mapping) for each in value.values()):
        found.gaps.append(
            Gap(f"RoPE differs from layer to layer ({key}), which is not described", OTHER_STEPS)
        )
        found.described = False
    elif len(kinds) > 1:
        found.faults.append(Gap(f"the key {key} states two types, {' and '.join(kinds)}", OTHER_STEPS))
    elif kind == "llama3":
        found.scaling = {"rope_type": kind}
        for name in LLAMA3_FIELDS:
            number = value.get(name)
            if positive(number):
                found.scaling[name] = number
                continue
            problem = "is missing" if number is None else f"is {shown(number)}"
            found.faults.append(
                Gap(
                    f"the key {key}.{name} {problem}, expected a positive number: the llama3 form needs it",
                    FREQUENCIES,
                )
            )
    elif kind != "default":
        found.gaps.append(
            Gap(f"RoPE is scaled in the form {kind!r} ({key}), which is not described", OTHER_STEPS)
        )
        found.described = False
    return found


def positive(number: object) -> TypeGuard[float]:
    """Whether a value is a positive number that a double can represent."""
    return (
        isinstance(number, int | float) and not isinstance(number, bool) and 0 < number <= sys.float_info.max
    )
