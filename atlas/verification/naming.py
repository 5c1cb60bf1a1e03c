"""The names that a convention declares, which convention a checkpoint follows, and how its names deviate: mostly by a prefix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import islice

from atlas.graph import tensors
from atlas.graph.conventions import inside
from atlas.graph.graph import Graph
from atlas.graph.tensors import Row, published


@dataclass(frozen=True, slots=True)
class Table:
    """The names that a convention declares for a model, in the order of its table, each with its row.

    Attributes:
        needed: the tensors that a checkpoint must store.
        tied: those that it need not store: a tied matrix in its second place, unless the convention stores both.
    """

    convention: str
    needed: Mapping[str, Row]
    tied: Mapping[str, Row]


def declared_names(graph: Graph, convention: str) -> Table:
    """Every tensor of a checkpoint in that convention.

    The names of all layers are made at once: filling in the template for each of 126 layers would take most of the time.
    """
    stores_tied = tensors.convention(graph, convention).stores_tied
    needed: dict[str, Row] = {}
    tied: dict[str, Row] = {}
    for row in tensors.rows(graph, convention):
        into = tied if row.tied_to is not None and not stores_tied else needed
        if row.indices:
            into |= dict.fromkeys((name for name, _ in row.names()), row)
        elif row.layers is None:
            into[row.template.text] = row
        else:
            before, _, after = row.template.text.partition(f"{{{row.layers[0]}}}")
            into |= dict.fromkeys([f"{before}{i}{after}" for i in row.layers[1]], row)
    return Table(convention, needed, tied)


def layer_of(name: str, row: Row) -> int | None:
    """The layer of a declared tensor; None if it is in no layer."""
    found = row.template.match(name) if row.layers else None
    return found[row.layers[0]] if found and row.layers else None


@dataclass(frozen=True, slots=True)
class Renaming:
    """Turns stored names into declared ones.

    Attributes:
        part: the part to replace, with its dot: a prefix such as `_orig_mod.`, or a word inside names.
        replacement: what declared names have in its place.
        anywhere: the part may be anywhere in a name, not only in front.
    """

    part: str
    replacement: str = ""
    anywhere: bool = False

    def __call__(self, name: str) -> str | None:
        """The name with the part replaced; None if it does not have the part."""
        if self.anywhere:
            renamed = f".{name}".replace(f".{self.part}", ".")[1:]
            return renamed if renamed != name else None
        return self.replacement + name[len(self.part) :] if name.startswith(self.part) else None


@dataclass(frozen=True, slots=True)
class FormerNames:
    """Turns the names of early checkpoints into declared ones, by the description's `former` table."""

    title: str
    replace: tuple[tuple[str, str], ...]
    usual: bool = False
    """Whether the checkpoint is expected to have such names, those of the model inside a multimodal one."""

    def __call__(self, name: str) -> str | None:
        """The declared name; None if it is the same."""
        if self.usual:
            return inside(name, dict(self.replace))
        renamed = name
        for part, replacement in self.replace:
            renamed = renamed.replace(part, replacement)
        return renamed if renamed != name else None


@dataclass(frozen=True, slots=True)
class Naming:
    """A convention's declared names, and the renaming that finds a checkpoint's names among them."""

    table: Table
    renaming: Renaming | FormerNames | None = None

    @property
    def inside(self) -> set[str]:
        """How stored names of the language model inside a multimodal model begin; empty for other checkpoints."""
        if not isinstance(self.renaming, FormerNames) or not self.renaming.usual:
            return set()
        return {part for part, _ in self.renaming.replace}

    def renamed(self, names: Set[str]) -> dict[str, str]:
        """Stored name -> declared name, where the two differ."""
        if self.renaming is None:
            return {}
        others = {name: self.renaming(name) for name in names if name not in self.table.needed}
        return {name: other for name, other in others.items() if other is not None and other not in names}


def recognise(graph: Graph, names: Set[str]) -> Naming | None:
    """The convention that most names follow, unchanged or renamed; None if no name follows any."""
    tables = []
    usual = published(graph)
    for convention in sorted(graph.architecture.conventions, key=lambda name: name != usual):
        table = declared_names(graph, convention)
        if table.needed.keys() <= names:
            return Naming(table)
        tables.append((len(table.needed.keys() & names), table))
    most, table = max(tables, key=lambda counted: counted[0])
    best = Naming(table)
    for matches, table in tables:
        strange = list(islice((name for name in names if name not in table.needed), MOST_SAMPLED))
        former = [
            FormerNames(each.title, tuple(each.replace.items()))
            for each in tensors.convention(graph, table.convention).former
        ]
        within = [
            FormerNames(each.title, tuple(each.replace.items()), usual=True)
            for each in tensors.convention(graph, table.convention).within
            if graph.model.text_part
        ]
        candidates: list[Renaming | FormerNames] = [
            *within,
            *former,
            *_renamings(names, strange, table.needed),
        ]
        for renaming in candidates:
            naming = Naming(table, renaming)
            others = (renaming(name) for name in strange)
            found = matches + sum(other in table.needed and other not in names for other in others if other)
            if found > most:
                most, best = found, naming
    return best if most else None


MOST_TRIED = 6
"""Prefixes that are tried, the likeliest first, and words inside names."""

MOST_SAMPLED = 100_000
"""Undeclared names in which a prefix is looked for: no model has as many tensors, but a header has room for millions."""

LONGEST_NAME = 1_000
"""Characters of a name in which a prefix is looked for."""


def _renamings(names: Set[str], strange: Sequence[str], needed: Mapping[str, Row]) -> Iterator[Renaming]:
    """Renamings to try: the likeliest prefixes, whole words first, and then the likeliest words inside names."""
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
    yield from sorted(likely, key=lambda it: (not f".{it.part}".endswith("."), it.replacement, it.part))
    known = {word for name in needed for word in name.split(".")}
    words = Counter(
        word
        for name in strange
        if len(name) <= LONGEST_NAME
        for word in set(name.split(".")) - known
        if not word.isdigit()
    )
    yield from (Renaming(f"{word}.", anywhere=True) for word, _ in words.most_common(MOST_TRIED))


def _first_word(needed: Mapping[str, Row]) -> str:
    """The word that most declared names begin with, `model.` in the Hub's; empty if the layers' word comes first."""
    words = Counter(name.partition(".")[0] for name in needed)
    word, count = words.most_common(1)[0]
    counts_layers = any(name.startswith(f"{word}.") and name[len(word) + 1].isdigit() for name in needed)
    return "" if counts_layers or count * 2 <= len(needed) else f"{word}."
