"""What a model is configured with, as flat names and values: dimensions, described settings, and settings beyond them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from atlas.graph.graph import Graph
from atlas.spec.config_tables import config_table

DEEPEST = 4
"""Levels of a nested setting (a quantisation's configuration) with a name of their own; deeper ones are one text."""


def dims(graph: Graph) -> dict[str, int]:
    """The sizes that a configuration states, and those that the architecture derives from them (`head_dim`)."""
    derived = graph.architecture.derived
    return {**graph.model.dims, **{axis: graph.dims[axis] for axis in derived if axis in graph.dims}}


def described(graph: Graph) -> dict[str, Any]:
    """Every setting that the description covers, with the value that is used: flags, numbers, RoPE's form, lists of layers."""
    model = graph.model
    found: dict[str, Any] = {"architecture": model.architecture, **flags(graph), **numbers(graph)}
    found |= {f"rope.{name}": value for name, value in flat(model.rope)}
    found |= {
        f"rope.{kind}.{name}": value for kind, rope in model.ropes.items() for name, value in flat(rope)
    }
    found |= {name: tuple(layers) for name, layers in model.lists.items()}
    return found | {"dtype": model.dtype}


def flags(graph: Graph) -> dict[str, Any]:
    """Switches and choices: what the model states, else the architecture's defaults."""
    return {**graph.architecture.flags, **graph.model.flags}


def numbers(graph: Graph) -> dict[str, float]:
    """Numbers of the arithmetic, likewise; 0 where the architecture has a default of 0 and there is none."""
    return {**graph.architecture.numbers, **graph.model.numbers}


def is_off(value: Any) -> bool:
    """Whether a described setting says that something is not there: 0, false, `off`."""
    return value is False or value == "off" or (isinstance(value, int | float) and value == 0)


def beyond(graph: Graph) -> dict[str, Any]:
    """Every setting that the configuration states and the description does not cover."""
    return dict(flat(graph.model.settings))


def usual(graph: Graph, name: str) -> Any:
    """The described value of a setting that a model does not state, such as `hidden_act`; None if there is none."""
    known = {**flags(graph), **numbers(graph)}
    for each in graph.architecture.configs:
        table = config_table(graph.architecture, each)
        ours = table.used.get(name)
        ours = ours[0] if isinstance(ours, list) else ours
        if ours in known:
            return known[ours]
        rule = table.computes.get(name)
        if rule is not None and rule.only:
            return rule.only[0]
    return None


def flat(settings: Mapping[str, Any], prefix: str = "", depth: int = 1) -> Iterator[tuple[str, Any]]:
    """(name, value) of every setting: names of nested ones have dots, and absent ones (`null`) are left out.

    A value is a scalar or a tuple of scalars; anything else becomes text, as JSON writes it, and so do NaN and infinity.
    """
    for name, value in settings.items():
        if isinstance(value, Mapping) and value and depth < DEEPEST:
            yield from flat(value, f"{prefix}{name}.", depth + 1)
        elif value is not None:
            yield f"{prefix}{name}", _printable(value)


def same(a: Any, b: Any) -> bool:
    """Equality of two settings: 1 and 1.0 are equal, 1 and true are not."""
    return bool(a == b) and isinstance(a, bool) == isinstance(b, bool)


def _printable(value: Any) -> Any:
    if isinstance(value, list | tuple) and not any(
        isinstance(item, list | tuple | Mapping) for item in value
    ):
        return tuple(map(_printable, value))
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list | tuple | Mapping):
        try:
            return json.dumps(value, sort_keys=True, ensure_ascii=False)
        except (ValueError, RecursionError):
            return "nested too deeply to print"
    return value
