"""Reads the dimensions of a configuration and checks that none is missing and that all divide as needed.

A key states the size of an axis (`hidden_size` is `dim`), or a formula of the architecture or of `axes.toml` derives it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from atlas import spec
from atlas.errors import ConfigError, SpecError, shown
from atlas.grammar import shapes

LARGEST = 2**48
"""Largest dimension. It is far beyond any model, and a product of several remains readable."""


def read(key: str, value: Any, where: str) -> int:
    """The size that a key states.

    Raises:
        ConfigError: it is not a positive integer, or exceeds `LARGEST`.
    """
    if key == "vocab_size" and value == -1:
        raise ConfigError(
            f"{where}: vocab_size is -1, which some of Meta's files have in place of the tokenizer's size",
            hint="set it to the number of the tokenizer's tokens, or give a catalogue id (`atlas models` lists them)",
        )
    if not isinstance(value, int) or isinstance(value, bool):
        raise ConfigError(f"{where}: {key} is {shown(value)}, expected a positive integer")
    if not 1 <= value <= LARGEST:
        bounds = "a positive integer" if value < 1 else f"at most {LARGEST:,}"
        raise ConfigError(f"{where}: {key} is {shown(value)}, expected {bounds}")
    return value


def check(
    dims: Mapping[str, int],
    architecture: spec.Architecture,
    axes: Mapping[str, spec.Axis],
    key_of: Mapping[str, str],
    where: str,
    optional: Collection[str] = (),
) -> tuple[dict[str, int | float], dict[str, str]]:
    """Every dimension, stated or derived; and for those that cannot be derived exactly, why.

    Args:
        dims: the stated dimensions.
        axes: the vocabulary.
        key_of: our name -> the key that states it.
        optional: axes that need not be stated.

    Raises:
        ConfigError: one is missing, or larger than the one that bounds it. The message uses the configuration's keys.
    """
    for name, key in key_of.items():
        if name in axes and name not in dims and name not in architecture.derived and name not in optional:
            raise ConfigError(
                f"{where}: {key} is missing: {axes[name].meaning}",
                hint="only key/value heads and the head width have defaults",
            )
    for name, axis in axes.items():
        if axis.at_most and name in dims and axis.at_most in dims and dims[name] > dims[axis.at_most]:
            key, other = key_of.get(name, name), key_of.get(axis.at_most, axis.at_most)
            raise ConfigError(
                f"{where}: {key} is {dims[name]:,}, expected at most {other}, {dims[axis.at_most]:,}"
            )
    sizes: dict[str, int | float] = dict(dims)
    underived: dict[str, str] = {}
    sized = {name: axis.size for name, axis in axes.items() if axis.size}
    for name, text in {**architecture.derived, **sized}.items():
        if name in sizes:
            continue
        try:
            sizes[name] = shapes.evaluate(text, sizes)
        except shapes.MissingName:
            continue
        except SpecError:
            underived[name] = (
                f"{where}: {_spelled(text, sizes, key_of)} leaves a remainder: {axes[name].meaning} must be a whole number"
                + (f"; state {key_of[name]} if it is another" if name in key_of else "")
            )
    return sizes, underived


def agree(
    config: Mapping[str, Any],
    agrees: Mapping[str, str],
    sizes: Mapping[str, int | float],
    key_of: Mapping[str, str],
    where: str,
) -> None:
    """Check keys that repeat what other keys state.

    Args:
        agrees: key -> the formula that its value must equal.

    Raises:
        ConfigError: a value differs.
    """
    for key, text in agrees.items():
        if config.get(key) is not None:
            stated, other = read(key, config[key], where), shapes.evaluate(text, sizes)
            if stated != other:
                raise ConfigError(
                    f"{where}: {key} is {stated:,}, but {_spelled(text, sizes, key_of)} gives {other:,}"
                )


def feed_forward_width(dim: int, multiple_of: int, multiplier: float | None) -> int:
    """The feed-forward width as Meta's reference code computes it (cite: feed-forward-width).

    It is two thirds of 4 · dim, times the multiplier, rounded up to a multiple. The code truncates two double products with
    `int()`, and the result depends on that: for dim 64 and multiplier 1.4 the product is 237.99999999999997, so 237, where
    exact arithmetic gives 238.

    Args:
        dim: width of the residual stream.
        multiple_of: what the width is rounded up to a multiple of.
        multiplier: `ffn_dim_multiplier`, or None.

    Raises:
        OverflowError: the sizes exceed a double.
    """
    hidden = int(2 * (4 * dim) / 3)
    if multiplier is not None:
        hidden = int(multiplier * hidden)
    return multiple_of * ((hidden + multiple_of - 1) // multiple_of)


def _spelled(text: str, sizes: Mapping[str, int | float], key_of: Mapping[str, str]) -> str:
    """A formula with the configuration's keys and their values."""
    return re.sub(r"[a-z_]\w*", lambda m: f"{key_of.get(m[0], m[0])} ({int(sizes.get(m[0], 0)):,})", text)
