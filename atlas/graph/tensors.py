"""The tensors of a checkpoint in a convention: every name and shape, and names looked up.

conventions    a convention's table as it is described
rows           the table bound to a model
"""

from __future__ import annotations

import itertools
import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from atlas.errors import SpecError
from atlas.graph.conventions import Apart, convention, published
from atlas.graph.graph import Graph
from atlas.graph.rows import Row, rows

__all__ = ["Apart", "Names", "Row", "Tensor", "convention", "expected", "published", "rows"]


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor that a checkpoint must contain: a row at given indices."""

    name: str
    shape: tuple[int, ...]
    row: Row
    layer: int | None


def expected(graph: Graph, name: str) -> Iterator[Tensor]:
    """Every tensor that a checkpoint of this model must contain in a convention, in table order, then by layer.

    The second name of a tied matrix is left out unless the convention stores both.
    """
    stores_tied = convention(graph, name).stores_tied
    for row in rows(graph, name):
        if row.tied_to is not None and not stores_tied:
            continue
        each = math.prod(count for _, count in row.indices)
        layers = (i for i in row.layers[1] for _ in range(each)) if row.layers else itertools.repeat(None)
        for full, layer in zip(row.all_names(), layers, strict=False):
            yield Tensor(full, row.shape, row, layer)


_DIGITS = re.compile("[0-9]+")


class Names:
    """Every name that rows stand for, looked up without a search through the rows.

    Raises:
        SpecError: two rows have a name in common.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = tuple(rows)
        self._starts: list[int] = []
        self._places: dict[str, int] = {}
        for row in self.rows:
            start = len(self._places)
            self._starts.append(start)
            self._places |= zip(row.all_names(), itertools.count(start))
            if len(self._places) != start + row.count:
                raise SpecError(f"{row.template.text!r}: {self._shared_name(row)}")
        self._alike: dict[str, list[Row]] | None = None

    def _shared_name(self, row: Row) -> str:
        """Which of a row's names an earlier row has, for a message."""
        earlier = Names(self.rows[: len(self._starts) - 1])
        name = next(name for name in row.all_names() if name in earlier)
        other = earlier.row(name)
        return f"{name} is also a name of {other.template.text if other else name!r}"

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def row(self, name: str) -> Row | None:
        """The row that a name is of; None if there is no such tensor."""
        place = self._places.get(name)
        return None if place is None else self.rows[bisect_right(self._starts, place) - 1]

    def get(self, name: str) -> tuple[Row, dict[str, int]] | None:
        """The row that a name is of, and the indices in the name; None if there is no such tensor."""
        place = self._places.get(name)
        if place is None:
            return None
        i = bisect_right(self._starts, place) - 1
        row, place = self.rows[i], place - self._starts[i]
        indices = {}
        for word, count in reversed(row.indices):
            place, indices[word] = divmod(place, count)
        if row.layers:
            indices[row.layers[0]] = row.layers[1][place]
        return row, indices

    def alike(self, name: str) -> tuple[Row, dict[str, int]] | None:
        """As `get`, also for a name whose indices the model does not have, such as a layer after the last one."""
        if (found := self.get(name)) is not None:
            return found
        if self._alike is None:
            self._alike = {}
            for row in self.rows:
                text = row.template.text.format_map(dict.fromkeys(row.template.placeholders, "0"))
                self._alike.setdefault(_DIGITS.sub("0", text), []).append(row)
        for row in self._alike.get(_DIGITS.sub("0", name), ()):
            if (indices := row.template.match(name)) is not None:
                return row, indices
        return None
