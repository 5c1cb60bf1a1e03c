"""The values that a description's names have for one model: dims, numbers and flags; and a component's parameters.

A formula is evaluated when something reads it, so that a number that no present step needs need not be stated. What is
read is recorded: a dimension that a configuration states and nothing reads would be a silent difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from atlas import spec
from atlas.errors import ConfigError, SpecError
from atlas.grammar import shapes
from atlas.graph.binding.binding import Binding
from atlas.resolution.model import Scalar

_WORD = re.compile(r"[A-Za-z_]\w*")


class Values(Mapping[str, Scalar]):
    """Names of the architecture and their values. Later ones win: flags, numbers, dims, the model's numbers and flags.

    Args:
        dims: the size of every axis that has one.

    Attributes:
        read: the names that were looked up.
    """

    def __init__(self, binding: Binding, dims: Mapping[str, int]) -> None:
        model, architecture = binding.model, binding.architecture
        self._values: dict[str, Scalar] = {
            **architecture.flags,
            **architecture.numbers,
            **dims,
            **model.numbers,
            **model.flags,
        }
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Scalar:
        value = self._values[name]
        self.read.add(name)
        return value

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def evaluate(self, text: str) -> int | float:
        """A formula's value.

        Raises:
            MissingName: a name has no value, or one that is not a number.
            SpecError: it is not arithmetic, or a division leaves a remainder.
        """
        numbers = {
            name: self[name]
            for name in _WORD.findall(text)
            if name in self._values and _is_number(self._values[name])
        }
        return shapes.evaluate(text, numbers)  # type: ignore[arg-type]


def _is_number(value: Scalar) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class Params(Mapping[str, Scalar]):
    """A component's parameters at one place: what the place states, else the architecture's `given`, else the default.

    A text that is the name of a flag, or of a parameter of the component around, means its value; another text is a formula.

    Args:
        stated: what the node or the `use` step states.
        outer: the parameters of the component around, for a used component.
        where: the place, for messages.

    Raises:
        SpecError: the component has no such parameter.
    """

    def __init__(
        self,
        component: spec.Component,
        stated: Mapping[str, spec.Value],
        values: Values,
        binding: Binding,
        where: str,
        outer: Mapping[str, Scalar] | None = None,
    ) -> None:
        given = binding.architecture.given.get(component.id, {})
        for place, names in ((where, stated), (f"given.{component.id}", given)):
            if strange := set(names) - set(component.params):
                raise binding.fault(place, f"{component.id} has no parameter {', '.join(sorted(strange))}")
        self._component, self._values, self._binding, self._where = component, values, binding, where
        self._stated = {**given, **stated}
        self._outer: Mapping[str, Scalar] = outer or {}
        self._known: dict[str, Scalar] = {}

    def __getitem__(self, name: str) -> Scalar:
        if name not in self._known:
            self._known[name] = self._value(name)
        return self._known[name]

    def __contains__(self, name: object) -> bool:
        return name in self._component.params

    def __iter__(self) -> Iterator[str]:
        return iter(self._component.params)

    def __len__(self) -> int:
        return len(self._component.params)

    def _value(self, name: str) -> Scalar:
        default = self._component.params[name]
        value = self._stated.get(name, default[0] if isinstance(default, list) else default)
        if isinstance(default, list):
            return self._choice(name, default, value)
        if not isinstance(value, str):
            return value
        if value in self._outer:
            return self._outer[value]
        if value in self._values and not _is_number(self._values[value]):
            return self._values[value]
        try:
            return self._values.evaluate(value)
        except SpecError as error:
            raise ConfigError(
                f"{self._binding.model.id}: {self._where} needs {value}: {error.message}"
            ) from None

    def _choice(self, name: str, words: list[str], value: spec.Value) -> Scalar:
        """One of the words: stated itself, or by the name of a flag or of a parameter around."""
        if isinstance(value, str) and value not in words:
            named = self._outer.get(value, self._values.get(value, value))
            value = "off" if named is False and "off" in words else named
        if value not in words:
            raise self._binding.fault(
                self._where, f"{name} is one of {', '.join(map(repr, words))}, not {value!r}"
            )
        return value
