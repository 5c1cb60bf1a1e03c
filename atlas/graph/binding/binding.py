"""An architecture with the model it is bound to, and checks of the axes and dtypes that it names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from atlas import dtypes, spec
from atlas.errors import ConfigError, SpecError
from atlas.resolution.model import Model
from atlas.spec.library import Library


@dataclass(frozen=True, slots=True)
class Binding:
    """The model, its architecture, and the library that both are from."""

    model: Model
    architecture: spec.Architecture
    library: Library
    underived: dict[str, str] = field(default_factory=dict)
    """Axis -> why its size could not be derived, for axes that nothing may need."""

    def fault(self, where: str, what: str) -> SpecError:
        """An error that names a place in the architecture and the problem there."""
        return SpecError(f"architecture {self.architecture.id}: {where}: {what}")

    def known_axes(self, names: Iterable[str], where: str) -> None:
        """Refuse axes that are not in axes.toml.

        Raises:
            SpecError: naming all of them.
        """
        if unknown := [axis for axis in names if axis not in self.library.axes]:
            raise self.fault(where, f"{', '.join(unknown)}: no such axis in axes.toml")

    def known_renames(self, axes: Mapping[str, str], where: str) -> None:
        """Check both sides of the axis renames of a node or stack."""
        self.known_axes((*axes, *axes.values()), f"{where}: axes")

    def meaning(self, axis: str) -> str:
        """An axis and its meaning, for a message."""
        known = self.library.axes.get(axis)
        return f"{axis} ({known.meaning})" if known else axis

    def needed(self, axis: str, dims: Mapping[str, int]) -> int:
        """The size of an axis that the graph requires.

        Raises:
            ConfigError: it is neither stated nor derived.
        """
        if axis not in dims:
            why = self.model.underived.get(axis) or self.underived.get(axis)
            raise ConfigError(why or f"{self.model.id}: {self.meaning(axis)} is not given")
        return dims[axis]


def known_dtypes(where: str, *codes: str) -> None:
    """Refuse anything but a dtype code or A, the activations' dtype.

    Raises:
        SpecError: naming the first unknown code.
    """
    for code in codes:
        if code != "A" and code not in dtypes.BITS:
            raise SpecError(f"{where}: {code!r} is neither A nor a dtype; there are {', '.join(dtypes.BITS)}")
