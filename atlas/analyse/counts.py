"""The result of `atlas params`: exact parameter counts, each with its calculation and its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from atlas import dtypes, spec
from atlas.analyse import devices as parallel
from atlas.analyse import parameters
from atlas.analyse.labels import convention_of, labels
from atlas.analyse.row_order import Order, order_note, orders
from atlas.analyse.undescribed import sentence, weights_gaps
from atlas.errors import UsageError, shown
from atlas.evidence.bibliography import Evidence, evidence
from atlas.grammar import shapes
from atlas.graph import tensors
from atlas.graph.binding import bind
from atlas.graph.graph import Graph, Weight
from atlas.resolution.model import Scalar
from atlas.spec.library import Library
from atlas.tables import Tabular
from atlas.units import require_count, require_integer


@dataclass(frozen=True, slots=True)
class Component:
    """One component, over all the layers that contain it, or in one layer.

    Attributes:
        names: what each convention calls it: `self_attn.q_proj`.
        shape: of one instance.
        calculation: the parameters of one instance, written out: `128,256 × 4,096 = 525,336,576`.
        parameters: of all instances; 0 for a tied matrix, which is counted at the component that stores it, and for a buffer.
        tied_to: the component whose matrix this one shares.
        trained: False for a buffer, which is stored and has no parameters.
        bytes: of its stored elements in the model's dtype; None for weights stored quantised.
        cites: its sources, the most direct first; `contextual` is the code of another model that does the same.
    """

    id: str
    name: str
    names: Mapping[str, str]
    shape: tuple[int, ...]
    calculation: str
    instances: int
    parameters_per_instance: int
    parameters: int
    bytes: int | None
    tied_to: str | None
    trained: bool
    cites: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer; `bytes` are those of its stored elements, buffers included."""

    stack: str
    layer: int
    parameters: int
    bytes: int | None


@dataclass(frozen=True, slots=True)
class Tensor:
    """A weight in one layer, and the name of the tensor that stores it in each convention (None where it is not stored).

    Attributes:
        layouts: how each convention arranges its axes: `(n_heads two pair) dim`.
        same_order: whether all conventions store its elements in the same order.
    """

    name: Mapping[str, str | None]
    layer: int | None
    shape: tuple[int, ...]
    layouts: Mapping[str, str]
    same_order: bool
    parameters: int
    bytes: int | None
    component: str
    tied_to: str | None
    trained: bool


# `resolution.model.Conflict` with its cites resolved: a model has the ids of its cites, the result has files and lines.
@dataclass(frozen=True, slots=True)
class Conflict:
    """A field on which the catalogue entry and the released checkpoint disagree, the value used, and why."""

    field: str
    catalogue: Scalar | None
    used: Scalar | None
    why: str
    cites: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Counts(Tabular):
    """The result of `atlas params`.

    Attributes:
        total_parameters: distinct trained parameters of the released checkpoint; a tied matrix once.
        active_parameters: the parameters that one text token passes through.
        logical_parameters: the total with a tied matrix counted in both of its places.
        catalogue_parameters: the count of the model that the reference code builds from the unchanged catalogue entry.
        by_convention: the elements that a checkpoint stores in each convention.
        stored_elements: the elements stored in the convention in which the checkpoint is published.
        buffer_tensors: the stored tensors that are not trained, such as a router's correction bias.
        buffer_elements: their elements, a part of `stored_elements` and not of `total_parameters`.
        weight_bytes: their bytes in `dtype`; None for weights stored quantised.
        devices: the number of devices over which the weights are split, if one was given.
        kv_head_copies: on how many of them each key and value head is; `parameters_per_device` counts it on each.
        layer: the layer asked for; then `components`, `layers` and `tensors` are those of this layer alone.
        layer_parameters: of that layer.
        names: the convention whose names the tables show first.
    """

    rows_fields: ClassVar[tuple[str, ...]] = ("tensors", "layers", "components")

    model: str
    name: str
    total_parameters: int
    active_parameters: int
    logical_parameters: int
    catalogue_parameters: int | None
    by_convention: Mapping[str, int]
    stored_elements: int
    buffer_tensors: int
    buffer_elements: int
    weight_bytes: int | None
    dtype: str
    tensor_count: int
    components: tuple[Component, ...]
    layers: tuple[Layer, ...]
    tensors: tuple[Tensor, ...]
    devices: int | None
    parameters_per_device: int | None
    kv_head_copies: int | None
    layer: int | None
    layer_parameters: int | None
    names: str
    rests_on: str
    cites: tuple[Evidence, ...]
    """The sources of the dimensions."""
    notes: tuple[str, ...]
    conflicts: tuple[Conflict, ...]


