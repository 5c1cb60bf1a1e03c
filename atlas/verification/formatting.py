"""How messages write shapes, layers and lists of tensors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from atlas.checkpoint.faults import show
from atlas.checkpoint.findings import listing

LONGEST_NAME = 200
"""Characters of a tensor's name; a longer one is shortened in messages."""


MOST_DIMS = 16
"""Dimensions of a shape; a longer one is shortened in messages."""


def shape_text(shape: Sequence[int]) -> str:
    """`[128256, 4096]`; only the first dimensions of a shape that has absurdly many."""
    if len(shape) > MOST_DIMS:
        first = ", ".join(map(str, shape[:MOST_DIMS]))
        return f"[{first} and {len(shape) - MOST_DIMS:,} more]"
    return f"[{', '.join(map(str, shape))}]"


def wildcard(name: str) -> str:
    """A name with `*` in place of each index: `model.layers.*.mlp.up_proj.weight`."""
    return re.sub(r"(?<![^.])\d+(?![^.])", "*", name)


def name_list(names: Iterable[str], most: int = 4) -> str:
    """Names as one list; several that differ only in their indices are listed once, with `*`."""
    stars: dict[str, list[str]] = {}
    for name in names:
        stars.setdefault(wildcard(name), []).append(name)
    return listing([_clipped(star if len(alike) > 1 else alike[0]) for star, alike in stars.items()], most)


def _clipped(name: str) -> str:
    return name if 0 < len(name) <= LONGEST_NAME else show(name)


def in_layers(numbers: Iterable[int | None]) -> str:
    """` in layers 0–2`; empty for a single layer, which the tensor's name shows."""
    known = [number for number in numbers if number is not None]
    return f" in {layer_text(known)}" if len(known) > 1 else ""


def runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Consecutive numbers as first and last: 0 1 2 5 is (0, 2) (5, 5)."""
    found: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


def layer_text(numbers: Iterable[int]) -> str:
    """`layer 3`, `layers 0–2 and 5`."""
    spans = runs(numbers)
    texts = [f"{first}" if first == last else f"{first}–{last}" for first, last in spans]
    return f"{'layer' if len(spans) == 1 and spans[0][0] == spans[0][1] else 'layers'} {listing(texts, 6)}"


def tensor_count(count: int) -> str:
    """`1 tensor`, `2 tensors`."""
    return f"{count:,} tensor{'' if count == 1 else 's'}"
