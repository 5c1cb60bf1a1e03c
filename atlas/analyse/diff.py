"""What differs between two models: dimensions, settings, components, tensors and totals. Weights are not read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from atlas.analyse import parameters, settings
from atlas.graph import tensors
from atlas.graph.graph import Graph
from atlas.tables import Tabular


@dataclass(frozen=True, slots=True)
class Dim:
    """A dimension; None if a model has none of that name."""

    name: str
    a: int | None
    b: int | None


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting that changes, or may change, the computation.

    Attributes:
        a: the value in the first model; None if it has no such setting.
        described: whether the architecture's description covers both values.
    """

    name: str
    a: Any
    b: Any
    described: bool


@dataclass(frozen=True, slots=True)
class ComponentDiff:
    """A component's parameters in both models; None if a model has no such component."""

    id: str
    a: int | None
    b: int | None


@dataclass(frozen=True, slots=True)
class ShapeDiff:
    """A tensor that both models have, in two shapes."""

    name: str
    a: tuple[int, ...]
    b: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TensorDiff:
    """Tensors, named as in the checkpoints that are published (the Hub's names where the architecture has them)."""

    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    shape: tuple[ShapeDiff, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Diff(Tabular):
    """The result of `atlas diff`: only what differs.

    Attributes:
        totals: distinct parameters of each model.
        weights_compared: always false: two models without a difference may still hold different weights.
    """

    rows_fields: ClassVar[tuple[str, ...]] = ("settings", "dims", "components")

    a: str
    b: str
    settings: tuple[Setting, ...]
    dims: tuple[Dim, ...]
    components: tuple[ComponentDiff, ...]
    tensors: TensorDiff
    totals: Mapping[str, int]
    same_tensors: bool
    weights_compared: bool = False

    @property
    def differs(self) -> bool:
        """Whether anything that was compared differs."""
        return bool(self.settings or self.dims or self.components or not self.same_tensors)


def diff(a: Graph, b: Graph, *, convention: str | None = None) -> Diff:
    """The differences between two models.

    Args:
        convention: the convention of the tensors' names; by default, the one that checkpoints are published in.

    Raises:
        UsageError: an architecture has no such convention.
    """
    left, right = _dims(a), _dims(b)
    dims = tuple(Dim(name, left.get(name), right.get(name)) for name in _differing(left, right))
    left, right = _components(a), _components(b)
    components = tuple(ComponentDiff(id, left.get(id), right.get(id)) for id in _differing(left, right))
    named = _tensor_diff(_tensors(a, convention), _tensors(b, convention))
    return Diff(
        a=a.model.id,
        b=b.model.id,
        settings=tuple(_settings(a, b)),
        dims=dims,
        components=components,
        tensors=named,
        totals={"a": parameters.total(a), "b": parameters.total(b)},
        same_tensors=not (named.only_a or named.only_b or named.shape),
    )


def _settings(a: Graph, b: Graph) -> Iterator[Setting]:
    beyond_a, beyond_b = settings.beyond(a), settings.beyond(b)
    left, right = settings.described(a) | beyond_a, settings.described(b) | beyond_b
    for name in dict.fromkeys([*left, *right]):
        beside = name in beyond_a or name in beyond_b
        if not beside and (name in left) != (name in right) and settings.is_off({**left, **right}[name]):
            continue  # the other architecture has no such setting, and this model does without it
        one = left[name] if name in left else settings.usual(a, name)
        other = right[name] if name in right else settings.usual(b, name)
        if not settings.same(one, other):
            yield Setting(name, one, other, described=not beside)


def _dims(graph: Graph) -> dict[str, int]:
    length = graph.model.context_length
    return settings.dims(graph) | ({} if length is None else {"context_length": length})


def _components(graph: Graph) -> dict[str, int]:
    return {
        weight.component: 0 if graph.tied_to(weight) else graph.size(weight) * graph.instances(weight)
        for weight in graph.weights.values()
    }


def _tensors(graph: Graph, convention: str | None) -> dict[str, tuple[int, ...]]:
    names = convention or tensors.published(graph)
    return {tensor.name: tensor.shape for tensor in tensors.expected(graph, names)}


def _tensor_diff(a: Mapping[str, tuple[int, ...]], b: Mapping[str, tuple[int, ...]]) -> TensorDiff:
    return TensorDiff(
        only_a=tuple(name for name in a if name not in b),
        only_b=tuple(name for name in b if name not in a),
        shape=tuple(
            ShapeDiff(name, shape, b[name]) for name, shape in a.items() if name in b and b[name] != shape
        ),
    )


def _differing(a: Mapping[str, int], b: Mapping[str, int]) -> list[str]:
    return [name for name in dict.fromkeys([*a, *b]) if a.get(name) != b.get(name)]
