"""What `atlas params` says: exact parameter counts, each with the calculation that gives it and where it stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from atlas import dtypes, spec
from atlas.analyse import parameters
from atlas.evidence.bibliography import Evidence, evidence
from atlas.grammar import shapes
from atlas.graph import tensors
from atlas.graph.binding import bind
from atlas.graph.graph import Graph, Weight
from atlas.resolution.model import Scalar
from atlas.spec.library import Library


@dataclass(frozen=True, slots=True)
class Component:
    """One component, over all layers it stands in.

    Attributes:
        calculation: what gives the parameters of one instance: `128,256 × 4,096 = 525,336,576`.
        parameters: those of all instances; 0 for a tied matrix, which is counted where it is stored.
        tied_to: the component whose matrix it is.
    """

    id: str
    name: str
    calculation: str
    instances: int
    parameters_per_instance: int
    parameters: int
    tied_to: str | None
    cites: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class Layer:
    stack: str
    layer: int
    parameters: int


@dataclass(frozen=True, slots=True)
class Tensor:
    """A weight in one layer, with the name of the tensor that holds it in each convention; None where none does."""

    name: Mapping[str, str | None]
    shape: tuple[int, ...]
    parameters: int
    component: str
    tied_to: str | None


# A model's conflict with its cites resolved: a model holds their ids, what is printed holds the places.
@dataclass(frozen=True, slots=True)
class Conflict:
    """Where the catalogue's entry and the released checkpoint disagree, which value is used, and why."""

    field: str
    catalogue: Scalar | None
    used: Scalar | None
    why: str
    cites: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class Counts:
    """What `atlas params` says.

    Attributes:
        total_parameters: distinct trained parameters of the released checkpoint; a tied matrix once.
        active_parameters: those one text token passes through.
        logical_parameters: the same as the total with a tied matrix counted in both of its places.
        catalogue_parameters: what the catalogue entry gives when the reference code is built from it as it stands.
        by_convention: the numbers a checkpoint stores in each convention.
        stored_elements: those in the convention the checkpoint is published in.
        weight_bytes: the bytes those take in `dtype`; None for weights stored quantised.
        devices: with N devices, the parameters on each: matrices split evenly, vectors on every one.
    """

    model: str
    name: str
    total_parameters: int
    active_parameters: int
    logical_parameters: int
    catalogue_parameters: int | None
    by_convention: Mapping[str, int]
    stored_elements: int
    weight_bytes: int | None
    dtype: str
    tensor_count: int
    components: tuple[Component, ...]
    layers: tuple[Layer, ...]
    tensors: tuple[Tensor, ...]
    devices: int | None
    parameters_per_device: int | None
    rests_on: str
    cites: tuple[Evidence, ...]
    """What bears the dimensions out."""
    notes: tuple[str, ...]
    conflicts: tuple[Conflict, ...]


def count(graph: Graph, library: Library, *, by: str = "component", devices: int | None = None) -> Counts:
    """Count every parameter of a model.

    Args:
        by: `component`, `layer` or `tensor`: what is listed beside the components.
        devices: over how many devices the weights are spread.
    """
    model = graph.model
    published = tensors.published(graph)
    by_convention = {name: parameters.stored(graph, name) for name in graph.architecture.conventions}
    notes = list(model.notes) + [f"{gap.reason[0].upper()}{gap.reason[1:]}." for gap in model.gaps]
    if not model.dtype_stated:
        notes.append(f"The configuration states no dtype; bytes are for {model.dtype}, an assumption.")
    catalogued = model.as_catalogued
    return Counts(
        model=model.id,
        name=model.name,
        total_parameters=parameters.total(graph),
        active_parameters=parameters.active(graph),
        logical_parameters=parameters.logical(graph),
        catalogue_parameters=None if catalogued is None else parameters.logical(bind(catalogued, library)),
        by_convention={name: elements for name, (_, elements) in by_convention.items()},
        stored_elements=by_convention[published][1],
        weight_bytes=None
        if any("weights" in gap.affects for gap in model.gaps)
        else dtypes.size_bytes(model.dtype, by_convention[published][1]),
        dtype=model.dtype,
        tensor_count=by_convention[published][0],
        components=tuple(_component(graph, weight, library) for weight in graph.weights.values()),
        layers=tuple(_layers(graph)) if by == "layer" else (),
        tensors=tuple(_tensors(graph)) if by == "tensor" else (),
        devices=devices,
        parameters_per_device=None if devices is None else parameters.per_device(graph, devices),
        rests_on=model.rests_on,
        cites=tuple(evidence(model.cites, library, model.family)),
        notes=tuple(notes),
        conflicts=tuple(
            Conflict(c.field, c.catalogue, c.used, c.why, tuple(evidence(c.cites, library, model.family)))
            for c in model.conflicts
        ),
    )


def _component(graph: Graph, weight: Weight, library: Library) -> Component:
    node = next(node for block in graph.blocks for node in block.nodes if node.id == weight.node)
    own = graph.architecture.pages.get(weight.component, spec.Words())
    cites = own.cites or weight.words.cites or node.component.cites
    other = graph.tied_to(weight)
    size = graph.size(weight)
    instances = graph.instances(weight)
    return Component(
        id=weight.component,
        name=own.title or weight.words.title or node.component.title,
        calculation=parameters.calculation(graph, weight),
        instances=instances,
        parameters_per_instance=size,
        parameters=0 if other else size * instances,
        tied_to=other.component if other else None,
        cites=tuple(evidence(cites, library, graph.model.family)),
    )


def _layers(graph: Graph) -> list[Layer]:
    each = {
        block.id: sum(graph.size(weight) for node in block.nodes for weight in node.weights)
        for block in graph.blocks
        if block.stack
    }
    found: dict[tuple[str, int], int] = {}
    for i, block in graph.blocks_in_order():
        if block.stack is not None and i is not None:
            found[block.stack, i] = found.get((block.stack, i), 0) + each[block.id]
    return [Layer(stack, i, parameters) for (stack, i), parameters in found.items()]


def _tensors(graph: Graph) -> list[Tensor]:
    """Every weight in every layer, in execution order, named as each convention names it."""
    names: dict[str, dict[tuple[str, int | None], str]] = {}
    for convention in graph.architecture.conventions:
        table: dict[tuple[str, int | None], str] = {}
        for row in tensors.rows(graph, convention):
            if row.tied_to is not None and not graph.architecture.conventions[convention].stores_tied:
                continue
            word, layers = row.layers or ("", (None,))
            for layer in layers:
                # A tensor for each expert is one line here, its placeholder left standing.
                name = row.template.text.replace(f"{{{word}}}", str(layer))
                table |= {(weight.id, layer): name for weight in row.weights}
        names[convention] = table
    found = []
    for i, block in graph.blocks_in_order():
        for node in block.nodes:
            for weight in node.weights:
                other = graph.tied_to(weight)
                found.append(
                    Tensor(
                        name={convention: table.get((weight.id, i)) for convention, table in names.items()},
                        shape=tuple(shapes.size(group, graph.dims) for group in weight.shape),
                        parameters=0 if other else graph.size(weight),
                        component=weight.component,
                        tied_to=other.id if other else None,
                    )
                )
    return found
