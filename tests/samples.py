"""The small configuration of each architecture, as the tests are parametrised with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from atlas.spec.library import Library


@dataclass(frozen=True, slots=True)
class Sample:
    """A small config.json.

    Attributes:
        first: whether it is the architecture's first one, in which all sizes are different.
    """

    name: str
    architecture: str
    settings: dict[str, Any]
    first: bool


def _all() -> list[Sample]:
    library = Library()
    return [
        Sample(name, id, settings, first=place == 0)
        for id in library.paths("architectures")
        for place, (name, settings) in enumerate(library.samples(library.architecture(id)).items())
    ]


SAMPLES = _all()
