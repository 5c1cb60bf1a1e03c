"""The facts of a model on one screen, and of several models side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from atlas import dtypes
from atlas.analyse import counts, settings
from atlas.analyse.counts import Conflict
from atlas.errors import shown
from atlas.grammar import shapes
from atlas.graph.graph import Graph
from atlas.spec.library import Library

CACHE_DTYPES = ("BF16", "F16", "F32")
"""The stored dtypes that a KV cache has as well; with any other one it is BF16."""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The facts of one model.

    Attributes:
        dims: sizes by axis name; those that the architecture derives (`head_dim`) included.
        rope: `rope_theta`, `rope_type` and the parameters of the scaling.
        quantisation: the quantisation method, or the configuration's key that states one; None if weights are not quantised.
        tied: whether the output matrix is the token embedding's.
        weight_bytes: bytes of the published weights; None if they are quantised in a way that is not described.
        kv_bytes_per_token: bytes of the KV cache per position of a sequence, all layers together.
        rests_on: where the dimensions come from.
        not_described: settings of the configuration that the description does not cover, each with its value.
    """

    id: str
    name: str
    family: str
    architecture: str
    hub_id: str | None
    dims: Mapping[str, int]
    context_length: int | None
    rope: Mapping[str, Any]
    norm_eps: float | None
    dtype: str
    quantisation: str | None
    tied: bool
    total_parameters: int
    active_parameters: int
    weight_bytes: int | None
    kv_bytes_per_token: int
    conflicts: tuple[Conflict, ...]
    rests_on: str
    not_described: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FactSheet:
    """The result of `atlas show`."""

    models: tuple[ModelFacts, ...]


def show(graphs: Iterable[Graph], library: Library) -> FactSheet:
    """The facts of each model, in the order given."""
    return FactSheet(tuple(facts(graph, library) for graph in graphs))


def facts(graph: Graph, library: Library) -> ModelFacts:
    """The facts of one model."""
    model = graph.model
    counted = counts.count(graph, library)
    return ModelFacts(
        id=model.id,
        name=model.name,
        family=model.family,
        architecture=model.architecture,
        hub_id=model.hub_id,
        dims=settings.dims(graph),
        context_length=model.context_length,
        rope=_rope(graph),
        norm_eps=model.numbers.get("norm_eps"),
        dtype=model.dtype,
        quantisation=_quantisation(model.settings) if counted.weight_bytes is None else None,
        tied=bool(model.flags.get("tied")),
        total_parameters=counted.total_parameters,
        active_parameters=counted.active_parameters,
        weight_bytes=counted.weight_bytes,
        kv_bytes_per_token=kv_bytes_per_token(graph),
        conflicts=counted.conflicts,
        rests_on=model.rests_on,
        not_described=tuple(f"{name} = {shown(value)}" for name, value in settings.beyond(graph).items()),
    )


def kv_bytes_per_token(graph: Graph) -> int:
    """Bytes that the cache steps of all layers keep per position, in the stored dtype or, if weights are quantised, BF16."""
    dtype = graph.model.dtype if graph.model.dtype in CACHE_DTYPES else "BF16"
    elements = sum(
        block.instances
        * shapes.size((axis for axis in shapes.atoms(step.shape) if axis in graph.dims), graph.dims)
        for block in graph.blocks
        for node in block.nodes
        for step in node.steps
        if step.op == "cache"
    )
    return dtypes.size_bytes(dtype, elements)


def _rope(graph: Graph) -> dict[str, Any]:
    """RoPE's parameters under the names of a configuration, those that are not described included."""
    theta = graph.model.numbers.get("rope_theta")
    if theta is None:
        return {}
    stated = {**graph.model.rope}
    stated |= {
        name.removeprefix("rope."): value
        for name, value in settings.beyond(graph).items()
        if name.startswith("rope.")
    }
    return {"rope_theta": theta, "rope_type": "default", **stated}


def _quantisation(stated: Mapping[str, Any]) -> str:
    for key, value in stated.items():
        if isinstance(value, Mapping):
            method = value.get("quant_method")
            return method if isinstance(method, str) else key
    return "not described"
