"""The dimensions a configuration states: read exactly, complete, and dividing as what follows from them needs.

An axis is stated by a key (`hidden_size` gives `dim`), or follows from others by a formula of its architecture or of the
vocabulary.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from atlas import spec
from atlas.errors import ConfigError, SpecError, shown
from atlas.grammar import shapes

LARGEST = 2**48
"""Of a dimension: far beyond any model, and small enough that every product of a few stays readable."""


def read(key: str, value: Any, where: str) -> int:
    """The size that a key states.

    Raises:
        ConfigError: it is no positive integer, or beyond `LARGEST`.
    """
    if key == "vocab_size" and value == -1:
        raise ConfigError(
            f"{where}: vocab_size is -1: Meta's Llama 2 files leave it to the tokenizer",
            hint="put the tokenizer's size there (Llama 2: 32000), or name the model, for example llama2-7b",
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
) -> dict[str, int | float]:
    """Every dimension, stated or following from others, which must divide exactly.

    Args:
        dims: those that are stated.
        axes: the vocabulary.
        key_of: our name -> the key that states it.

    Raises:
        ConfigError: one is missing, or a division leaves a remainder; in the configuration's own words.
    """
    for name, key in key_of.items():
        if name in axes and name not in dims and name not in architecture.derived:
            raise ConfigError(
                f"{where}: {key} is missing: {axes[name].meaning}",
                hint="every dimension has to be stated; absent heads and head widths have defaults",
            )
    sizes: dict[str, int | float] = dict(dims)
    sized = {name: axis.size for name, axis in axes.items() if axis.size}
    for name, text in {**architecture.derived, **sized}.items():
        if name in sizes:
            continue
        try:
            sizes[name] = shapes.evaluate(text, sizes)
        except shapes.MissingName:
            continue
        except SpecError:
            raise ConfigError(
                f"{where}: {_spelled(text, sizes, key_of)} leaves a remainder: {axes[name].meaning} has to be a whole number",
                hint="give head_dim where heads are not dim / heads wide" if name == "head_dim" else "",
            ) from None
    return sizes


def agree(
    config: Mapping[str, Any],
    agrees: Mapping[str, str],
    sizes: Mapping[str, int | float],
    key_of: Mapping[str, str],
    where: str,
) -> None:
    """Keys that say again what others have said.

    Args:
        agrees: key -> the formula that it must be equal to.

    Raises:
        ConfigError: one says something else.
    """
    for key, text in agrees.items():
        if config.get(key) is not None:
            stated, other = read(key, config[key], where), shapes.evaluate(text, sizes)
            if stated != other:
                raise ConfigError(
                    f"{where}: {key} is {stated:,}, but {_spelled(text, sizes, key_of)} gives {other:,}"
                )


def _spelled(text: str, sizes: Mapping[str, int | float], key_of: Mapping[str, str]) -> str:
    """A formula in the configuration's own words, with numbers."""
    return re.sub(r"[a-z_]\w*", lambda m: f"{key_of.get(m[0], m[0])} ({int(sizes.get(m[0], 0)):,})", text)
