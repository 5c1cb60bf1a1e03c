"""The table of `atlas models`: one section per family; in CSV, one row per model."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from atlas.pages.catalogue import CatalogueModel, ModelList
from atlas.report import console
from atlas.tables import Cell, Column, Table

FIELDS = (
    "id",
    "name",
    "family",
    "publisher",
    "released",
    "follows",
    "kind",
    "parameters",
    "context_length",
    "hub_id",
    "described",
    "architecture",
    "source",
    "copy",
)
"""The columns in CSV."""


def show(found: ModelList) -> None:
    """Print the models; each family has a heading: publisher, date, and the family it follows."""
    rows: list[tuple[Cell, ...]] = []
    for _, models in groupby(found.models, key=lambda model: model.family):
        family = list(models)
        rows += [(_heading(family[0]), None, None, None, None), *map(_row, family)]
    console.print_table(_table(rows))
    undescribed = sum(not model.described for model in found.models)
    if undescribed:
        console.note(f"{undescribed} models have no parameter count: they are not described yet")


def markdown(found: ModelList) -> None:
    """Print the models as Markdown."""
    console.print_table(_table(map(_row, found.models)), markdown=True)


def comma_separated(found: ModelList) -> None:
    """Print the models as CSV, with plain integers."""
    rows = tuple(tuple(getattr(model, field) for field in FIELDS) for model in found.models)
    console.print_table(Table(tuple(Column(None, field) for field in FIELDS), rows), csv=True)


def _table(rows: Iterable[tuple[Cell, ...]]) -> Table:
    columns = (
        Column("id"),
        Column("kind"),
        Column("parameters", right=True),
        Column("context", right=True),
        Column("on the Hub as"),
    )
    return Table(columns, tuple(rows))


def _heading(model: CatalogueModel) -> str:
    follows = f", follows {model.follows}" if model.follows else ""
    return f"{model.family} · {model.publisher} {model.released}{follows}"


def _row(model: CatalogueModel) -> tuple[Cell, ...]:
    return (f"  {model.id}", model.kind, model.parameters, model.context_length, model.hub_id)
