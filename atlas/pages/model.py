"""The page of a model: who published it, its equation, every component's parameters, and where the catalogue is not followed."""

from __future__ import annotations

from atlas import spec
from atlas.analyse import counts
from atlas.evidence.bibliography import evidence
from atlas.pages.content import Amount, Facts, Page
from atlas.pages.parts import Parts


def page(parts: Parts) -> Page:
    """The page of the model itself."""
    model = parts.model
    architecture = parts.graph.architecture
    rows = counts.count(parts.graph, parts.library)
    last = parts.graph.blocks[-1].nodes[-1]
    conflicts = [
        f"The catalogue says {_said(c.catalogue)} of {c.field}; used is {_said(c.used)}. {c.why}"
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
            expression=architecture.expression,
            text=architecture.text,
            latex=architecture.latex,
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
    return Facts(
        publisher=family.publisher if family else "",
        released=family.released if family else "",
        family=family.name if family else "",
        follows=family.follows if family else None,
        kind=family.kind if family else parts.graph.architecture.title,
        hub_id=model.hub_id,
        context_length=model.context_length,
        dtype=model.dtype,
    )


def _tied(component: counts.Component) -> str:
    return f"the matrix of {component.tied_to}, counted there" if component.tied_to else ""


def _said(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:,}" if isinstance(value, int) else str(value)
