"""The catalogue as a list: every entry of every family, counted where it is described."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from atlas import spec
from atlas.analyse import parameters
from atlas.errors import UsageError
from atlas.graph.binding import bind
from atlas.resolution import catalogued
from atlas.spec.library import Library
from atlas.tables import Tabular


@dataclass(frozen=True, slots=True)
class Listed:
    """One model of the catalogue.

    Attributes:
        follows: the family before its own.
        kind: base, instruct, chat, guard, vision or quantised.
        hub_id: where its weights are published.
        parameters: distinct trained parameters; None where it is not described.
        catalogue: Meta's entry as it stands, every value resolved; None for a model that is in no catalogue.
    """

    id: str
    name: str
    family: str
    follows: str | None
    kind: str
    hub_id: str | None
    aliases: tuple[str, ...]
    context_length: int | None
    parameters: int | None
    described: bool
    catalogue: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, repr=False)
class Listing(Tabular):
    """What `atlas models` says."""

    rows_fields: ClassVar[tuple[str, ...]] = ("models",)

    models: tuple[Listed, ...]


def listing(library: Library, family: str | None = None) -> Listing:
    """Every entry, families by their release, entries as the catalogue lists them.

    Raises:
        UsageError: no family is called that.
    """
    families = sorted(library.families(), key=lambda known: (known.released, known.id))
    if family is not None:
        names = [known.id for known in families]
        if family.lower() not in names:
            raise UsageError(f"no family is called {family!r}", hint=f"there are {', '.join(names)}")
        families = [known for known in families if known.id == family.lower()]
    return Listing(tuple(one for known in families for one in _family(known, library)))


def _family(family: spec.Family, library: Library) -> list[Listed]:
    found = []
    for entry in family.models:
        row = None if entry.config else catalogued.catalogue_row(library.catalogue(family.id), entry)
        model = catalogued.describe(family, entry, library) if entry.architecture else None
        found.append(
            Listed(
                id=entry.id,
                name=entry.name,
                family=family.id,
                follows=family.follows,
                kind=entry.kind,
                hub_id=entry.hub_id,
                aliases=(*filter(None, [entry.catalogue]), *entry.aliases),
                context_length=(model.context_length if model else None)
                or (row.max_seq_length if row else None),
                parameters=parameters.total(bind(model, library)) if model else None,
                described=model is not None,
                catalogue=row.model_dump(exclude={"lines", "sha256", "uses"}) if row else None,
            )
        )
    return found
