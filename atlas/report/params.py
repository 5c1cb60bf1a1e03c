"""The tables of `atlas params`: for the terminal, in Markdown and in CSV."""

from __future__ import annotations

from collections.abc import Sequence

from atlas.analyse.counts import Component, Counts
from atlas.report import console, plain
from atlas.report.plain import gibibytes


def show(counts: Counts, by: str) -> None:
    """Print the table, then the totals and the sources."""
    headers, right, rows = _rows(counts, by, sources=True)
    title = f"{counts.name} · {counts.model}" if counts.name != counts.model else counts.model
    console.line(title)
    console.line()
    console.out(console.table(headers, [*rows, _total(counts, headers)], right))
    console.line()
    for line in _below(counts):
        console.line(line)


def markdown(counts: Counts, by: str) -> str:
    headers, right, rows = _rows(counts, by, sources=True)
    return plain.markdown(headers, [*rows, _total(counts, headers)], right)


def comma_separated(counts: Counts, by: str) -> str:
    headers, right, rows = _rows(counts, by, sources=False)
    # Only whole columns of counts lose their separators; a calculation is for reading.
    numbers = [[cell.replace(",", "") if i in right else cell for i, cell in enumerate(row)] for row in rows]
    return plain.comma_separated(headers, numbers)


def _rows(counts: Counts, by: str, *, sources: bool) -> tuple[list[str], list[int], list[list[str]]]:
    if by == "layer":
        outside = [c for c in counts.components if c.instances == 1]
        inside = [["", f"{row.stack}.{row.layer}", f"{row.parameters:,}"] for row in counts.layers]
        alone = [["component", c.id, f"{c.parameters:,}"] for c in outside]
        rows = [row[1:] for row in (alone[:1] + inside + alone[1:] if inside else alone)]
        return ["layer", "parameters"], [1], rows
    if by == "tensor":
        names = list(counts.tensors[0].name) if counts.tensors else []
        rows = [
            [
                *(t.name[n] or "—" for n in names),
                " × ".join(f"{size:,}" for size in t.shape),
                f"{t.parameters:,}",
                t.component,
            ]
            for t in counts.tensors
        ]
        return [*(f"name ({n})" for n in names), "shape", "parameters", "component"], [len(names) + 1], rows
    rows = [
        [c.id, _calculation(c), str(c.instances), f"{c.parameters:,}", *([_source(c)] if sources else [])]
        for c in counts.components
    ]
    return ["component", "calculation", "×", "parameters", *(["source"] if sources else [])], [2, 3], rows


def _calculation(component: Component) -> str:
    return f"the matrix of {component.tied_to}" if component.tied_to else component.calculation


def _source(component: Component) -> str:
    return component.cites[0].where if component.cites else ""


def _total(counts: Counts, headers: Sequence[str]) -> list[str]:
    at = headers.index("parameters")
    return [
        "total" if i == 0 else f"{counts.total_parameters:,}" if i == at else "" for i in range(len(headers))
    ]


def _below(counts: Counts) -> list[str]:
    size = "quantised: size in bytes not described"
    if counts.weight_bytes is not None:
        size = f"{counts.weight_bytes:,} bytes in {counts.dtype} ({gibibytes(counts.weight_bytes)})"
    lines = [f"stored     {counts.tensor_count:,} tensors, {size}"]
    if counts.active_parameters != counts.total_parameters:
        lines.append(f"active     {counts.active_parameters:,} for one text token")
    if counts.logical_parameters != counts.total_parameters:
        lines.append(
            f"logical    {counts.logical_parameters:,}: the tied matrix counted in both of its places"
        )
    if counts.catalogue_parameters not in (None, counts.total_parameters):
        lines.append(f"catalogue  {counts.catalogue_parameters:,}: the model built from Meta's unchanged entry")
    if counts.devices and counts.parameters_per_device is not None:
        lines.append(f"device     {counts.parameters_per_device:,} on each of {counts.devices:,}")
    lines.append(f"dimensions {counts.rests_on}")
    files = {(e.repo, e.revision, e.path): "" for c in counts.components for e in c.cites[:1]}
    files |= {(e.repo, e.revision, e.path): e.where for e in counts.cites[:1]}
    for (repo, revision, path), where in files.items():
        lines.append(f"source     {repo} @ {revision[:12]} · {path}" + (f" ({where})" if where else ""))
    for conflict in counts.conflicts:
        said, used = _said(conflict.catalogue), _said(conflict.used)
        lines.append(
            f"conflict   {conflict.field}: the catalogue has {said}, the released model has {used}. {conflict.why}"
        )
    return lines + [f"note       {note}" for note in counts.notes]


def _said(value: object) -> str:
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)
