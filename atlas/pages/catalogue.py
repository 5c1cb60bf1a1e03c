"""The catalogue as a list: every model of every family, with its parameters if it is described."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
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
class CatalogueModel:
    """One model of the catalogue.

    Attributes:
        publisher: of the family.
        released: year and month in which the family was released.
        follows: the family that this model's family succeeds.
        kind: base, instruct, chat, guard, vision or quantised.
        hub_id: the Hub repository that publishes its weights.
        architecture: the description that it is bound to; None if the model is not described.
        parameters: distinct trained parameters; None if the model is not described.
        source: where its config.json was read; empty if Meta's catalogue states its dimensions.
        copy: whether that place is not the publisher's own repository.
        catalogue: Meta's catalogue entry with all values resolved; None if Meta's catalogue does not list the model.
    """

    id: str
    name: str
    family: str
    publisher: str
    released: str
    follows: str | None
    kind: str
    hub_id: str | None
    aliases: tuple[str, ...]
    context_length: int | None
    parameters: int | None
    described: bool
    architecture: str | None
    source: str
    copy: bool
    catalogue: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, repr=False)
class ModelList(Tabular):
    """The result of `atlas models`."""

    rows_fields: ClassVar[tuple[str, ...]] = ("models",)

    models: tuple[CatalogueModel, ...]


def list_models(
    library: Library, words: Sequence[str] = (), *, family: str | None = None, publisher: str | None = None
) -> ModelList:
    """The catalogue's models: families by release date, models in their family's order.

    Args:
        words: keep the models in which every word occurs: in an id, a name, an alias, a kind, an architecture or the
            publisher. Case is ignored.
        family: keep one family, by its id.
        publisher: keep one publisher's families. Case is ignored.

    Raises:
        UsageError: no family or no publisher has that name, or no model matches the words.
    """
    families = sorted(library.families(), key=lambda known: (known.released, known.id))
    if family is not None:
        names = [known.id for known in families]
        if family.lower() not in names:
            raise UsageError(f"no family is called {family[:80]!r}", hint=_near(family, names, "families"))
        families = [known for known in families if known.id == family.lower()]
    if publisher is not None:
        publishers = list(dict.fromkeys(known.publisher for known in families))
        families = [known for known in families if known.publisher.casefold() == publisher.casefold()]
        if not families:
            raise UsageError(
                f"no publisher is called {publisher[:80]!r}", hint=_near(publisher, publishers, "publishers")
            )
    matches = [
        _model(known, entry, library)
        for known in families
        for entry in known.models
        if _matches(known, entry, words)
    ]
    if words and not matches:
        raise UsageError(
            f"no model of the catalogue matches {' '.join(words)[:80]!r}",
            hint="`atlas models` lists them all; a model outside the catalogue is given by its Hub id or its config.json, "
            "if its architecture is described",
        )
    return ModelList(tuple(matches))


def _near(name: str, known: Sequence[str], what: str) -> str:
    """A hint: the known names that begin with this one or are spelled nearly like it, else all of them."""
    spelled = {each.casefold(): each for each in known}
    wanted = name[:200].casefold()
    near = [word for word in spelled if wanted and word.startswith(wanted)]
    near += difflib.get_close_matches(wanted, spelled, n=4)
    found = [spelled[word] for word in dict.fromkeys(near)]
    return f"did you mean {', '.join(found)}?" if found else f"{what} are {', '.join(known)}"


def _matches(family: spec.Family, entry: spec.Entry, words: Sequence[str]) -> bool:
    texts = [
        entry.id,
        entry.name,
        entry.kind,
        entry.catalogue,
        entry.hub_id or "",
        *entry.aliases,
        entry.architecture or "",
        family.id,
        family.publisher,
    ]
    text = "\n".join(texts).casefold()
    return all(word.casefold() in text for word in words)


def _model(family: spec.Family, entry: spec.Entry, library: Library) -> CatalogueModel:
    row = None if entry.config else catalogued.catalogue_row(library.catalogue(family.id), entry)
    model = catalogued.describe(family, entry, library) if entry.architecture else None
    return CatalogueModel(
        id=entry.id,
        name=entry.name,
        family=family.id,
        publisher=family.publisher,
        released=family.released,
        follows=family.follows,
        kind=entry.kind,
        hub_id=entry.hub_id,
        aliases=(*filter(None, [entry.catalogue]), *entry.aliases),
        context_length=(model.context_length if model else None) or (row.max_seq_length if row else None),
        parameters=parameters.total(bind(model, library)) if model else None,
        described=model is not None,
        architecture=entry.architecture,
        source=entry.source,
        copy=entry.copy_,
        catalogue=row.model_dump(exclude={"lines", "sha256", "uses"}) if row else None,
    )
