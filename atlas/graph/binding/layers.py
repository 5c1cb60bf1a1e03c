"""Selects the block that each layer of a stack uses at one position."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from atlas import spec
from atlas.errors import ConfigError, SpecError
from atlas.grammar.conditions import holds
from atlas.graph.binding.binding import Binding
from atlas.graph.binding.values import Values


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
    fits = [_fits(choice, choice.block, count, where, binding, values) for choice in choices]
    taken: list[list[int]] = [[] for _ in choices]
    for i in range(count):
        chosen = next((n for n, fit in enumerate(fits) if fit(i)), None)
        if chosen is None:
            raise binding.fault(where, f"no rule of a block matches layer {i}{_word_at(choices, i, binding)}")
        taken[chosen].append(i)
    return [tuple(numbers) for numbers in taken]


def _fits(
    rule: spec.Rule, what: str, count: int, where: str, binding: Binding, values: Values
) -> Callable[[int], bool]:
    """A predicate for the layers that match a rule."""
    try:
        if not holds(rule.when, values):
            return lambda i: False
    except SpecError as error:
        raise binding.fault(where, error.message) from None
    first = None if rule.first is None else int(values.evaluate(rule.first))
    every = None if rule.every is None else int(values.evaluate(rule.every))
    if every is not None and every < 1:
        raise binding.fault(where, f"{what}: every = {every}, expected 1 or more")
    at = None if rule.at is None else _listed(rule.at, count, where, binding)
    return lambda i: (
        (first is None or i < first) and (every is None or (i + 1) % every == 0) and (at is None or i in at)
    )


def _listed(at: str, count: int, where: str, binding: Binding) -> frozenset[int]:
    """The layers that a list of the model names, or at whose places it has a word."""
    name, equals, word = at.partition("=")
    if name not in binding.model.lists:
        raise binding.fault(where, f"{binding.model.id} has no list of layers called {name!r}")
    items = binding.model.lists[name]
    if equals:
        if len(items) != count:
            raise ConfigError(
                f"{binding.model.id}: {name} has {len(items):,} entries, and there are {count:,} layers"
            )
        return frozenset(i for i, item in enumerate(items) if str(item) == word)
    numbers = [item for item in items if isinstance(item, int)]
    if numbers and max(numbers) >= count:
        raise ConfigError(
            f"{binding.model.id}: {name} names layer {max(numbers)}, and there are {count}, counted from 0"
        )
    return frozenset(numbers)


def _word_at(choices: Sequence[spec.Choice], i: int, binding: Binding) -> str:
    """What the model's list states for a layer, for a message; empty if no rule reads a list of words."""
    for choice in choices:
        name, equals, _ = (choice.at or "").partition("=")
        if equals and i < len(binding.model.lists.get(name, ())):
            return f", whose {name} is {binding.model.lists[name][i]!r}"
    return ""
