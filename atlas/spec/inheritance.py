"""Architectures that are built like another one: the merge of their tables, before they are validated.

`like = "decoder"` takes over another file's tables. Tables merge key by key, and everything else, lists included, is
replaced; only the `ignored` keys of a configuration table are added to the inherited ones. `without = ["ties", "conventions.meta"]` leaves inherited keys out. These are never inherited, because they are
statements about one model or one class:

    cites, evidence, samples, and the cites of pages        sources of the other model's code
    defaults, absent, generations, whose, class, model_type and where of a configuration table
                                                            what one class means, and which models it is for

A weight that a row of a convention names has its name there: inherited rows that name it are left out. An inherited row may
name weights that do not exist here; such rows are listed in `inherited` of their convention.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atlas.errors import SpecError
from atlas.grammar.names import holding
from atlas.spec.config_tables import BY_KEY, MEANINGS

Table = dict[str, Any]

MOST_LEVELS = 8
"""Longest chain of architectures built like each other."""

_OWN = frozenset({"id", "base", "like", "without", "cites", "evidence", "samples"})
_OWN_IN_CONFIGS = frozenset({"defaults", "absent", "generations", "whose", "class", "model_type", "where"})


@dataclass(frozen=True, slots=True)
class Merged:
    """An architecture's tables with what it inherits.

    Attributes:
        files: the files of the chain with their own tables, the architecture's first.
    """

    table: Table
    files: tuple[tuple[Path, Table], ...]

    def file_of(self, address: Sequence[int | str]) -> Path:
        """The file that states what is at an address: keys of tables and places in lists.

        Tables are followed as they are merged. A list is one file's, with all that is in it. What no file states belongs to
        the first one that has the table around it.
        """
        stating: list[tuple[Path, Any]] = list(self.files)
        for key in address:
            inside = [(p, table[key]) for p, table in stating if isinstance(table, Mapping) and key in table]
            if not inside:
                break
            stating = inside
        return stating[0][0]


def merged(name: str, read: Callable[[str, str], tuple[Path, Table]]) -> Merged:
    """An architecture's tables with everything it inherits.

    Args:
        read: name, and the place that states it -> the architecture's file and its own tables.

    Raises:
        SpecError: architectures are built like each other in a circle, the chain is too long, or `without` names nothing.
    """
    files: list[tuple[Path, Table]] = []
    names: list[str] = []
    like: object = name
    while like is not None:
        if not isinstance(like, str):
            raise SpecError(f"{files[-1][0]}: like: input should be a valid string, found {like!r:.60}")
        path, table = read(like, f"{files[-1][0]}: like: " if files else "")
        if like in names:
            raise SpecError(f"{files[0][0]}: like: {' is like '.join((*names, like))}")
        if len(names) > MOST_LEVELS:
            raise SpecError(
                f"{files[0][0]}: like: more than {MOST_LEVELS} architectures are built like each other"
            )
        _checked(table, path)
        names.append(like)
        files.append((path, table))
        like = table.get("like")
    result: Table = {}
    for level, (path, table) in enumerate(reversed(files)):
        base = _inheritable(result) if level else {}
        for address in _without(table, path):
            _remove(base, address, path)
        _forget_rules(base, table)
        result = _join(base, table)
        for name, config in base.get("configs", {}).items():
            if "ignored" in config:
                result["configs"][name] = {**result["configs"][name], "ignored": config["ignored"]}
        _replace_rows(base, table, result)
    if conventions := result.get("conventions"):
        own = files[0][1].get("conventions", {})
        result["conventions"] = {
            name: conventions[name] for name in [*own, *conventions]
        }  # its own come first
    return Merged({key: value for key, value in result.items() if key != "without"}, tuple(files))


def _checked(table: Table, path: Path) -> None:
    """Refuse tables that are none, which inheritance reads before the schema is applied.

    Raises:
        SpecError: with the key's address.
    """

    def expect(value: object, kind: type, address: str) -> None:
        if not isinstance(value, kind):
            what = "list" if kind is list else "dictionary"
            raise SpecError(f"{path}: {address}: input should be a valid {what}, found {value!r:.60}")

    for field in ("configs", "conventions", "pages"):
        expect(table.get(field, {}), dict, field)
        for name, inner in table.get(field, {}).items():
            expect(inner, dict, f"{field}.{name}")
            for key in (*BY_KEY, "tensors"):
                expect(inner.get(key, {}), dict, f"{field}.{name}.{key}")
            ignored = inner.get("ignored", [])
            expect(ignored, list, f"{field}.{name}.ignored")
            for each in ignored:
                if not isinstance(each, str):
                    raise SpecError(
                        f"{path}: {field}.{name}.ignored: input should be a valid string, found {each!r:.60}"
                    )


def _without(table: Table, path: Path) -> list[str]:
    listed = table.get("without", [])
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        raise SpecError(f"{path}: without: expected a list of keys, found {listed!r:.60}")
    return listed


def _inheritable(table: Table) -> Table:
    """What an architecture that is built like this one gets."""
    kept = {key: value for key, value in table.items() if key not in _OWN}
    if pages := kept.get("pages"):
        kept["pages"] = {name: _less(page, {"cites"}) for name, page in pages.items()}
    if configs := kept.get("configs"):
        kept["configs"] = {name: _less(config, _OWN_IN_CONFIGS) for name, config in configs.items()}
    return kept


def _less(table: Any, keys: frozenset[str] | set[str]) -> Any:
    return {k: v for k, v in table.items() if k not in keys} if isinstance(table, Mapping) else table


def _remove(table: Table, address: str, path: Path) -> None:
    """Leave an inherited key out; the tables on the way are copied, because other architectures have them too."""
    keys = address.split(".")
    at = table
    for key in keys[:-1]:
        if not isinstance(at.get(key), Mapping):
            raise SpecError(f"{path}: without: nothing inherited is called {address!r:.80}")
        at[key] = dict(at[key])
        at = at[key]
    if keys[-1] not in at:
        raise SpecError(f"{path}: without: nothing inherited is called {address!r:.80}")
    del at[keys[-1]]


def _join(base: Any, own: Any) -> Any:
    """Two values: tables key by key; of anything else, the own one."""
    if not (isinstance(base, Mapping) and isinstance(own, Mapping)):
        return own
    return {**base, **{key: _join(base[key], value) if key in base else value for key, value in own.items()}}


def _forget_rules(base: Table, own: Table) -> None:
    """Leave out what inherited configuration tables state about keys to which the own table of that name gives a meaning."""
    configs = base.get("configs")
    if configs is None:
        return
    base["configs"] = dict(configs)
    for name, table in configs.items():
        stated = own.get("configs", {}).get(name, {})
        ignored = stated.get("ignored", [])
        keys = {key for kind in MEANINGS for key in stated.get(kind, {})} | set(ignored)
        base["configs"][name] = {
            kind: _less(value, keys)
            if kind in BY_KEY
            else [*(key for key in value if key not in keys), *ignored]
            if kind == "ignored"
            else value
            for kind, value in table.items()
        }


def _replace_rows(base: Table, own: Table, result: Table) -> None:
    """Leave out inherited rows whose weights own rows name, and list the other inherited rows."""
    for name, convention in base.get("conventions", {}).items():
        inherited = convention.get("tensors", {})
        into = result["conventions"][name]
        rows = own.get("conventions", {}).get(name, {}).get("tensors", {})
        taken = {weight for row in rows.values() for weight in _weights(row)}
        gone = {
            key for key, row in inherited.items() if key not in rows and taken.intersection(_weights(row))
        }
        result["conventions"] = {
            **result["conventions"],
            name: {
                **into,
                "tensors": {key: row for key, row in into.get("tensors", {}).items() if key not in gone},
                "inherited": [key for key in inherited if key not in rows and key not in gone],
            },
        }


def _weights(row: Any) -> set[str]:
    """The weights that a row names; empty if it is not a row, which validation reports."""
    holds = row.get("holds") if isinstance(row, Mapping) else row
    texts = holds if isinstance(holds, list) else [holds]
    try:
        return {weight for text in texts if isinstance(text, str) for weight in holding(text).weights}
    except SpecError:
        return set()
