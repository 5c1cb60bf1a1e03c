"""The figures of published configurations in `expected.toml`, and the shared folder with every tensor's name and shape."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

FAMILIES = Path(__file__).parents[2].parent / "shared" / "families"
"""Beside the repository: for each configuration `config.json` and `expected.json`."""


@dataclass(frozen=True, slots=True)
class Expected:
    """One configuration's figures (see the head of `expected.toml`)."""

    name: str
    published_as: str
    source: str
    model_type: str
    parameters: int
    tensors: int
    elements: int
    kv: int
    flops: int
    products: int
    source_note: str = ""
    active: int | None = None
    buffers: tuple[int, int] = (0, 0)
    tied: Mapping[str, str] = field(default_factory=dict)
    kv_beyond: int | None = None
    window: int | None = None
    windowed_layers: int | None = None
    state_elements: Mapping[str, int] = field(default_factory=dict)
    flops_caveat: str = ""


def _load() -> dict[str, Expected]:
    document = tomllib.loads(Path(__file__).with_name("expected.toml").read_text(encoding="utf-8"))
    return {
        name: Expected(name, **{k: tuple(v) if isinstance(v, list) else v for k, v in row.items()})
        for name, row in document.items()
    }


EXPECTED = _load()


def config_path(name: str) -> Path:
    return FAMILIES / name / "config.json"


def tensors(name: str) -> dict[str, tuple[int, ...]]:
    """Every name and shape of the checkpoint. The shared file has a row for each pattern, with the runs of its indices."""
    document: Mapping[str, Any] = json.loads((FAMILIES / name / "expected.json").read_text(encoding="utf-8"))
    found: dict[str, tuple[int, ...]] = {}
    for row in document["tensors"]:
        for numbers in product(*map(run, row.get("index", []))):
            found[row["name"].format(*numbers)] = tuple(row["shape"])
    return found


def run(text: str) -> Iterator[int]:
    """The numbers of `0-2,4,6-12:3`: 0, 1, 2, 4, 6, 9 and 12."""
    for part in text.split(","):
        bounds, _, step = part.partition(":")
        first, _, last = bounds.partition("-")
        yield from range(int(first), int(last or first) + 1, int(step or 1))
