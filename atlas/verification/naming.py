"""Which convention a checkpoint's names follow, and what stands between them and it: mostly a wrapper's prefix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import islice

from atlas.graph.graph import Graph
from atlas.graph.tensors import Row, published
from atlas.verification.declared import Table, declared


@dataclass(frozen=True, slots=True)
class Renaming:
    """What turns the names that are there into declared ones.

    Attributes:
        part: what is in the way, with its dot: a prefix such as `_orig_mod.`, or a word inside names.
        instead: what declared names have in its place.
        inside: the part stands anywhere in a name, not only in front.
    """

    part: str
    instead: str = ""
    inside: bool = False

    def __call__(self, name: str) -> str | None:
        """The name without what is in the way; None where nothing is."""
        if self.inside:
            renamed = f".{name}".replace(f".{self.part}", ".")[1:]
            return renamed if renamed != name else None
        return self.instead + name[len(self.part) :] if name.startswith(self.part) else None


@dataclass(frozen=True, slots=True)
class Naming:
    """A convention's table, and what has to be done to a checkpoint's names to find them in it."""

    table: Table
    renaming: Renaming | None = None

    def renamed(self, names: Set[str]) -> dict[str, str]:
        """Name -> the one to look it up by, for those of which the two differ."""
        if self.renaming is None:
            return {}
        others = {name: self.renaming(name) for name in names if name not in self.table.needed}
        return {name: other for name, other in others.items() if other is not None and other not in names}


def recognise(graph: Graph, names: Set[str]) -> Naming | None:
    """The convention that most names follow, as they stand or renamed; None where none follow any."""
    tables = []
    usual = published(graph)
    for convention in sorted(graph.architecture.conventions, key=lambda name: name != usual):
        table = declared(graph, convention)
        if table.needed.keys() <= names:
            return Naming(table)
        tables.append((len(table.needed.keys() & names), table))
    most, table = max(tables, key=lambda counted: counted[0])
    best = Naming(table)
    for matches, table in tables:
        strange = list(islice((name for name in names if name not in table.needed), MOST_SAMPLED))
        for renaming in _renamings(names, strange, table.needed):
            naming = Naming(table, renaming)
            others = (renaming(name) for name in strange)
            found = matches + sum(other in table.needed and other not in names for other in others if other)
            if found > most:
                most, best = found, naming
    return best if most else None


MOST_TRIED = 6
"""Of the likeliest prefixes, and of the likeliest words inside names."""

MOST_SAMPLED = 100_000
"""Of the names that are not declared: no model has as many, and a header has room for millions."""

LONGEST_NAME = 1_000
"""Of those in which a prefix is looked for."""


def _renamings(names: Set[str], strange: Sequence[str], needed: Mapping[str, Row]) -> Iterator[Renaming]:
    """What may stand in front of names, or inside them: whole words first, the likeliest of each kind only."""
    one_of_each_row = {id(row): name for name, row in needed.items() if name not in names}
    first = _first_word(needed)
    votes: Counter[Renaming] = Counter()
    for name in strange:
        if len(name) > LONGEST_NAME:
            continue
        for wanted in one_of_each_row.values():
            if name.endswith(wanted):
                votes[Renaming(name[: -len(wanted)])] += 1
            tail = wanted.removeprefix(first)
            if first and tail != wanted and f".{name}".endswith(f".{tail}"):
                votes[Renaming(name[: -len(tail)], first)] += 1
    likely = [renaming for renaming, _ in votes.most_common(MOST_TRIED)]
    yield from sorted(likely, key=lambda it: (not f".{it.part}".endswith("."), it.instead, it.part))
    known = {word for name in needed for word in name.split(".")}
    words = Counter(
        word
        for name in strange
        if len(name) <= LONGEST_NAME
        for word in set(name.split(".")) - known
        if not word.isdigit()
    )
    yield from (Renaming(f"{word}.", inside=True) for word, _ in words.most_common(MOST_TRIED))


def _first_word(needed: Mapping[str, Row]) -> str:
    """The word that most declared names begin with, `model.` in the Hub's; empty where the layers come first."""
    words = Counter(name.partition(".")[0] for name in needed)
    word, count = words.most_common(1)[0]
    counts_layers = any(name.startswith(f"{word}.") and name[len(word) + 1].isdigit() for name in needed)
    return "" if counts_layers or count * 2 <= len(needed) else f"{word}."
