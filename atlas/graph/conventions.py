"""The names of a convention as a description states them: its table with what it has from another one, and names apart."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from atlas import spec
from atlas.errors import SpecError, UsageError
from atlas.grammar import shapes
from atlas.grammar.conditions import holds as is_met
from atlas.grammar.names import holding
from atlas.graph.graph import Graph

MOST_CHARACTERS = 1_000
"""Longest pattern of names that are counted apart."""

_SHARED = ("prefix", "prefix_when", "former", "apart", "stores_tied")
"""What a convention has from the one that it is like, unless it states the field itself."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One name of a convention's table and what the tensor contains.

    Attributes:
        name: with placeholders, and with the convention's prefix.
        holds: the weights and their layout, as `atlas.grammar.names.holding` reads it.
        block: the block whose layers alone have this name; None for all.
        inherited: whether it is from another architecture, and so may name weights that this one lacks.
    """

    name: str
    holds: str
    block: str | None
    cut: str | None
    inherited: bool


def entries(table: spec.Convention) -> Iterator[Entry]:
    """The rows of a table. A row with a list of weights gives one entry for each item."""
    inherited = frozenset(table.inherited)
    for name, row in table.tensors.items():
        block, cut = (row.block, row.cut) if isinstance(row, spec.Row) else (None, None)
        for text in _texts(row):
            yield Entry(name, text, block, cut, name in inherited)


def _texts(row: str | list[str] | spec.Row) -> list[str]:
    holds = row.holds if isinstance(row, spec.Row) else row
    return [holds] if isinstance(holds, str) else holds


def convention(graph: Graph, name: str) -> spec.Convention:
    """A convention of the architecture by name, with the rows of the convention that it is like.

    Raises:
        UsageError: there is none of that name.
        SpecError: conventions are like each other in a circle, or one is like a convention that does not exist.
    """
    known = graph.architecture.conventions
    if name not in known:
        raise UsageError(
            f"{graph.architecture.id} has no names in the convention {name!r}", hint=f"use {', '.join(known)}"
        )
    table, seen = known[name], [name]
    while table.like is not None:
        where = f"architecture {graph.architecture.id}: conventions.{seen[-1]}: like"
        if table.like in seen:
            raise SpecError(f"{where}: {' is like '.join((*seen, table.like))}")
        if table.like not in known:
            raise SpecError(f"{where} = {table.like!r}: there is no such convention")
        seen.append(table.like)
        table = _over(table, known[table.like])
    return table


def _over(own: spec.Convention, base: spec.Convention) -> spec.Convention:
    """A convention with the rows of the one that it is like, except for the weights that its own rows name."""
    taken = {
        weight for row in own.tensors.values() for text in _texts(row) for weight in holding(text).weights
    }
    rows: dict[str, str | list[str] | spec.Row] = dict(own.tensors)
    for name, row in base.tensors.items():
        left = [text for text in _texts(row) if taken.isdisjoint(holding(text).weights)]
        if name not in rows and left:
            rows[name] = row.model_copy(update={"holds": left}) if isinstance(row, spec.Row) else left
    shared = {field: getattr(base, field) for field in _SHARED if field not in own.model_fields_set}
    inherited = [name for name in base.inherited if name in rows and name not in own.tensors]
    return own.model_copy(
        update={**shared, "like": base.like, "tensors": rows, "inherited": [*own.inherited, *inherited]}
    )


def published(graph: Graph) -> str:
    """The convention of published checkpoints: `hf` if the architecture has it, else its first."""
    known = graph.architecture.conventions
    return "hf" if "hf" in known else next(iter(known))


def inside(name: str, prefixes: Mapping[str, str]) -> str | None:
    """The declared name of a tensor of the language model inside a multimodal one; None if it has none of the prefixes.

    Args:
        prefixes: how names inside begin -> how the declared ones do.
    """
    for prefix, replacement in prefixes.items():
        if name.startswith(prefix):
            return replacement + name[len(prefix) :]
    return None


def shortened(name: str, table: spec.Convention, graph: Graph) -> str:
    """A name of the table as this model's checkpoints have it: without the prefix where that does not apply.

    Raises:
        SpecError: the prefix depends on something that has no value.
    """
    return name if is_met(table.prefix_when, graph.values) else name.removeprefix(table.prefix)


class Apart:
    """The names of tensors that are not part of the forward pass, and are counted apart.

    A pattern is a name in which `*` stands for any text, and braces contain arithmetic on axes and numbers:
    `model.layers.{n_layers}.*` has every tensor of the layer after the last one.

    Raises:
        SpecError: a pattern is too long, or its arithmetic has no integer value.
    """

    def __init__(self, graph: Graph, name: str) -> None:
        table = convention(graph, name)
        where = f"architecture {graph.architecture.id}: conventions.{name}.apart"
        self._patterns = [
            (
                _filled(shortened(pattern, table, graph), graph.values, where).split("*"),
                what if isinstance(what, str) else what.what,
            )
            for pattern, what in table.apart.items()
            if isinstance(what, str) or is_met(what.when, graph.values)
        ]

    def what(self, name: str) -> str | None:
        """What a tensor of this name is; None if no pattern fits. Names that the convention declares are not apart."""
        return next((what for pieces, what in self._patterns if _fits(name, pieces)), None)


def _filled(pattern: str, values: Mapping[str, bool | int | float | str], where: str) -> str:
    """A pattern with the values of what is in braces."""
    if len(pattern) > MOST_CHARACTERS:
        raise SpecError(
            f"{where}: a pattern of {len(pattern):,} characters, expected at most {MOST_CHARACTERS:,}"
        )
    numbers = {
        name: value
        for name, value in values.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }

    def value(found: re.Match[str]) -> str:
        try:
            number = shapes.evaluate(found[1], numbers)
        except SpecError as error:
            raise SpecError(f"{where}: {pattern!r}: {error.message}") from None
        if int(number) != number:
            raise SpecError(f"{where}: {pattern!r}: {found[1]} is {number}, expected an integer")
        return str(int(number))

    return re.sub(r"\{([^{}]*)\}", value, pattern)


def _fits(name: str, pieces: list[str]) -> bool:
    """Whether a name consists of the pieces in order, with any text between two of them."""
    first, *rest = pieces
    if not rest:
        return name == first
    *middle, last = rest
    if not name.startswith(first):
        return False
    at = len(first)
    for piece in middle:
        found = name.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return len(name) - at >= len(last) and name.endswith(last)
