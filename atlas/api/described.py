"""What `atlas.load` gives: one model, with the same answers that the commands print."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from atlas.analyse import counts, diff, flops, memory, trace
from atlas.graph.binding import bind
from atlas.graph.graph import Graph
from atlas.pages import page
from atlas.pages.content import Page
from atlas.resolution.resolve import from_path, resolve
from atlas.spec.library import Library


@dataclass(frozen=True)
class Described:
    """A model bound to its architecture.

    Attributes:
        graph: the forward pass as bound steps, for anything the methods do not say.
    """

    graph: Graph
    library: Library

    @property
    def id(self) -> str:
        return self.graph.model.id

    def params(self, by: str = "component", devices: int | None = None) -> counts.Counts:
        """Exact parameter counts, as `atlas params`."""
        return counts.count(self.graph, self.library, by=by, devices=devices)

    def trace(
        self, batch: int | None = None, positions: int | None = None, past: int | None = None
    ) -> trace.Trace:
        """Every step of the forward pass, as `atlas trace`."""
        return trace.trace(self.graph, trace.Pass(batch, positions, past))

    def memory(self, *, batch: int = 1, context: int | None = None, fit: Sequence[int] = ()) -> memory.Memory:
        """Bytes a model needs, as `atlas memory`."""
        return memory.memory(self.graph, batch=batch, context=context, fit=fit)

    def flops(self, *, batch: int = 1, positions: int = 1, past: int = 0) -> flops.Flops:
        """FLOPs of a pass, as `atlas flops`."""
        return flops.flops(self.graph, batch=batch, positions=positions, past=past)

    def explain(self, node: str | None = None) -> Page:
        """The page of the model, a component or an activation, as `atlas explain`."""
        return page(self.graph, self.library, node)

    def diff(self, other: Described) -> diff.Diff:
        """What differs from another model, as `atlas diff`."""
        return diff.diff(self.graph, other.graph)


def load(model: str | os.PathLike[str], specs: Sequence[str | os.PathLike[str]] = ()) -> Described:
    library = Library(*map(Path, specs))
    if isinstance(model, str):
        return Described(bind(resolve(model, library), library), library)
    # A path object is a path: never the catalogue's id of the same spelling, never a Hub id.
    return Described(bind(from_path(Path(model).expanduser(), library), library), library)
