"""What `atlas params` lists: every component, layer and tensor with its parameters, its bytes and its names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from atlas import dtypes, spec
from atlas.analyse import parameters
from atlas.analyse.labels import labels
from atlas.analyse.row_order import Order
from atlas.errors import UsageError, shown
from atlas.evidence.bibliography import Evidence, evidence
from atlas.grammar import shapes
from atlas.graph import cites, tensors
from atlas.graph.graph import Graph, Weight
from atlas.spec.library import Library


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


def size_of(dtype: str | None, elements: int) -> int | None:
    return None if dtype is None else dtypes.size_bytes(dtype, elements)


def list_components(
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
        bytes=size_of(dtype, stored),
        tied_to=other.component if other else None,
        trained=trained,
        cites=tuple(evidence(cites.of_weight(graph, node, weight), library, graph.model.family)),
    )


def list_layers(graph: Graph, only: int | None, dtype: str | None) -> list[Layer]:
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
    return [Layer(stack, i, own, size_of(dtype, stored)) for (stack, i), (own, stored) in found.items()]


def list_tensors(
    graph: Graph, only: int | None, order: Mapping[str, Order], dtype: str | None
) -> list[Tensor]:
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
                        bytes=size_of(dtype, stored),
                        component=weight.component,
                        tied_to=other.id if other else None,
                        trained=trained,
                    )
                )
    return found
