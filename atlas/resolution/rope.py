"""Scaled rotary positions: which forms are described, and the parameters each needs.

The `llama3` form divides the frequencies whose wavelength is beyond the original context by `factor`, leaves the short
ones alone and blends between (Meta's apply_scaling; transformers' rope_type llama3). What changes no shape is no ground
for refusing to count: a form that is not described becomes a gap.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from atlas.errors import ConfigError, shown
from atlas.resolution.model import Gap, Scalar

LLAMA3_FIELDS = ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")

_AFFECTED = frozenset({"trace", "explain", "run"})

META_SCALED: dict[str, Scalar] = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
"""What Meta's reference code does for every model with use_scaled_rope (cite: rope-scaling)."""


def read(key: str, value: object, where: str) -> tuple[float | None, dict[str, Scalar], Gap | None]:
    """`rope_scaling` or transformers 5's `rope_parameters` -> (rope_theta if it holds one, parameters, gap).

    Raises:
        ConfigError: not a table, or a form that is described lacks one of its parameters.
    """
    if not isinstance(value, Mapping):
        raise ConfigError(f"{where}: {key} is {shown(value)}, expected a table or null")
    theta = value.get("rope_theta")
    if theta is not None and not positive(theta):
        raise ConfigError(f"{where}: {key}.rope_theta is {shown(theta)}, expected a positive number")
    kinds = {str(value[word])[:40] for word in ("rope_type", "type") if value.get(word) is not None}
    if len(kinds) > 1:
        raise ConfigError(f"{where}: {key} says both {' and '.join(sorted(kinds))} for its type")
    kind = kinds.pop() if kinds else "default"
    base = None if theta is None else float(theta)
    if any(isinstance(each, Mapping) for each in value.values()):
        return (
            base,
            {},
            Gap(f"positions differ from layer to layer ({key}), which is not described", _AFFECTED),
        )
    if kind == "default":
        return base, {}, None
    if kind != "llama3":
        says = f"positions are scaled in the form {kind!r} ({key}), which is not described"
        return base, {}, Gap(says, _AFFECTED)
    scaled: dict[str, Scalar] = {"rope_type": kind}
    for field in LLAMA3_FIELDS:
        number = value.get(field)
        if not positive(number):
            found = "is missing" if number is None else f"is {shown(number)}"
            raise ConfigError(
                f"{where}: {key}.{field} {found}, expected a positive number: the llama3 form needs it"
            )
        assert isinstance(number, int | float)
        scaled[field] = number
    return base, scaled, None


def positive(number: object) -> bool:
    return (
        isinstance(number, int | float)
        and not isinstance(number, bool)
        and 0 < number <= sys.float_info.max  # a larger integer is no double
    )
