"""Selects the block that each layer of a stack uses at one position."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from atlas import spec
from atlas.errors import SpecError
from atlas.graph.binding.binding import Binding
from atlas.graph.binding.values import Values
from atlas.resolution import layer_rules


def layers(
    choices: Sequence[spec.Choice], count: int, where: str, binding: Binding, values: Values
) -> list[Sequence[int]]:
    """For each choice, the layers in which it is the first whose rule matches.

    Args:
        count: how many layers the stack has.
        where: the stack's name, for messages.

    Raises:
        ConfigError: the model's list contains a layer beyond the last one, or has another length than the stack.
        SpecError: no rule matches a layer, or a rule cannot be evaluated.
    """
    if not (choices[0].first or choices[0].every or choices[0].at or choices[0].when):
        return [range(count)] + [()] * (len(choices) - 1)
    fits = [_fits(choice, count, where, binding, values) for choice in choices]
    taken: list[list[int]] = [[] for _ in choices]
    for i in range(count):
        chosen = next((n for n, fit in enumerate(fits) if fit(i)), None)
        if chosen is None:
            raise binding.fault(where, f"no rule of a block matches layer {i}{_word_at(choices, i, binding)}")
        taken[chosen].append(i)
    return [tuple(numbers) for numbers in taken]


def _fits(
    rule: spec.Choice, count: int, where: str, binding: Binding, values: Values
) -> Callable[[int], bool]:
    """A predicate for the layers that match a choice's rule."""
    try:
        return layer_rules.matching(
            rule, count, values, values.evaluate, binding.model.lists, binding.model.id
        )
    except SpecError as error:
        raise binding.fault(where, f"{rule.block}: {error.message}") from None


def _word_at(choices: Sequence[spec.Choice], i: int, binding: Binding) -> str:
    """What the model's list states for a layer, for a message; empty if no rule reads a list of words."""
    for choice in choices:
        name, equals, _ = (choice.at or "").partition("=")
        if equals and i < len(binding.model.lists.get(name, ())):
            return f", whose {name} is {binding.model.lists[name][i]!r}"
    return ""
