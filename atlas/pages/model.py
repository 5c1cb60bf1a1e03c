"""The page of a model: publisher, equation, parameters of every component, conflicts, and how it differs from its predecessor."""

from __future__ import annotations

from collections.abc import Iterator

from atlas import spec
from atlas.analyse import counts
from atlas.analyse.diff import diff
from atlas.evidence.bibliography import evidence
from atlas.graph.binding import bind
from atlas.graph.graph import Graph
from atlas.pages.composition import Composition, latex
from atlas.pages.content import Amount, Difference, Facts, Page
from atlas.pages.parts import Parts
from atlas.resolution import catalogued


def page(parts: Parts) -> Page:
    """The page of the model itself."""
    model = parts.model
    architecture = parts.graph.architecture
    composed = Composition(parts.graph)
    rows = counts.count(parts.graph, parts.library)
    last = parts.graph.blocks[-1].nodes[-1]
    conflicts = [
        f"{c.field}: the catalogue has {_said(c.catalogue)}, the released model has {_said(c.used)}. {c.why}"
        for c in model.conflicts
    ]
    disputed = [cite for conflict in model.conflicts for cite in conflict.cites]
    cites = [*architecture.cites, *model.cites, *disputed]
    return parts.page(
        node=None,
        kind="model",
        words=spec.Words(
            title=model.name,
            summary=architecture.summary,
            expression=composed.expression(),
            text=";  ".join(composed.model),
            latex=r",\quad ".join(map(latex, composed.model)),
        ),
        inputs=[parts.named(name) for name in parts.graph.inputs],
        outputs=[parts.result(last.steps[-1])],
        accounting=[
            Amount(
                c.id,
                _tied(c) or (f"{c.instances} × ({c.calculation})" if c.instances > 1 else c.calculation),
                c.parameters,
            )
            for c in rows.components
        ],
        per_instance=rows.total_parameters,
        parameters=rows.total_parameters,
        notes=[*rows.notes, *conflicts],
        sources=evidence(cites, parts.library, model.family),
        facts=_facts(parts),
    )


def _facts(parts: Parts) -> Facts:
    model = parts.model
    family = parts.library.family(model.family) if model.family else None
    before = _predecessor(parts, family)
    return Facts(
        publisher=family.publisher if family else "",
        released=family.released if family else "",
        family=family.name if family else "",
        follows=family.follows if family else None,
        kind=family.kind if family else parts.graph.architecture.title,
        hub_id=model.hub_id,
        context_length=model.context_length,
        dtype=model.dtype,
        differs_from=before.model.id if before else None,
        differences=tuple(_differences(before, parts.graph)) if before else (),
        nodes=tuple(parts.nodes),
    )


def _predecessor(parts: Parts, family: spec.Family | None) -> Graph | None:
    """The described model of the followed family that differs least: in dimensions first, then in settings, then in kind."""
    if family is None or family.follows is None:
        return None
    earlier = parts.library.family(family.follows)
    graphs = [
        (
            entry.kind != _kind(family, parts.model.id),
            bind(catalogued.describe(earlier, entry, parts.library), parts.library),
        )
        for entry in earlier.models
        if entry.architecture
    ]

    def distance(item: tuple[bool, Graph]) -> tuple[int, int, bool]:
        found = diff(item[1], parts.graph)
        return len(found.dims) + len(found.components), len(found.settings), item[0]

    return min(graphs, key=distance)[1] if graphs else None


def _kind(family: spec.Family, id: str) -> str:
    return next((entry.kind for entry in family.models if entry.id == id), "")


def _differences(before: Graph, now: Graph) -> Iterator[Difference]:
    found = diff(before, now)
    yield from (Difference(dim.name, dim.a, dim.b) for dim in found.dims)
    yield from (Difference(setting.name, setting.a, setting.b) for setting in found.settings)


def _tied(component: counts.Component) -> str:
    return f"the matrix of {component.tied_to}, counted there" if component.tied_to else ""


def _said(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:,}" if isinstance(value, int) else str(value)
