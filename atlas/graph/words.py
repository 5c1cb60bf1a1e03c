"""The texts of a component at one place: the equation that its parameters have, and the parameters' values in the texts.

`<act>` in a text stands for the value of the parameter `act`: `s = <act>(a)` is `s = gelu_tanh(a)`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeVar

from atlas import spec
from atlas.grammar.conditions import holds
from atlas.resolution.model import Scalar

W = TypeVar("W", bound=spec.Words)

_NAME = re.compile(r"<([a-z_]+)>")
_FIELDS = ("title", "summary", "expression", "text", "latex")


def filled(words: W, params: Mapping[str, Scalar]) -> W:
    """The words with the values of parameters in place of their names. Other names in angle brackets stay."""
    texts = {field: getattr(words, field) for field in _FIELDS if "<" in getattr(words, field)}
    if not texts:
        return words

    def value(found: re.Match[str]) -> str:
        return str(params[found[1]]) if found[1] in params else found[0]

    said = {field: _NAME.sub(value, text) for field, text in texts.items()}
    if "latex" in said:
        said["latex"] = re.sub(r"(?<=[a-z])_(?=[a-z])", r"\\_", said["latex"])
    return words.model_copy(update=said)


def words_of(component: spec.Component, params: Mapping[str, Scalar]) -> spec.Component:
    """A component's words at a place: with the equation whose condition its parameters meet."""
    for equation in component.equations:
        if holds(equation.when, params):
            said = equation.model_dump(exclude={"when"}, exclude_defaults=True)
            return filled(component.model_copy(update=said), params)
    return filled(component, params)
