"""The facts of a model on one screen, and of several models side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from atlas import dtypes
from atlas.analyse import counts, settings
from atlas.analyse.counts import Conflict
from atlas.analyse.sizing import Sizing
from atlas.errors import shown
from atlas.graph.graph import Graph, Stack
from atlas.spec.library import Library

CACHE_DTYPES = ("BF16", "F16", "F32")
"""The stored dtypes that a KV cache has as well; with any other one it is BF16."""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The facts of one model.

    Attributes:
        dims: sizes by axis name; those that the architecture derives (`head_dim`) included.
        rope: `rope_theta`, `rope_type` and the parameters of the scaling; for layers of another kind than the first, under
            `kind.name`.
        settings: the other described numbers that are in effect, such as a window, and the switches that are not at the
            architecture's default.
        layer_kinds: for layers that are not all alike, block -> its number of layers.
        quantisation: the quantisation method, or the configuration's key that states one; None if weights are not quantised.
        tied: whether the output matrix is the token embedding's.
        weight_bytes: bytes of the published weights; None if they are quantised in a way that is not described.
        kv_bytes_per_token: bytes of the KV cache per position of a sequence inside every window, all layers together.
        kv_bytes_per_token_beyond_window: what one more position adds beyond every window.
        state_bytes: of a sequence's constant states, which do not grow with its positions.
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
    settings: Mapping[str, Any]
    layer_kinds: Mapping[str, int]
    dtype: str
    quantisation: str | None
    tied: bool
    total_parameters: int
    active_parameters: int
    weight_bytes: int | None
    kv_bytes_per_token: int
    kv_bytes_per_token_beyond_window: int
    state_bytes: int
    conflicts: tuple[Conflict, ...]
    rests_on: str
    not_described: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FactSheet:
    """The result of `atlas show`.

    Attributes:
        axes: the name of each dimension of a model -> its meaning.
    """

    models: tuple[ModelFacts, ...]
    axes: Mapping[str, str] = field(default_factory=dict)


def show(graphs: Iterable[Graph], library: Library) -> FactSheet:
    """The facts of each model, in the order given."""
    sheet = tuple(facts(graph, library) for graph in graphs)
    meanings = {axis: library.axes[axis].meaning for each in sheet for axis in each.dims}
    return FactSheet(sheet, meanings)


def facts(graph: Graph, library: Library) -> ModelFacts:
    """The facts of one model."""
    model = graph.model
    counted = counts.count(graph, library)
    sizing = _sizing(graph)
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
        settings=_settings(graph),
        layer_kinds=_layer_kinds(graph),
        dtype=model.dtype,
        quantisation=_quantisation(model.settings) if counted.weight_bytes is None else None,
        tied=bool(model.flags.get("tied")),
        total_parameters=counted.total_parameters,
        active_parameters=counted.active_parameters,
        weight_bytes=counted.weight_bytes,
        kv_bytes_per_token=sizing.kv_per_token(),
        kv_bytes_per_token_beyond_window=sizing.kv_per_token_beyond(),
        state_bytes=sizing.state(),
        conflicts=counted.conflicts,
        rests_on=model.rests_on,
        not_described=tuple(f"{name} = {shown(value)}" for name, value in settings.beyond(graph).items()),
    )


def kv_bytes_per_token(graph: Graph) -> int:
    """Bytes that the cache steps of all layers keep per position, in the stored dtype or, if weights are quantised, BF16."""
    return _sizing(graph).kv_per_token()


def _sizing(graph: Graph) -> Sizing:
    cache = graph.model.dtype if graph.model.dtype in CACHE_DTYPES else "BF16"
    return Sizing(graph, graph.model.dtype, dtypes.of_activations(graph.model.dtype), cache, frozenset(), 1)


def _settings(graph: Graph) -> dict[str, Any]:
    """Numbers in effect that have no row of their own, and flags that are not at their default."""
    numbers = {
        name: value
        for name, value in settings.numbers(graph).items()
        if name not in ("norm_eps", "rope_theta") and not settings.is_off(value)
    }
    defaults = graph.architecture.flags
    flags = {
        name: value
        for name, value in settings.flags(graph).items()
        if name != "tied" and not settings.same(value, defaults.get(name, False))
    }
    return numbers | flags


def _layer_kinds(graph: Graph) -> dict[str, int]:
    """The blocks among which a layer has one, where its stack has several of them."""
    found: dict[str, int] = {}
    for part in graph.parts:
        for slot in part.slots if isinstance(part, Stack) else ():
            blocks = [block for block in slot if block.instances]
            for block in blocks if len(blocks) > 1 else ():
                found[block.id] = found.get(block.id, 0) + block.instances
    return found


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
    kinds = {
        f"{kind}.{name}": value for kind, rope in graph.model.ropes.items() for name, value in rope.items()
    }
    return {"rope_theta": theta, "rope_type": "default", **stated, **kinds}


def _quantisation(stated: Mapping[str, Any]) -> str:
    for key, value in stated.items():
        if isinstance(value, Mapping):
            method = value.get("quant_method")
            return method if isinstance(method, str) else key
    return "not described"
