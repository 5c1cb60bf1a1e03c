"""The size of every axis: stated by the model, or derived by the architecture or axes.toml."""

from __future__ import annotations

from collections.abc import Mapping

from atlas.errors import ConfigError, SpecError
from atlas.grammar import shapes
from atlas.graph.binding.binding import Binding
from atlas.resolution.dimensions import LARGEST


def sizes(binding: Binding) -> dict[str, int]:
    """The model's dims and all derived sizes, each an exact positive integer.

    Raises:
        ConfigError: a division is inexact, a size is not positive, or a product axis is not the product of its parts.
        SpecError: an axis is not in axes.toml.
    """
    model, architecture, library = binding.model, binding.architecture, binding.library
    binding.known_axes(model.dims, f"dims of {model.id}")
    binding.known_axes(architecture.derived, "derived")
    found = dict(model.dims)
    derived = {axis: text for axis, text in architecture.derived.items() if axis not in found}
    derived |= {name: axis.size for name, axis in library.axes.items() if axis.size and name not in found}
    for axis, text in derived.items():
        try:
            found[axis] = int(shapes.evaluate(text, found))
        except shapes.MissingName:
            continue  # not an axis of this architecture, or one of the pass (keys)
        except SpecError as error:
            raise ConfigError(
                f"{model.id}: {binding.meaning(axis)} cannot be derived: {error.message}"
            ) from None
    for axis, count in found.items():
        if not 1 <= count <= LARGEST:
            bounds = "a positive integer" if count < 1 else f"at most {LARGEST:,}"
            raise ConfigError(f"{model.id}: {binding.meaning(axis)} is {count:,}, expected {bounds}")
    for axis, parts in library.parts.items():
        if axis in found and all(part in found for part in parts):
            product = shapes.size(parts, found)
            if product != found[axis]:
                raise ConfigError(
                    f"{model.id}: {binding.meaning(axis)} is {found[axis]:,}, but {' × '.join(parts)} is "
                    f"{product:,}"
                )
    return found


def needed(axis: str, dims: Mapping[str, int], binding: Binding) -> int:
    """The size of an axis that the graph requires.

    Raises:
        ConfigError: it is neither stated nor derived.
    """
    if axis not in dims:
        raise ConfigError(f"{binding.model.id}: {binding.meaning(axis)} is not given")
    return dims[axis]
