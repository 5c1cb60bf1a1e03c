"""What differs between two models: dimensions, components, tensors, totals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from atlas.analyse import parameters
from atlas.graph import tensors
from atlas.graph.graph import Graph
from atlas.tables import Tabular


@dataclass(frozen=True, slots=True)
class Dim:
    """A dimension or setting; None where a model has none of that name."""

    name: str
    a: int | float | str | bool | None
    b: int | float | str | bool | None


@dataclass(frozen=True, slots=True)
class ComponentDiff:
    id: str
    a: int | None
    b: int | None


@dataclass(frozen=True, slots=True)
class ShapeDiff:
    name: str
    a: tuple[int, ...]
    b: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TensorDiff:
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    shape: tuple[ShapeDiff, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Diff(Tabular):
    rows_fields: ClassVar[tuple[str, ...]] = ("dims", "components")

    a: str
    b: str
    dims: tuple[Dim, ...]
    components: tuple[ComponentDiff, ...]
    tensors: TensorDiff
    totals: Mapping[str, int]
    same_tensors: bool

    @property
    def differs(self) -> bool:
        return bool(self.dims or self.components or not self.same_tensors)


def diff(a: Graph, b: Graph) -> Diff:
    """Only what differs is listed."""
    mine, other = _settings(a), _settings(b)
    dims = [
        Dim(name, mine.get(name), other.get(name))
        for name in dict.fromkeys([*mine, *other])
        if mine.get(name) != other.get(name)
    ]
    left, right = _components(a), _components(b)
    components = [
        ComponentDiff(name, left.get(name), right.get(name))
        for name in dict.fromkeys([*left, *right])
        if left.get(name) != right.get(name)
    ]
    shapes_a, shapes_b = _tensors(a), _tensors(b)
    listed = TensorDiff(
        only_a=tuple(name for name in shapes_a if name not in shapes_b),
        only_b=tuple(name for name in shapes_b if name not in shapes_a),
        shape=tuple(
            ShapeDiff(name, shape, shapes_b[name])
            for name, shape in shapes_a.items()
            if name in shapes_b and shapes_b[name] != shape
        ),
    )
    return Diff(
        a=a.model.id,
        b=b.model.id,
        dims=tuple(dims),
        components=tuple(components),
        tensors=listed,
        totals={"a": parameters.total(a), "b": parameters.total(b)},
        same_tensors=not (listed.only_a or listed.only_b or listed.shape),
    )


def _settings(graph: Graph) -> dict[str, int | float | str | bool]:
    model = graph.model
    found: dict[str, int | float | str | bool] = {"architecture": model.architecture, **model.dims}
    found |= {axis: graph.dims[axis] for axis in graph.architecture.derived if axis in graph.dims}
    found |= {**model.numbers, **model.flags, **{f"rope.{key}": value for key, value in model.rope.items()}}
    found |= {name: ", ".join(map(str, layers)) for name, layers in model.lists.items()}
    if model.context_length is not None:
        found["context_length"] = model.context_length
    found["dtype"] = model.dtype
    return found


def _components(graph: Graph) -> dict[str, int]:
    return {
        weight.component: 0 if graph.tied_to(weight) else graph.size(weight) * graph.instances(weight)
        for weight in graph.weights.values()
    }


def _tensors(graph: Graph) -> dict[str, tuple[int, ...]]:
    return {tensor.name: tensor.shape for tensor in tensors.expected(graph, tensors.published(graph))}
