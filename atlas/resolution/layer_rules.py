"""Which layers a rule of a description applies to, and lists that give a word to each layer (`layer_types`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from atlas import spec
from atlas.errors import AtlasError, ConfigError, SpecError, shown
from atlas.grammar.conditions import Values, holds

Lists = Mapping[str, tuple[int, ...] | tuple[str, ...]]

MOST_ITEMS = 10_000
"""Longest list of layers that a configuration may state."""


def matching(
    rule: spec.Rule,
    count: int,
    values: Values,
    evaluate: Callable[[str], int | float],
    lists: Lists,
    where: str,
) -> Callable[[int], bool]:
    """A predicate for the layers that match a rule.

    Args:
        count: how many layers there are.
        values: the values of flags and numbers, for `when`.
        evaluate: computes a formula, for `first` and `every`.
        lists: the model's lists of layers, for `at`.
        where: the model, for messages.

    Raises:
        ConfigError: a list names a layer beyond the last one, or has another length than there are layers.
        SpecError: the rule cannot be evaluated.
    """
    if not holds(rule.when, values):
        return lambda i: False
    first = None if rule.first is None else int(evaluate(rule.first))
    every = None if rule.every is None else int(evaluate(rule.every))
    if every is not None and every < 1:
        raise SpecError(f"every = {rule.every!r} is {every}, expected 1 or more")
    at = None if rule.at is None else _listed(rule.at, count, lists, where)
    return lambda i: (
        (first is None or i < first) and (every is None or (i + 1) % every == 0) and (at is None or i in at)
    )


def _listed(at: str, count: int, lists: Lists, where: str) -> frozenset[int]:
    """The layers that a list names, or at whose places it has a word."""
    name, equals, word = at.partition("=")
    if name not in lists:
        raise SpecError(f"{where} has no list of layers called {name!r}")
    items = lists[name]
    if equals:
        if len(items) != count:
            raise ConfigError(f"{where}: {name} has {len(items):,} entries, and there are {count:,} layers")
        return frozenset(i for i, item in enumerate(items) if str(item) == word)
    numbers = [item for item in items if isinstance(item, int)]
    if numbers and max(numbers) >= count:
        raise ConfigError(
            f"{where}: {name} names layer {max(numbers)}, and there are {count}, counted from 0"
        )
    return frozenset(numbers)


def words_of(architecture: spec.Architecture) -> dict[str, set[str]]:
    """List of layers -> the words that rules of the architecture look for; empty for a list of layer numbers."""
    found: dict[str, set[str]] = {}
    for stack in architecture.stacks.values():
        for choice in (choice for slot in stack.layers for choice in slot if choice.at):
            name, equals, word = (choice.at or "").partition("=")
            found.setdefault(name, set()).update({word} if equals else ())
    return found


def read(key: str, value: Any, words: set[str], where: str) -> tuple[int, ...] | tuple[str, ...]:
    """A list of layers that a configuration states.

    Args:
        words: the words it may have; empty if it is a list of layer numbers.

    Raises:
        ConfigError: it is neither.
    """
    if not isinstance(value, list) or len(value) > MOST_ITEMS:
        what = "a word for each layer" if words else "layer numbers"
        raise ConfigError(
            f"{where}: {key} is {shown(value)}, expected a list of {what}, at most {MOST_ITEMS:,}"
        )
    if words:
        texts = tuple(str(int(item)) if isinstance(item, bool | int) else item for item in value)
        if odd := [item for item in texts if item not in words]:
            raise ConfigError(
                f"{where}: {key} has the entry {shown(odd[0])}, which is not described; described are "
                f"{', '.join(sorted(words))}"
            )
        return texts
    if not all(type(layer) is int and layer >= 0 for layer in value):
        raise ConfigError(f"{where}: {key} is {shown(value)}, expected a list of layer numbers")
    return tuple(value)


def by_pattern(
    rules: Sequence[spec.Word], count: int, values: Values, evaluate: Callable[[str], int | float], where: str
) -> tuple[str, ...] | None:
    """The word of each layer by the first rule that matches it; None if a rule needs a value that is not stated.

    Raises:
        SpecError: no rule matches a layer.
    """
    try:
        fits = [matching(rule, count, values, evaluate, {}, where) for rule in rules]
    except AtlasError:
        return None
    words: list[str] = []
    for i in range(count):
        word = next((rule.word for rule, fit in zip(rules, fits, strict=True) if fit(i)), None)
        if word is None:
            raise SpecError(f"{where}: no rule of the pattern matches layer {i}")
        words.append(str(word))
    return tuple(words)
