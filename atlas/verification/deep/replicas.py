"""What each of Meta's model-parallel files holds whole, vectors along the residual stream: the copies should be equal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from atlas.verification.case import Case
from atlas.verification.deep.ties import Place
from atlas.verification.joined import is_repeated


@dataclass(frozen=True, slots=True)
class Replica:
    """A device's copy of a vector, and the first device's.

    Attributes:
        name: as it is declared.
    """

    name: str
    copy: Place
    original: Place


def replicas(case: Case) -> Iterator[Replica]:
    """Those of one shape and dtype; that others are not is told by the headers."""
    if not case.inventory.shares:
        return
    headers = case.inventory.headers
    for name, row in case.needed.items():
        if name not in case.found or not is_repeated(row):
            continue
        stored = case.found[name].name
        places = [
            (file, header.tensors[stored]) for file, header in headers.items() if stored in header.tensors
        ]
        for copy in places[1:]:
            if _kind(copy) == _kind(places[0]):
                yield Replica(name, copy, places[0])


def _kind(place: Place) -> tuple[str, tuple[int, ...]]:
    return place[1].dtype, place[1].shape
