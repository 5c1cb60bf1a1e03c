"""Which of the blocks that may stand in a place of a stack stands there in which layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from atlas import spec
from atlas.errors import ConfigError
from atlas.grammar import shapes
from atlas.graph.binding.binding import Binding


def layers(
    choices: Sequence[spec.Choice], count: int, where: str, binding: Binding, dims: Mapping[str, int]
) -> list[Sequence[int]]:
    """For each choice the layers in which it is the first that fits.

    Args:
        count: how many layers the stack has.
        where: the stack's name, for messages.

    Raises:
        ConfigError: the model lists a layer beyond the last.
        SpecError: no block fits a layer, or a choice's rule cannot be worked out.
    """
    if not (choices[0].first or choices[0].every or choices[0].at):
        return [range(count)] + [()] * (len(choices) - 1)
    fits = [_fits(choice, count, where, binding, dims) for choice in choices]
    taken: list[list[int]] = [[] for _ in choices]
    for i in range(count):
        chosen = next((n for n, fit in enumerate(fits) if fit(i)), None)
        if chosen is None:
            raise binding.fault(where, f"no block fits layer {i}")
        taken[chosen].append(i)
    return [tuple(numbers) for numbers in taken]


def _fits(
    choice: spec.Choice, count: int, where: str, binding: Binding, dims: Mapping[str, int]
) -> Callable[[int], bool]:
    """Whether a layer is one that the choice may stand in."""
    model = binding.model
    values = {**model.numbers, **dims}
    first = None if choice.first is None else int(shapes.evaluate(choice.first, values))
    every = None if choice.every is None else int(shapes.evaluate(choice.every, values))
    if every is not None and every < 1:
        raise binding.fault(where, f"{choice.block} stands in every {every}th layer; expected 1 or more")
    if choice.at is not None and choice.at not in model.lists:
        raise binding.fault(where, f"{model.id} lists no layers called {choice.at!r}")
    at = None if choice.at is None else frozenset(model.lists[choice.at])
    if at and max(at) >= count:
        raise ConfigError(
            f"{model.id}: {choice.at} names layer {max(at)}, and there are {count}, counted from 0"
        )
    return lambda i: (
        (first is None or i < first) and (every is None or (i + 1) % every == 0) and (at is None or i in at)
    )