def count(
    graph: Graph,
    library: Library,
    *,
    by: str = "component",
    devices: int | None = None,
    layer: int | None = None,
    names: str | None = None,
) -> Counts:
    """Count every parameter of a model.

    Args:
        by: `component`, `layer` or `tensor`: what is listed in addition to the components.
        devices: the number of devices over which the weights are split.
        layer: list only what is in this layer; totals remain those of the model.
        names: the convention whose names tables show.

    Raises:
        UsageError: no such layer or convention, or a matrix that does not divide evenly over the devices.
    """
    if devices is not None:
        require_count(devices, "--devices")
    if layer is not None:
        require_integer(layer, "--layer")
    model = graph.model
    published = tensors.published(graph)
    by_convention = {name: parameters.stored(graph, name) for name in graph.architecture.conventions}
    notes = list(model.notes) + [f"{sentence(gap)}." for gap in model.gaps]
    if not model.dtype_stated:
        notes.append(f"The configuration states no dtype; bytes are for {model.dtype}, an assumption.")
    if devices is not None:
        notes += parallel.copies_note(graph, devices)
    order = orders(graph)
    if by == "tensor":
        notes += order_note(order)
    dtype = None if weights_gaps(model) else model.dtype
    listed = _components(graph, library, layer, dtype)
    catalogued = model.as_catalogued
    buffers = parameters.buffers(graph, published)
    return Counts(
        model=model.id,
        name=model.name,
        total_parameters=parameters.total(graph),
        active_parameters=parameters.active(graph),
        logical_parameters=parameters.logical(graph),
        catalogue_parameters=None if catalogued is None else parameters.logical(bind(catalogued, library)),
        by_convention={name: elements for name, (_, elements) in by_convention.items()},
        stored_elements=by_convention[published][1],
        buffer_tensors=buffers[0],
        buffer_elements=buffers[1],
        weight_bytes=_size(dtype, by_convention[published][1]),
        dtype=model.dtype,
        tensor_count=by_convention[published][0],
        components=listed,
        layers=tuple(_layers(graph, layer, dtype)) if by == "layer" else (),
        tensors=tuple(_tensors(graph, layer, order, dtype)) if by == "tensor" else (),
        devices=devices,
        parameters_per_device=None if devices is None else parallel.per_device(graph, devices),
        kv_head_copies=None if devices is None else parallel.kv_head_copies(graph, devices),
        layer=layer,
        layer_parameters=None if layer is None else sum(row.parameters for row in listed),
        names=convention_of(graph, names),
        rests_on=model.rests_on,
        cites=tuple(evidence(model.cites, library, model.family)),
        notes=tuple(notes),
        conflicts=tuple(
            Conflict(c.field, c.catalogue, c.used, c.why, tuple(evidence(c.cites, library, model.family)))
            for c in model.conflicts
        ),
    )


def _size(dtype: str | None, elements: int) -> int | None:
    return None if dtype is None else dtypes.size_bytes(dtype, elements)


