"""Duplicate detection among millions of names in little memory: hashes first, names only where two hashes are equal."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Set
from itertools import pairwise

from atlas.checkpoint.faults import Malformed, show


class Names:
    """Finds names that occur twice, with eight bytes of memory for each name."""

    def __init__(self) -> None:
        self.buckets = [array("q") for _ in range(256)]

    def add(self, name: str) -> None:
        number = hash(name)
        self.buckets[number & 255].append(number)

    def twice(self) -> set[int]:
        """The hashes that occur twice; different names rarely share one."""
        found: set[int] = set()
        for bucket in self.buckets:
            if len(set(bucket)) < len(bucket):
                in_order = sorted(bucket)
                found.update(a for a, b in pairwise(in_order) if a == b)
        return found


def require_once(hashes: Set[int], names: Iterator[str]) -> None:
    """Require that each name with one of these hashes occurs once.

    Raises:
        Malformed: a name occurs twice.
    """
    seen: set[str] = set()
    for name in names:
        if hash(name) in hashes:
            if name in seen:
                times = 2 + sum(other == name for other in names)
                raise Malformed(f"__metadata__ has the key {show(name)} {times:,} times; expected once")
            seen.add(name)
