"""The tables of `atlas params`, and what is printed below them."""

from __future__ import annotations

from atlas.analyse.counts import Component, Counts
from atlas.report import console
from atlas.report.plain import gibibytes
from atlas.tables import Cell, Column, Table

MEANINGS = {
    "implementation": "a library's implementation of this model, not the publisher's own code",
    "contextual": "the code of another model that computes the same, not this model's own",
}
"""Relation of a source -> what it means, for a line below the table."""

_SIZE = (Column(None, "dtype"), Column(None, "bytes"))


def show(counts: Counts, content: Table) -> None:
    """Print the table, then the totals and the sources."""
    title = f"{counts.name} · {counts.model}" if counts.name != counts.model else counts.model
    console.line(title if counts.layer is None else f"{title} · layer {counts.layer:,}")
    console.line()
    console.print_table(content)
    console.line()
    for line in _below(counts):
        console.line(line)


def table(counts: Counts, by: str, *, one_convention: bool = False) -> Table:
    """The table of components, layers or tensors.

    Args:
        one_convention: show only the names of `counts.names`, not those of the other conventions.
    """
    if by == "layer":
        return _layers(counts)
    return _tensors(counts, one_convention) if by == "tensor" else _components(counts, one_convention)


def _components(counts: Counts, one_convention: bool) -> Table:
    known = {c.id: c.names[counts.names] for c in counts.components}
    ids = not one_convention and any(name != id for id, name in known.items())
    columns = (
        Column("component", "name"),
        Column("id" if ids else None, "component"),
        Column(None, "shape"),
        Column("calculation", None),
        Column("×", "instances", right=True),
        Column("parameters", right=True),
        *_SIZE,
        Column(None, "tied_to"),
        Column("source", None),
    )
    rows = tuple(
        (
            known[c.id],
            c.id,
            c.shape,
            _calculation(c, known),
            c.instances,
            c.parameters,
            _dtype(counts),
            c.bytes,
            c.tied_to,
            _source(c),
        )
        for c in counts.components
    )
    return _with_total(counts, columns, rows)


def _layers(counts: Counts) -> Table:
    dtype, name = _dtype(counts), counts.names
    inside = [(f"{row.stack}.{row.layer}", row.parameters, dtype, row.bytes) for row in counts.layers]
    outside = [c for c in counts.components if c.instances == 1] if counts.layer is None else []
    alone = [(c.names[name], c.parameters, dtype, c.bytes) for c in outside]
    rows = (*alone[:1], *inside, *alone[1:]) if inside else tuple(alone)
    return _with_total(counts, (Column("layer"), Column("parameters", right=True), *_SIZE), rows)


def _tensors(counts: Counts, one_convention: bool) -> Table:
    names = [counts.names, *(name for name in counts.by_convention if name != counts.names)]
    shown = names[:1] if one_convention else names
    marked = len(shown) > 1 and not all(t.same_order for t in counts.tensors)
    columns = (
        *(Column(f"name ({name})" if name in shown else None, f"name_{name}") for name in names),
        Column("rows" if marked else None, None),
        Column("shape"),
        Column("parameters", right=True),
        *_SIZE,
        Column("component"),
        Column(None, "tied_to"),
        Column(None, "same_order"),
    )
    rows = tuple(
        (
            *(t.name[name] for name in names),
            "" if t.same_order else "permuted",
            t.shape,
            t.parameters,
            _dtype(counts),
            t.bytes,
            t.component,
            t.tied_to,
            t.same_order,
        )
        for t in counts.tensors
    )
    return _with_total(counts, columns, rows)


def _with_total(counts: Counts, columns: tuple[Column, ...], rows: tuple[tuple[Cell, ...], ...]) -> Table:
    total = counts.total_parameters if counts.layer_parameters is None else counts.layer_parameters
    name = "total" if counts.layer is None else f"layer {counts.layer:,}"
    first = next(i for i, column in enumerate(columns) if column.title is not None)
    cells = [
        name if i == first else total if column.title == "parameters" else None
        for i, column in enumerate(columns)
    ]
    return Table(columns, rows, tuple(cells))


def _dtype(counts: Counts) -> str | None:
    return counts.dtype if counts.weight_bytes is not None else None


def _calculation(component: Component, known: dict[str, str]) -> str:
    other = component.tied_to
    return f"the matrix of {known.get(other, other)}" if other else component.calculation


def _source(component: Component) -> str:
    if not component.cites:
        return ""
    cite = component.cites[0]
    return cite.where if cite.relation == "direct" else f"{cite.where} ({cite.relation})"


def _below(counts: Counts) -> list[str]:
    size = "quantised: size in bytes not described"
    if counts.weight_bytes is not None:
        size = f"{counts.weight_bytes:,} bytes in {counts.dtype} ({gibibytes(counts.weight_bytes)})"
    lines = [f"model      {counts.total_parameters:,} parameters"] if counts.layer is not None else []
    lines.append(f"stored     {counts.tensor_count:,} tensors, {size}")
    if counts.buffer_tensors:
        lines.append(
            f"buffers    {counts.buffer_elements:,} numbers in {counts.buffer_tensors:,} of these tensors are not trained "
            "and no parameters"
        )
    if counts.active_parameters != counts.total_parameters:
        lines.append(f"active     {counts.active_parameters:,} for one text token")
    if counts.logical_parameters != counts.total_parameters:
        lines.append(
            f"logical    {counts.logical_parameters:,}: the tied matrix counted in both of its places"
        )
    if counts.catalogue_parameters not in (None, counts.total_parameters):
        lines.append(
            f"catalogue  {counts.catalogue_parameters:,}: the model built from Meta's unchanged entry"
        )
    if counts.devices and counts.parameters_per_device is not None:
        lines.append(f"device     {counts.parameters_per_device:,} on each of {counts.devices:,}")
    lines.append(f"dimensions from {counts.rests_on}")
    lines += _sources(counts)
    for conflict in counts.conflicts:
        listed, used = _value(conflict.catalogue), _value(conflict.used)
        lines.append(
            f"conflict   {conflict.field}: the catalogue has {listed}, the released model has {used}. "
            f"{conflict.why}"
        )
    return lines + [f"note       {note}" for note in counts.notes]


def _sources(counts: Counts) -> list[str]:
    """The files behind the table's sources, and what their relation means where it is not direct."""
    first = [c.cites[0] for c in counts.components if c.cites]
    files = {(e.repo, e.revision, e.path): ("", e.relation) for e in first}
    files |= {(e.repo, e.revision, e.path): (e.where, e.relation) for e in counts.cites[:1]}
    lines = []
    for (repo, revision, path), (where, relation) in files.items():
        line = f"source     {repo} @ {revision[:12]} · {path}" + (f" ({where})" if where else "")
        lines.append(line if relation == "direct" else f"{line}, {relation}")
    seen = {e.relation for e in (*first, *counts.cites[:1])}
    return lines + [f"{name:<10} {meaning}" for name, meaning in MEANINGS.items() if name in seen]


def _value(value: object) -> str:
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)
