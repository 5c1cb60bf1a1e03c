"""A trace made shorter for reading: layers alike as one, or only the steps of one layer or one component."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

from atlas.analyse.labels import labels
from atlas.analyse.trace import Trace, TracedStep
from atlas.errors import UsageError, shown
from atlas.graph.graph import Graph
from atlas.units import require_integer

MOST_RANGES = 4
"""Ranges of layers written out (`0–2,4–6`) before the rest are left out."""


@dataclass(frozen=True, slots=True)
class FoldedStep:
    """A step of several layers that are alike.

    Attributes:
        step: the step in the first of the layers.
        prefix: the stack and its layers, `layers.0–31`; empty outside the layers.
        count: how many layers have it.
    """

    step: TracedStep
    prefix: str
    count: int

    @property
    def id(self) -> str:
        """`layers.0–31.attention.q`."""
        return f"{self.prefix}.{name(self.step)}" if self.prefix else self.step.id


def name(step: TracedStep) -> str:
    """A step's id without its layer: `attention.q`."""
    return step.id if step.layer is None else step.id.split(".", 2)[2]


def node(step: TracedStep) -> str:
    """The node that a step belongs to: `attention`."""
    return name(step).partition(".")[0]


def unfolded(trace: Trace) -> list[FoldedStep]:
    """Every step of every layer."""
    return [FoldedStep(step, _stack(step), 1) for step in trace.steps]


def folded(trace: Trace) -> list[FoldedStep]:
    """Steps in execution order, layers with equal steps as one, where the first of them is."""
    found: list[FoldedStep] = []
    for stack, group in groupby(trace.steps, key=lambda step: _stack(step).partition(".")[0]):
        steps = list(group)
        if not stack:
            found += [FoldedStep(step, "", 1) for step in steps]
            continue
        alike: dict[tuple[TracedStep, ...], list[list[TracedStep]]] = {}
        for _, layer in groupby(steps, key=lambda step: step.layer):
            rows = list(layer)
            kind = tuple(replace(row, id=name(row), layer=None, input_steps=()) for row in rows)
            alike.setdefault(kind, []).append(rows)
        for layers in alike.values():
            numbers = [rows[0].layer or 0 for rows in layers]
            prefix = f"{stack}.{ranges(numbers)}"
            found += [FoldedStep(step, prefix, len(layers)) for step in layers[0]]
    return found


def ranges(numbers: Sequence[int]) -> str:
    """Ascending numbers, briefly: `0–31`, `0–2,4–6`, and `0,2,…,46` where they are evenly spaced."""
    if len(numbers) > 2:
        apart = numbers[1] - numbers[0]
        if apart > 1 and all(b - a == apart for a, b in pairwise(numbers)):
            return f"{numbers[0]},{numbers[1]},…,{numbers[-1]}"
    spans: list[list[int]] = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    written = [str(first) if first == last else f"{first}–{last}" for first, last in spans]
    if len(written) > MOST_RANGES:
        written = [*written[: MOST_RANGES - 1], "…", written[-1]]
    return ",".join(written)


def select(trace: Trace, graph: Graph, layer: int | None = None, component: str | None = None) -> Trace:
    """The trace with the steps of one layer, of one component, or of both. Totals stay those of the whole pass.

    Args:
        component: a component's or a node's id (`attention.wq`, `attention`), or its name in any convention
            (`self_attn.q_proj`, `q_proj`, `mlp`), in upper or lower case.

    Raises:
        UsageError: there is no such layer or component, or the component is not in that layer.
    """
    steps = trace.steps
    if layer is not None:
        require_integer(layer, "--layer")
        last = max((step.layer for step in steps if step.layer is not None), default=-1)
        if not 0 <= layer <= last:
            raise UsageError(f"--layer is {shown(layer)}, expected 0 to {last}: layers are counted from 0")
        steps = tuple(step for step in steps if step.layer == layer)
    if component is not None:
        ids = _ids(graph, trace, component)
        everywhere = steps
        steps = tuple(step for step in steps if step.component in ids or node(step) in ids)
        if not steps and everywhere is not trace.steps:
            raise UsageError(
                f"--component {component}: not in layer {layer}",
                hint="leave out --layer, or see `atlas trace --all`",
            )
    return replace(trace, steps=steps)


def _ids(graph: Graph, trace: Trace, component: str) -> set[str]:
    """The components and nodes that go by a name."""
    known: dict[str, set[str]] = {}
    for step in trace.steps:
        for id in (step.component, node(step)):
            known.setdefault(id.casefold(), set()).add(id)
    own = known.get(component.casefold())
    if own:
        return own
    spellings: Mapping[str, set[str]] = _spellings(graph)
    wanted = component.casefold().removesuffix(".weight")
    found = {id for id in spellings.get(wanted, ()) if id.casefold() in known}
    if found:
        return found
    names = {word: id for word, ids in [*spellings.items(), *known.items()] for id in ids}
    near = dict.fromkeys(names[word] for word in difflib.get_close_matches(wanted, names, n=4))
    raise UsageError(
        f"{graph.model.id} has no component called {component[:80]!r}",
        hint=f"did you mean {', '.join(near)}?"
        if near
        else f"components are {', '.join(dict.fromkeys(step.component for step in trace.steps))}",
    )


def _spellings(graph: Graph) -> dict[str, set[str]]:
    """A component's names in every convention, in full and without what is before its last dot -> its ids."""
    found: dict[str, set[str]] = {}
    for convention in graph.architecture.conventions:
        for id, label in labels(graph, convention).items():
            for word in (label, label.rpartition(".")[2], id.rpartition(".")[2]):
                found.setdefault(word.casefold(), set()).add(id)
    return found


def _stack(step: TracedStep) -> str:
    return "" if step.layer is None else step.id.rpartition(f".{name(step)}")[0]
