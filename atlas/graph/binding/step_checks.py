"""Checks of a bound step: whether its operation can give the declared result, and the numbers that it reads."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from atlas.errors import ConfigError, SpecError
from atlas.graph import operations
from atlas.graph.binding.binding import Binding
from atlas.graph.graph import Step
from atlas.resolution.model import Scalar


def check(
    step: Step,
    operands: Sequence[list[str]],
    result: list[str],
    dims: Mapping[str, int],
    binding: Binding,
    where: str,
) -> None:
    """Refuse a step that its operation cannot compute.

    Args:
        operands, result: the axes, product axes split where another operand has a part.
        where: the step in its component, and the node, for messages.

    Raises:
        SpecError: its operands do not fit its operation, or it renames an axis to one of another size.
        ConfigError: it rotates entries that do not form planes.
    """
    if step.pairs not in ("halves", "neighbours"):
        raise SpecError(f"{where}: pairs = {step.pairs!r}, expected 'halves' or 'neighbours'")
    if step.op == "rotate" and step.over in dims:
        _require_planes(step, dims[step.over or ""], binding)
    if problem := operations.fault(step.op, operands, result, step.over):
        raise SpecError(f"{where}: {problem}")
    if step.op == "rename":
        for was, now in zip(operands[0], result, strict=True):
            if was != now and (was not in dims or dims[was] != dims.get(now)):
                sizes = f"{dims.get(was, 'free')} and {dims.get(now, 'free')}"
                raise SpecError(f"{where}: cannot rename {was} to {now}: their sizes are {sizes}")


def _require_planes(step: Step, width: int, binding: Binding) -> None:
    """Refuse a rotation of entries that do not form planes of two.

    Raises:
        ConfigError: their number is odd, or none rotates.
    """
    rotated = int(width * step.share) if 0 <= step.share <= 1 else 0
    if rotated < 2 or rotated % 2:
        share = "" if step.share == 1 else f", of which the share {step.share:g} rotates"
        raise ConfigError(
            f"{binding.model.id}: {binding.meaning(step.over or '')} is {width:,}{share}: "
            f"{step.id.rpartition('.')[0]} rotates {rotated:,} entries, expected planes of two"
        )


def window(value: Scalar, binding: Binding, where: str) -> int:
    """The positions that a mask or a cache is limited to; 0 for no limit.

    Raises:
        ConfigError: it is not a whole number.
    """
    if isinstance(value, str) or value is True or not (0 <= value < math.inf) or int(value) != value:
        raise ConfigError(
            f"{binding.model.id}: {where}: a window of {value!r} positions, expected a whole number"
        )
    return int(value)
