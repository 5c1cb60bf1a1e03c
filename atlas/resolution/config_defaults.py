"""What a configuration means beyond its stated keys: defaults, lists of layers, the head, and what Meta's code computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from atlas import spec
from atlas.errors import ConfigError, shown
from atlas.grammar import shapes
from atlas.resolution import dimensions, layer_rules, rope
from atlas.resolution.config_keys import Reading
from atlas.resolution.model import Gap


def fill_defaults(reading: Reading, config: Mapping[str, Any]) -> None:
    """Fill in what absent keys mean, with a note for each size and number that the result depends on."""
    defaults, whose = reading.table.defaults, reading.table.whose
    for generation in reading.table.generations:
        if any(config.get(key) is not None for key in generation.stated):
            defaults, whose = defaults | generation.defaults, generation.whose
            break
    unread = _of_stated_lists(reading)
    for name, value in defaults.items():
        if isinstance(value, bool | str):
            reading.flags.setdefault(name, value)
            continue
        known: Mapping[str, float] = reading.dims if name in reading.library.axes else reading.numbers
        if name in known:
            continue
        if name in reading.library.axes:
            reading.dims[name] = int(value)
        else:
            reading.numbers[name] = value
        if value != reading.architecture.numbers.get(name) and name not in unread:
            reading.notes.append(
                f"{reading.key_of.get(name, name)} is not stated; {value:g} is used, the default{default_of(whose)}"
            )


def _of_stated_lists(reading: Reading) -> set[str]:
    """What only the patterns of lists read that a key states, such as the distance of layers without a window."""
    stated = [rule for name in reading.lists for rule in reading.table.patterns.get(name, ())]
    choices = [
        choice for stack in reading.architecture.stacks.values() for slot in stack.layers for choice in slot
    ]
    return _read_by(stated) - _read_by(choices)


def _read_by(rules: Sequence[spec.Rule]) -> set[str]:
    return {
        name for rule in rules for text in (rule.first, rule.every) if text for name in shapes.names(text)
    }


def fill_kinds_of_rope(reading: Reading) -> None:
    """Fill in the settings of the kinds of layer that none states: those of the first kind are stated for all layers."""
    for place, kind in enumerate(reading.table.rope_kinds):
        reading.ropes.setdefault(kind, dict(reading.rope) if place == 0 else {})


def fill_layers(reading: Reading, sizes: Mapping[str, int | float]) -> None:
    """Fill in the lists of layers that no key states, by the table's patterns.

    Raises:
        ConfigError: a list has another length than there are layers.
    """
    counts = {
        choice.at.partition("=")[0]: reading.dims.get(stack.over)
        for stack in reading.architecture.stacks.values()
        for slot in stack.layers
        for choice in slot
        if choice.at
    }
    known = {
        **reading.architecture.flags,
        **reading.architecture.numbers,
        **sizes,
        **reading.numbers,
        **reading.flags,
    }
    numbers = {k: v for k, v in known.items() if isinstance(v, int | float) and not isinstance(v, bool)}

    def evaluate(text: str) -> int | float:
        return shapes.evaluate(text, numbers)

    for name, rules in reading.table.patterns.items():
        count = counts.get(name)
        if not rules:
            reading.lists.setdefault(name, ())
        elif name not in reading.lists and count is not None and count <= layer_rules.MOST_ITEMS:
            words = layer_rules.by_pattern(rules, count, known, evaluate, reading.where)
            if words is not None:
                reading.lists[name] = words


def apply_head(reading: Reading, head: spec.Head, config: Mapping[str, Any]) -> None:
    """Set the flag for the model's head, and the sizes that only this head has."""
    reading.flags["head"] = head.head
    for key, axis in head.counted.items():
        entries = config.get(key)
        if isinstance(entries, Mapping) and entries:
            reading.agree(key, axis, len(entries), reading.dims.get(axis))
            reading.dims[axis] = len(entries)
    for axis, size in head.defaults.items():
        if axis not in reading.dims:
            reading.dims[axis] = size
            key = reading.key_of.get(axis, axis)
            reading.notes.append(
                f"{key} is not stated; {size} is used, the default{default_of(reading.table.whose)}"
            )
    if head.lacks:
        reading.gaps.append(Gap(f"the model is {head.lacks}", frozenset(head.affects)))


def derive_meta(reading: Reading) -> None:
    """Derive what Meta's reference code computes from the arguments: the feed-forward width and RoPE scaling."""
    multiple_of = reading.numbers.pop("multiple_of", None)
    multiplier = reading.numbers.pop("ffn_dim_multiplier", None)
    if not isinstance(multiple_of, int):
        raise ConfigError(
            f"{reading.where}: multiple_of is {shown(multiple_of)}, expected a positive integer"
        )
    if "dim" in reading.dims:
        try:
            width = dimensions.feed_forward_width(reading.dims["dim"], multiple_of, multiplier)
        except OverflowError:
            width = 0
        if not 1 <= width <= dimensions.LARGEST:
            raise ConfigError(
                f"{reading.where}: multiple_of {shown(multiple_of)} and ffn_dim_multiplier {shown(multiplier)} give a "
                f"feed-forward of width {shown(width) if width else 'zero, or beyond any number'}; expected 1 to "
                f"{dimensions.LARGEST:,}"
            )
        reading.dims["ffn_dim"] = width
    if reading.flags.pop("use_scaled_rope", False):
        reading.rope = dict(rope.META_SCALED)


def default_of(whose: str) -> str:
    """The end of a sentence about a default."""
    return f" of {whose}" if whose else ""
