"""The result of `atlas params`: exact parameter counts, each with its calculation and its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from atlas.analyse import devices as parallel
from atlas.analyse import parameters
from atlas.analyse.labels import convention_of
from atlas.analyse.listing import (
    Component,
    Layer,
    Tensor,
    list_components,
    list_layers,
    list_tensors,
    size_of,
)
from atlas.analyse.row_order import order_note, orders
from atlas.analyse.undescribed import sentence, weights_gaps
from atlas.evidence.bibliography import Evidence, evidence
from atlas.graph import tensors
from atlas.graph.binding import bind
from atlas.graph.graph import Graph
from atlas.resolution.model import Scalar
from atlas.spec.library import Library
from atlas.tables import Tabular
from atlas.units import require_count, require_integer

__all__ = ["Component", "Conflict", "Counts", "Layer", "Tensor", "count"]


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
    listed = list_components(graph, library, layer, dtype)
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
        weight_bytes=size_of(dtype, by_convention[published][1]),
        dtype=model.dtype,
        tensor_count=by_convention[published][0],
        components=listed,
        layers=tuple(list_layers(graph, layer, dtype)) if by == "layer" else (),
        tensors=tuple(list_tensors(graph, layer, order, dtype)) if by == "tensor" else (),
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
