"""The meaning of the keys of a configuration file: a table of an architecture with what it has from the one it is like."""

from __future__ import annotations

from typing import Any

from atlas import spec
from atlas.errors import SpecError

MEANINGS = ("used", "only", "computes", "agrees", "expects")
"""Fields that say what a key means. A key in one of them, or in `ignored`, has only the rules of the table that says so."""

BY_KEY = (*MEANINGS, "absent", "words", "present", "when")
"""All fields by key. Those that are no meaning refine one, which may be inherited."""

_BY_NAME = ("defaults", "patterns", "rope_kinds", "differs")
"""Fields by our own names."""

MOST_EXTENDED = 8
"""Longest chain of configuration tables that extend each other (`like`)."""


def config_table(architecture: spec.Architecture, name: str) -> spec.Config:
    """A table of keys, merged with the table that it extends (`like`).

    A key to which a table gives a meaning has nothing of what the extended table states about it.

    Raises:
        SpecError: a table extends one that does not exist, or itself.
    """
    table = _merged(architecture, name, ())
    classes = {
        word.replace("{class}", table.stem): head
        for word, head in table.classes.items()
        if table.stem or "{class}" not in word
    }
    return table.model_copy(update={"classes": classes, "model_type": table.model_type or name})


def _merged(architecture: spec.Architecture, name: str, inside: tuple[str, ...]) -> spec.Config:
    where = f"architecture {architecture.id}: configs.{inside[-1] if inside else name}"
    if name not in architecture.configs and not inside:
        raise SpecError(f"{where}: the architecture has no such table")
    if name not in architecture.configs:
        raise SpecError(f"{where}: like = {name!r}: the architecture has no such table")
    if name in inside:
        raise SpecError(f"{where}: {' extends '.join((*inside, name))}")
    if len(inside) > MOST_EXTENDED:
        raise SpecError(f"{where}: more than {MOST_EXTENDED} tables extend each other")
    own = architecture.configs[name]
    if own.like is None:
        return own
    base = _merged(architecture, own.like, (*inside, name))
    own_keys = {key for field in MEANINGS for key in getattr(own, field)} | {*own.ignored}

    def merged(field: str) -> dict[str, Any]:
        rest = {key: value for key, value in getattr(base, field).items() if key not in own_keys}
        own_rules: dict[str, Any] = getattr(own, field)
        return rest | own_rules

    return own.model_copy(
        update={field: merged(field) for field in BY_KEY}
        | {field: {**getattr(base, field), **getattr(own, field)} for field in _BY_NAME}
        | {
            "file": own.file or base.file,
            "whose": own.whose or base.whose,
            "stem": own.stem or base.stem,
            "model_type": own.model_type,
            "ignored": [key for key in base.ignored if key not in own_keys] + own.ignored,
            "optional": base.optional + own.optional,
            "generations": own.generations or base.generations,
            "classes": base.classes | own.classes,
        }
    )
