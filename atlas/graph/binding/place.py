"""Where a component stands: its node, the steps that lead to it, its axes and parameters, and the symbols in its equations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from atlas import spec
from atlas.errors import SpecError
from atlas.grammar.shapes import Shape
from atlas.graph.graph import Operand
from atlas.resolution.model import Scalar
from atlas.spec.library import Library

MOST_USED = 4
"""Deepest nesting of components that use each other."""

MOST_DECLARED = 10_000
"""Most weights that a node may have under any conditions."""


_BEFORE = r"(?<![A-Za-zα-ω0-9_\\])"
_AFTER = r"(?![A-Za-zα-ω0-9_₀-ₜ′\u0300-\u036f])"
"""Around a symbol in an equation: an index or an accent makes another symbol, an exponent does not."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a component stands.

    Attributes:
        node: the node's id.
        path: the ids of the `use` steps that lead to it; empty for the node's own component.
        axes: the renamed axes.
        params: its parameters.
        lead: the axes that `...` stands for; None if no port has them.
        symbols: a symbol in the component's equations -> the symbol at this place.
    """

    node: str
    path: tuple[str, ...]
    component: spec.Component
    axes: Mapping[str, str]
    params: Mapping[str, Scalar]
    lead: Shape | None
    symbols: Mapping[str, str] = field(default_factory=dict)

    @property
    def where(self) -> str:
        return ".".join((self.node, *self.path))


def weight_ids(component: spec.Component, library: Library, node: str) -> frozenset[str]:
    """The ids of all weights that a node may have, whatever its conditions.

    Raises:
        SpecError: there are too many, or components use each other too deep.
    """
    found: set[str] = set()

    def collect(component: spec.Component, at: str, depth: int) -> Iterator[str]:
        for name in component.weights:
            yield at if depth and name == "weight" else f"{at}.{name}"
        for step in component.steps:
            if step.use and depth < MOST_USED:
                yield at  # counts the step, so that components without weights cannot be repeated for ever
                yield from collect(library.component(step.use), f"{at}.{step.id}", depth + 1)

    for count, id in enumerate(collect(component, node, 0)):
        if count >= MOST_DECLARED:
            raise SpecError(
                f"component {component.id}: more than {MOST_DECLARED:,} weights of used components"
            )
        found.add(id)
    return frozenset(found)


def symbols_of(
    place: Place, step: spec.Step, component: spec.Component, scope: Mapping[str, Operand]
) -> dict[str, str]:
    """What a used component's symbols are called at the step that uses it: its ports and its result."""
    known = {each.out or each.id: each.symbol for each in place.component.steps if each.symbol}
    found = {
        port: place.symbols.get(known.get(text, text), known.get(text, text))
        for port, text in zip(component.ports, step.of, strict=False)
    }
    last = component.steps[-1].symbol
    return found | ({last: step.symbol} if last and step.symbol else {})


def words_at(step: spec.Step, symbols: Mapping[str, str]) -> spec.Step:
    """A step's words with the symbols that its component's have at this place."""
    if not symbols:
        return step
    pattern = re.compile(_BEFORE + "(" + "|".join(map(re.escape, symbols)) + ")" + _AFTER)

    def renamed(text: str) -> str:
        return pattern.sub(lambda found: symbols[found[0]], text)

    return step.model_copy(
        update={
            "text": renamed(step.text),
            "latex": renamed(step.latex),
            "symbol": symbols.get(step.symbol, step.symbol),
        }
    )


def last_words(words: spec.Step, use: spec.Step) -> spec.Step:
    """The words of the last step of a used component: what the step that uses it says about the result comes first."""
    own = {name: getattr(use, name) for name in ("title", "summary", "cites") if getattr(use, name)}
    return words.model_copy(update={**own, "notes": [*use.notes, *words.notes]})
