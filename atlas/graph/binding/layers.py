"""Selects the block that each layer of a stack uses at one position."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from atlas import spec
from atlas.errors import ConfigError
from atlas.grammar import shapes
from atlas.graph.binding.binding import Binding


def layers(
    choices: Sequence[spec.Choice], count: int, where: str, binding: Binding, dims: Mapping[str, int]
) -> list[Sequence[int]]:
    """For each choice, the layers in which it is the first whose rule matches.

    Args:
        count: how many layers the stack has.
        where: the stack's name, for messages.

    Raises:
        ConfigError: the model's list contains a layer beyond the last one.
        SpecError: no rule matches a layer, or a rule cannot be evaluated.
    """
    if not (choices[0].first or choices[0].every or choices[0].at):
        return [range(count)] + [()] * (len(choices) - 1)
    fits = [_fits(choice, count, where, binding, dims) for choice in choices]
    taken: list[list[int]] = [[] for _ in choices]
    for i in range(count):
        chosen = next((n for n, fit in enumerate(fits) if fit(i)), None)
        if chosen is None:
            raise binding.fault(where, f"no rule of a block matches layer {i}")
        taken[chosen].append(i)
    return [tuple(numbers) for numbers in taken]


def _fits(
    choice: spec.Choice, count: int, where: str, binding: Binding, dims: Mapping[str, int]
) -> Callable[[int], bool]:
    """A predicate for the layers that match the choice's rule."""
    model = binding.model
    values = {**model.numbers, **dims}
    first = None if choice.first is None else int(shapes.evaluate(choice.first, values))
    every = None if choice.every is None else int(shapes.evaluate(choice.every, values))
    if every is not None and every < 1:
        raise binding.fault(where, f"{choice.block}: every = {every}, expected 1 or more")
    if choice.at is not None and choice.at not in model.lists:
        raise binding.fault(where, f"{model.id} has no list of layers called {choice.at!r}")
    at = None if choice.at is None else frozenset(model.lists[choice.at])
    if at and max(at) >= count:
        raise ConfigError(
            f"{model.id}: {choice.at} names layer {max(at)}, and there are {count}, counted from 0"
        )
    return lambda i: (
        (first is None or i < first) and (every is None or (i + 1) % every == 0) and (at is None or i in at)
    )
