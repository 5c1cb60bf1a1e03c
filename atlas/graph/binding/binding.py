"""An architecture and the model it is bound to: what every part of the graph is checked against.

A fault names the architecture and the place in it; the axes and dtypes it may name are those there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from atlas import dtypes, spec
from atlas.errors import SpecError
from atlas.resolution.model import Model
from atlas.spec.library import Library


@dataclass(frozen=True, slots=True)
class Binding:
    """What is bound to what, and the library whose words both use."""

    model: Model
    architecture: spec.Architecture
    library: Library

    def fault(self, where: str, what: str) -> SpecError:
        """The error that names a place in the architecture and what is wrong there."""
        return SpecError(f"architecture {self.architecture.id}: {where}: {what}")

    def known_axes(self, names: Iterable[str], where: str) -> None:
        """Refuse axes that are not in the vocabulary.

        Raises:
            SpecError: naming all of them.
        """
        if unknown := [axis for axis in names if axis not in self.library.axes]:
            raise self.fault(where, f"{', '.join(unknown)}: no such axis in axes.toml")

    def known_renames(self, axes: Mapping[str, str], where: str) -> None:
        """The same for axes that a node or a stack renames: what they were, and what they become."""
        self.known_axes((*axes, *axes.values()), f"{where}: axes")

    def meaning(self, axis: str) -> str:
        """An axis as a message names it."""
        known = self.library.axes.get(axis)
        return f"{axis} ({known.meaning})" if known else axis


def known_dtypes(where: str, *codes: str) -> None:
    """Refuse what is neither a dtype's code nor A, the activations' dtype.

    Raises:
        SpecError: naming the first that is none.
    """
    for code in codes:
        if code != "A" and code not in dtypes.BITS:
            raise SpecError(f"{where}: {code!r} is neither A nor a dtype; there are {', '.join(dtypes.BITS)}")
