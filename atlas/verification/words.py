"""How findings write shapes, layers and lists of tensors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from atlas.checkpoint.faults import show
from atlas.checkpoint.findings import listing

LONGEST_NAME = 200
"""Of a tensor, before a message shortens it."""


MOST_DIMS = 16
"""Of a shape, before a message shortens it."""


def written(shape: Sequence[int]) -> str:
    """`[128256, 4096]`; of more dimensions than any tensor has, the first."""
    if len(shape) > MOST_DIMS:
        first = ", ".join(map(str, shape[:MOST_DIMS]))
        return f"[{first} and {len(shape) - MOST_DIMS:,} more]"
    return f"[{', '.join(map(str, shape))}]"


def starred(name: str) -> str:
    """A name for all of its indices: `model.layers.*.mlp.up_proj.weight`."""
    return re.sub(r"(?<![^.])\d+(?![^.])", "*", name)


def together(names: Iterable[str], most: int = 4) -> str:
    """Names as one list; where several differ only in their indices, once with stars in place of these."""
    stars: dict[str, list[str]] = {}
    for name in names:
        stars.setdefault(starred(name), []).append(name)
    return listing([_clipped(star if len(alike) > 1 else alike[0]) for star, alike in stars.items()], most)


def _clipped(name: str) -> str:
    return name if 0 < len(name) <= LONGEST_NAME else show(name)


def in_layers(numbers: Iterable[int | None]) -> str:
    """` in layers 0–2`; nothing for a single one, whose name tells."""
    known = [number for number in numbers if number is not None]
    return f" in {layers(known)}" if len(known) > 1 else ""


def runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Consecutive numbers as first and last: 0 1 2 5 is (0, 2) (5, 5)."""
    found: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


def layers(numbers: Iterable[int]) -> str:
    """`layer 3`, `layers 0–2 and 5`."""
    spans = runs(numbers)
    said = [f"{first}" if first == last else f"{first}–{last}" for first, last in spans]
    return f"{'layer' if len(spans) == 1 and spans[0][0] == spans[0][1] else 'layers'} {listing(said, 6)}"


def tensors(count: int) -> str:
    """`1 tensor`, `2 tensors`."""
    return f"{count:,} tensor{'' if count == 1 else 's'}"
