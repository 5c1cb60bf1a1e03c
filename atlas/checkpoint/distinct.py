"""Whether millions of names are distinct, without holding them: by their hashes first, and exactly where two hashes are equal."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Set
from itertools import pairwise

from atlas.checkpoint.faults import Malformed, show


class Names:
    """Whether any of many names stands twice, in eight bytes for each."""

    def __init__(self) -> None:
        self.buckets = [array("q") for _ in range(256)]

    def add(self, name: str) -> None:
        number = hash(name)
        self.buckets[number & 255].append(number)

    def twice(self) -> set[int]:
        """The hashes that do; names that are not equal share one only by a rare chance."""
        found: set[int] = set()
        for bucket in self.buckets:
            if len(set(bucket)) < len(bucket):
                in_order = sorted(bucket)
                found.update(a for a, b in pairwise(in_order) if a == b)
        return found


def require_once(hashes: Set[int], names: Iterator[str]) -> None:
    """Of the names that have these hashes, each may stand once.

    Raises:
        Malformed: one stands twice.
    """
    seen: set[str] = set()
    for name in names:
        if hash(name) in hashes:
            if name in seen:
                times = 2 + sum(other == name for other in names)
                raise Malformed(f"__metadata__ has the key {show(name)} {times:,} times; expected once")
            seen.add(name)
