"""The size of every axis: stated by the model, or derived by the architecture or axes.toml."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from atlas.errors import ConfigError, SpecError
from atlas.grammar import shapes
from atlas.graph.binding.binding import Binding
from atlas.resolution.dimensions import LARGEST


def sizes(binding: Binding) -> dict[str, int]:
    """The model's dims and all derived sizes, each an exact positive integer.

    A size that the architecture derives and that is not a positive integer for this model goes into `binding.underived`: it
    is an error only if something needs it.

    Raises:
        ConfigError: a stated size is not positive, a formula gives no finite number, or a product axis is not the product of
            its parts.
        SpecError: an axis is not in axes.toml.
    """
    model, architecture, library = binding.model, binding.architecture, binding.library
    binding.known_axes(model.dims, f"dims of {model.id}")
    binding.known_axes(architecture.derived, "derived")
    found = dict(model.dims)
    derived = {axis: text for axis, text in architecture.derived.items() if axis not in found}
    derived |= {name: axis.size for name, axis in library.axes.items() if axis.size and name not in found}
    numbers = {**architecture.numbers, **model.numbers}
    for axis, text in derived.items():
        try:
            found[axis] = _whole(text, {**numbers, **found})
        except shapes.MissingName:
            continue  # not an axis of this architecture, or one of the pass (keys)
        except shapes.Remainder as error:
            binding.underived[axis] = _not_derived(axis, error, binding)
        except SpecError as error:
            raise ConfigError(_not_derived(axis, error, binding)) from None
    for axis, count in list(found.items()):
        if 1 <= count <= LARGEST:
            continue
        bounds = "a positive integer" if count < 1 else f"at most {LARGEST:,}"
        message = f"{model.id}: {binding.meaning(axis)} is {count:,}, expected {bounds}"
        if axis not in architecture.derived or axis in model.dims:
            raise ConfigError(message)
        binding.underived[axis] = message
        del found[axis]
    for axis, parts in library.parts.items():
        if axis in found and all(part in found for part in parts):
            product = shapes.size(parts, found)
            if product != found[axis]:
                raise ConfigError(
                    f"{model.id}: {binding.meaning(axis)} is {found[axis]:,}, but {' × '.join(parts)} is "
                    f"{product:,}"
                )
    return found


def _whole(text: str, values: Mapping[str, shapes.Number]) -> int:
    """A formula's value as an integer.

    Raises:
        Remainder: it is not one.
    """
    value = shapes.evaluate(text, values)
    if int(value) != value:
        raise shapes.Remainder(f"{text[:80]!r} gives {value:,.6g}, expected an integer")
    return int(value)


def _not_derived(axis: str, error: SpecError, binding: Binding) -> str:
    return f"{binding.model.id}: {binding.meaning(axis)} cannot be derived: {error.message}"


def reads(axes: Iterable[str], binding: Binding) -> set[str]:
    """The axes, and all that their sizes are derived from."""
    architecture, library = binding.architecture, binding.library
    found: set[str] = set()
    todo = list(axes)
    while todo:
        axis = todo.pop()
        if axis in found:
            continue
        found.add(axis)
        todo += library.parts.get(axis, ())
        known = library.axes.get(axis)
        texts = [architecture.derived.get(axis, ""), (known.size or "") if known else ""]
        todo += [word for text in texts for word in shapes.names(text)]
    return found
