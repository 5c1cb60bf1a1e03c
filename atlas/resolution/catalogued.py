"""Builds the Model of a catalogue entry: the released checkpoint, plus `as_catalogued`, the unmodified entry.

The tables that read a `params.json` also read the entry's arguments. Where the released checkpoint differs, a conflict
replaces the argument first, so that values derived from it (the feed-forward width) change too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from atlas import spec
from atlas.errors import NotDescribed, SpecError
from atlas.grammar.conditions import holds
from atlas.resolution import config
from atlas.resolution.model import Conflict, Model, Scalar
from atlas.spec.library import Library

_TIED = "tie_word_embeddings"
_ROPE_FACTOR = "rope_scaling.factor"
_FACTS = {"max_seq_length", "huggingface_repo", "quantization_format"}
"""Fields of an entry that are not arguments of the reference code."""


def describe(family: spec.Family, entry: spec.Entry, library: Library) -> Model:
    """The model of a catalogue entry as released; `as_catalogued` is the unmodified entry.

    Raises:
        NotDescribed: the entry has no architecture yet.
        SpecError: the family's file contradicts the catalogue.
    """
    if entry.architecture is None:
        raise NotDescribed(
            f"{entry.id} ({entry.name}) is catalogued but not described yet: {entry.undescribed}",
            hint=_instead(family, entry),
        )
    if entry.config:
        return _from_own_config(family, entry, library)
    catalogue = library.catalogue(family.id)
    row = catalogue_row(catalogue, entry)
    where = f"catalogue entry {row.descriptor}"
    as_catalogued = _from_arguments(row.arch_args, library, where)
    _same_architecture(as_catalogued, entry)
    arguments = dict(row.arch_args)
    for conflict in entry.conflicts:
        if conflict.field in {_TIED, _ROPE_FACTOR} | _FACTS:
            continue
        if conflict.field not in arguments:
            raise SpecError(
                f"model {entry.id}: conflict {conflict.field}: the catalogue entry has no such argument"
            )
        if conflict.absent:
            del arguments[conflict.field]
        else:
            arguments[conflict.field] = conflict.used
    released = _from_arguments(arguments, library, where)
    by_field = {conflict.field: conflict for conflict in entry.conflicts}
    flags = dict(released.flags)
    scaled = dict(released.rope)
    if _TIED in by_field:
        tied = by_field[_TIED].used
        flags["tied"] = tied is True
    if _ROPE_FACTOR in by_field:
        scaled["factor"] = _number(by_field[_ROPE_FACTOR])
    length = by_field["max_seq_length"].used if "max_seq_length" in by_field else row.max_seq_length
    return replace(
        released,
        id=entry.id,
        name=entry.name,
        flags=flags,
        rope=scaled,
        dtype=entry.dtype,
        dtype_stated=True,
        context_length=int(length or 0),
        family=family.id,
        kind=entry.kind,
        hub_id=entry.hub_id,
        rests_on=f"Meta's catalogue entry {row.descriptor}"
        + (", corrected where the released checkpoint differs" if entry.conflicts else ""),
        notes=tuple(note.text for note in entry.notes if holds(note.when, flags)),
        conflicts=tuple(
            Conflict(
                field=conflict.field,
                catalogue=_catalogued(conflict.field, row, as_catalogued),
                used=None if conflict.absent else conflict.used,
                why=conflict.why,
                cites=tuple(conflict.cites),
            )
            for conflict in entry.conflicts
        ),
        cites=(entry_cite(row), *(name_cite(name) for name in row.uses), *entry.cites),
        as_catalogued=as_catalogued,
    )


def _from_own_config(family: spec.Family, entry: spec.Entry, library: Library) -> Model:
    """The model of an entry with its own configuration, for a model that is not in Meta's catalogue."""
    model = config.describe({**dict.fromkeys(entry.null), **entry.config}, library, id=entry.id)
    _same_architecture(model, entry)
    return replace(
        model,
        name=entry.name,
        family=family.id,
        kind=entry.kind,
        hub_id=entry.hub_id,
        rests_on=_read_at(family, entry),
        notes=(*model.notes, *(note.text for note in entry.notes if holds(note.when, model.flags))),
        cites=tuple(entry.cites),
    )


def _read_at(family: spec.Family, entry: spec.Entry) -> str:
    """Where the configuration of an entry was read, as the end of "dimensions from …"."""
    if not entry.source:
        return f"models/{family.id}.toml"
    copied = ", which is a copy and not the publisher's own file" if entry.copy_ else ""
    note = f" ({entry.source_note})" if entry.source_note else ""
    return f"the config.json read at {entry.source}{copied}{note}"


def _same_architecture(model: Model, entry: spec.Entry) -> None:
    if model.architecture != entry.architecture:
        raise SpecError(
            f"model {entry.id}: architecture = {entry.architecture!r}, but its settings describe {model.architecture}"
        )


def catalogue_row(catalogue: spec.Catalogue, entry: spec.Entry) -> spec.CatalogueEntry:
    """The row of Meta's catalogue for an entry."""
    for row in catalogue.entries:
        if row.descriptor == entry.catalogue:
            return row
    raise SpecError(f"model {entry.id}: the catalogue has no entry {entry.catalogue!r}")


def entry_cite(row: spec.CatalogueEntry) -> str:
    """The id of the cite for a catalogue row's values; `atlas.evidence.check` finds its lines."""
    return f"catalogue/{row.descriptor}"


def name_cite(name: str) -> str:
    """The id of the cite for a constant or a shared function that rows take values from."""
    return f"catalogue/{name}"


def _from_arguments(arguments: dict[str, Any], library: Library, where: str) -> Model:
    return config.describe(arguments, library, id=where, file="params.json")


def _catalogued(field: str, row: spec.CatalogueEntry, model: Model) -> Scalar | None:
    """The catalogue's value of a field; None if it has none."""
    if field == _ROPE_FACTOR:
        return model.rope.get("factor")
    if field in _FACTS:
        value: Scalar | None = getattr(row, field)
        return value
    return row.arch_args.get(field)


def _number(conflict: spec.Conflict) -> float:
    if not isinstance(conflict.used, int | float):
        raise SpecError(f"conflict {conflict.field}: used = {conflict.used!r}, expected a number")
    return float(conflict.used)


def _instead(family: spec.Family, entry: spec.Entry) -> str:
    core = entry.id.partition(":")[0]
    others = [
        other.id for other in family.models if other.architecture and other.id.partition(":")[0] == core
    ]
    return (
        f"described variants: {', '.join(others)}" if others else "`atlas models` lists the described models"
    )