def _components(
    graph: Graph, library: Library, layer: int | None, dtype: str | None
) -> tuple[Component, ...]:
    """Every component, or those of one layer (of each stack that has it).

    Raises:
        UsageError: no layer has that number.
    """
    names = {convention: labels(graph, convention) for convention in graph.architecture.conventions}
    if layer is None:
        return tuple(
            _component(graph, weight, library, graph.instances(weight), names, dtype)
            for weight in graph.weights.values()
        )
    found = [
        _component(graph, weight, library, 1, names, dtype)
        for i, block in graph.blocks_in_order()
        if i == layer
        for node in block.nodes
        for weight in node.weights
    ]
    if not found:
        last = max((i for i, _ in graph.blocks_in_order() if i is not None), default=None)
        expected = "the model has no layers" if last is None else f"expected 0 to {last:,}"
        raise UsageError(f"--layer is {shown(layer)}, {expected}")
    return tuple(found)


def _component(
    graph: Graph,
    weight: Weight,
    library: Library,
    instances: int,
    names: Mapping[str, Mapping[str, str]],
    dtype: str | None,
) -> Component:
    node = next(node for block in graph.blocks for node in block.nodes if node.id == weight.node)
    own = graph.architecture.pages.get(weight.component, spec.Words())
    cites = own.cites or weight.words.cites or node.component.cites
    other = graph.tied_to(weight)
    trained = weight.words.trained
    size = graph.size(weight)
    stored = 0 if other else size * instances
    return Component(
        id=weight.component,
        name=own.title or weight.words.title or node.component.title,
        names={
            convention: known.get(weight.component, weight.component) for convention, known in names.items()
        },
        shape=tuple(shapes.size(group, graph.dims) for group in weight.shape),
        calculation=parameters.calculation(graph, weight),
        instances=instances,
        parameters_per_instance=size if trained else 0,
        parameters=stored if trained else 0,
        bytes=_size(dtype, stored),
        tied_to=other.component if other else None,
        trained=trained,
        cites=tuple(evidence(cites, library, graph.model.family)),
    )


def _layers(graph: Graph, only: int | None, dtype: str | None) -> list[Layer]:
    each: dict[str, tuple[int, int]] = {}
    for block in graph.blocks:
        weights = [weight for node in block.nodes for weight in node.weights if not graph.tied_to(weight)]
        trained = sum(graph.size(weight) for weight in weights if weight.words.trained)
        each[block.id] = trained, sum(map(graph.size, weights))
    found: dict[tuple[str, int], tuple[int, int]] = {}
    for i, block in graph.blocks_in_order():
        if block.stack is not None and i is not None and only in (None, i):
            before, more = found.get((block.stack, i), (0, 0)), each[block.id]
            found[block.stack, i] = before[0] + more[0], before[1] + more[1]
    return [Layer(stack, i, own, _size(dtype, stored)) for (stack, i), (own, stored) in found.items()]


def _tensors(graph: Graph, only: int | None, order: Mapping[str, Order], dtype: str | None) -> list[Tensor]:
    """Every weight of every layer in execution order, with its name in each convention."""
    names: dict[str, dict[tuple[str, int | None], str]] = {}
    for convention in graph.architecture.conventions:
        table: dict[tuple[str, int | None], str] = {}
        for row in tensors.rows(graph, convention):
            if row.tied_to is not None and not graph.architecture.conventions[convention].stores_tied:
                continue
            word, layers = row.layers or ("", (None,))
            for layer in layers:
                # One line stands for the tensors of all experts: `{expert}` is left in the name.
                name = row.template.text.replace(f"{{{word}}}", str(layer))
                table |= {(weight.id, layer): name for weight in row.weights}
        names[convention] = table
    found = []
    for i, block in graph.blocks_in_order():
        if only not in (None, i):
            continue
        for node in block.nodes:
            for weight in node.weights:
                other = graph.tied_to(weight)
                trained = weight.words.trained
                stored = 0 if other else graph.size(weight)
                found.append(
                    Tensor(
                        name={convention: table.get((weight.id, i)) for convention, table in names.items()},
                        layer=i,
                        shape=tuple(shapes.size(group, graph.dims) for group in weight.shape),
                        layouts=order[weight.id].layouts,
                        same_order=order[weight.id].same,
                        parameters=stored if trained else 0,
                        bytes=_size(dtype, stored),
                        component=weight.component,
                        tied_to=other.id if other else None,
                        trained=trained,
                    )
                )
    return found
