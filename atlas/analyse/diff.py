"""What differs between two models: dimensions, settings, components, tensors and totals. Weights are not read."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from atlas.analyse import parameters
from atlas.graph import tensors
from atlas.graph.graph import Graph

DEEPEST = 4
"""Levels of a nested setting (a quantisation's configuration) that become rows of their own; deeper ones are one text."""


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


@dataclass(frozen=True, slots=True)
class Diff:
    """The result of `atlas diff`: only what differs.

    Attributes:
        totals: distinct parameters of each model.
        weights_compared: always false: two models without a difference may still hold different weights.
    """

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


def diff(a: Graph, b: Graph) -> Diff:
    """The differences between two models."""
    left, right = _dims(a), _dims(b)
    dims = tuple(Dim(name, left.get(name), right.get(name)) for name in _differing(left, right))
    left, right = _components(a), _components(b)
    components = tuple(ComponentDiff(id, left.get(id), right.get(id)) for id in _differing(left, right))
    named = _tensor_diff(_tensors(a), _tensors(b))
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


def flat(settings: Mapping[str, Any], prefix: str = "", depth: int = 1) -> Iterator[tuple[str, Any]]:
    """(name, value) of every setting: names of nested ones have dots, and absent ones (`null`) are left out.

    A value is a scalar or a tuple of scalars; anything else becomes text, as JSON writes it, and so do NaN and infinity.
    """
    for name, value in settings.items():
        if isinstance(value, Mapping) and value and depth < DEEPEST:
            yield from flat(value, f"{prefix}{name}.", depth + 1)
        elif value is not None:
            yield f"{prefix}{name}", _printable_value(value)


def same(a: Any, b: Any) -> bool:
    """Equality of two settings: 1 and 1.0 are equal, 1 and true are not."""
    return bool(a == b) and isinstance(a, bool) == isinstance(b, bool)


def _settings(a: Graph, b: Graph) -> Iterator[Setting]:
    described_a, described_b = _described(a), _described(b)
    beyond_a, beyond_b = dict(flat(a.model.settings)), dict(flat(b.model.settings))
    left = described_a | beyond_a
    right = described_b | beyond_b
    for name in dict.fromkeys([*left, *right]):
        one = left[name] if name in left else _usual(a, name)
        other = right[name] if name in right else _usual(b, name)
        if not same(one, other):
            covered = name not in beyond_a and name not in beyond_b
            yield Setting(name, one, other, covered)


def _described(graph: Graph) -> dict[str, Any]:
    """Every setting that the description covers, with the value that is used."""
    model = graph.model
    found: dict[str, Any] = {"architecture": model.architecture, **model.flags, **model.numbers}
    found |= {f"rope.{key}": value for key, value in model.rope.items()}
    found |= {name: ", ".join(map(str, layers)) for name, layers in model.lists.items()}
    return found | {"dtype": model.dtype}


def _usual(graph: Graph, name: str) -> Any:
    """The described value of a setting that a model does not state, such as `hidden_act`; None if there is none."""
    for table in graph.architecture.configs.values():
        rule = table.computes.get(name)
        if rule is not None and rule.only:
            return rule.only[0]
    return None


def _printable_value(value: Any) -> Any:
    if isinstance(value, list | tuple) and not any(isinstance(item, list | tuple | Mapping) for item in value):
        return tuple(map(_printable_value, value))
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list | tuple | Mapping):
        try:
            return json.dumps(value, sort_keys=True, ensure_ascii=False)
        except (ValueError, RecursionError):
            return "nested too deeply to print"
    return value


def _dims(graph: Graph) -> dict[str, int]:
    model = graph.model
    found = dict(model.dims)
    found |= {axis: graph.dims[axis] for axis in graph.architecture.derived if axis in graph.dims}
    return found if model.context_length is None else found | {"context_length": model.context_length}


def _components(graph: Graph) -> dict[str, int]:
    return {
        weight.component: 0 if graph.tied_to(weight) else graph.size(weight) * graph.instances(weight)
        for weight in graph.weights.values()
    }


def _tensors(graph: Graph) -> dict[str, tuple[int, ...]]:
    return {tensor.name: tensor.shape for tensor in tensors.expected(graph, tensors.published(graph))}


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
