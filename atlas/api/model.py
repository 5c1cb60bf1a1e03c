"""What `atlas.load` returns: one model, with a method for each command."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from atlas import units
from atlas.analyse import counts, diff, flops, folding, memory, parameters, show, trace
from atlas.graph.binding import bind
from atlas.graph.graph import Graph
from atlas.pages import catalogue, page
from atlas.pages.content import Page
from atlas.resolution.resolve import from_path, resolve
from atlas.spec.folders import Folders, open_library
from atlas.spec.library import Library


@dataclass(frozen=True, repr=False)
class Model:
    """A model bound to its architecture.

    Attributes:
        graph: the forward pass as bound steps, for questions that no method answers.
        library: the descriptions it was made from.
    """

    graph: Graph
    library: Library

    def __repr__(self) -> str:
        total = parameters.total(self.graph)
        return f"<atlas model {self.id!r}: {total:,} parameters, {self.graph.model.dtype}>"

    @property
    def id(self) -> str:
        return self.graph.model.id

    def params(
        self,
        by: str = "component",
        devices: int | None = None,
        *,
        layer: int | None = None,
        names: str | None = None,
    ) -> counts.Counts:
        """Exact parameter counts, as `atlas params`.

        Args:
            by: what the rows are: `component`, `layer` or `tensor`.
            layer: only what is in this layer; totals remain those of the model.
            names: the convention whose names tables show: `hf` or `meta`.
        """
        return counts.count(self.graph, self.library, by=by, devices=devices, layer=layer, names=names)

    def show(self) -> show.ModelFacts:
        """The facts of the model on one screen, as `atlas show`."""
        return show.facts(self.graph, self.library)

    def trace(
        self,
        batch: int | None = None,
        positions: int | None = None,
        past: int | None = None,
        *,
        layer: int | None = None,
        component: str | None = None,
    ) -> trace.Trace:
        """Every step of the forward pass, as `atlas trace`. Sizes that are None stay symbols."""
        whole = trace.trace(self.graph, trace.Pass(batch, positions, past))
        return folding.select(whole, self.graph, layer, component)

    def memory(
        self,
        *,
        dtype: str | None = None,
        kv_dtype: str | None = None,
        batch: int = 1,
        context: int | None = None,
        positions: int = 1,
        devices: int = 1,
        attention: str = "fused",
        reserve: int | str = 0,
        utilization: float = 1.0,
        fit: Sequence[int | str] | int | str = (),
    ) -> memory.Memory:
        """The bytes that a model needs, as `atlas memory`.

        Args:
            dtype, kv_dtype: of the weights and of the KV cache; by default those of the configuration.
            attention: `fused`: scores are never in memory; `eager`: every step's result is.
            fit: sizes in bytes or as text (`80GB`), for which to give the longest context that fits.
            reserve: bytes of each device to leave free, or text (`2GiB`).
            utilization: the share of each device's memory that may be used.
        """
        from atlas import dtypes

        return memory.memory(
            self.graph,
            dtype=None if dtype is None else dtypes.code(dtype),
            kv_dtype=None if kv_dtype is None else dtypes.code(kv_dtype),
            batch=batch,
            context=context,
            positions=positions,
            devices=devices,
            attention=attention,
            reserve=_size(reserve, "--reserve"),
            utilization=utilization,
            fit=[_size(size) for size in ([fit] if isinstance(fit, int | str) else fit)],
        )

    def flops(
        self,
        *,
        batch: int = 1,
        positions: int = 1,
        past: int = 0,
        attention: str = "fused",
        flops: float | str | None = None,
        bandwidth: float | str | None = None,
    ) -> flops.Flops:
        """The FLOPs of a pass, as `atlas flops`.

        Args:
            flops, bandwidth: of the machine, as numbers per second or as text (`989T`, `3.35TB`).
        """
        return flops_of_a_pass(
            self.graph,
            batch=batch,
            positions=positions,
            past=past,
            attention=attention,
            flops_per_second=_rate(flops, "flops"),
            bytes_per_second=_rate(bandwidth, "bandwidth"),
        )

    def explain(self, node: str | None = None) -> Page:
        """The page of the model, or of a component or an activation, as `atlas explain`."""
        return page(self.graph, self.library, node)

    def diff(self, other: Model | str | os.PathLike[str]) -> diff.Diff:
        """What differs from another model, as `atlas diff`."""
        if not isinstance(other, Model):
            other = Model(_graph(other, self.library), self.library)
        return diff.diff(self.graph, other.graph)


flops_of_a_pass = flops.flops


def load(model: str | os.PathLike[str], specs: Folders = ()) -> Model:
    """See `atlas.load`."""
    library = open_library(specs)
    return Model(_graph(model, library), library)


def models(
    words: Sequence[str] = (),
    family: str | None = None,
    publisher: str | None = None,
    specs: Folders = (),
) -> catalogue.ModelList:
    """See `atlas.models`."""
    return catalogue.list_models(open_library(specs), words, family=family, publisher=publisher)


def _graph(model: str | os.PathLike[str], library: Library) -> Graph:
    if isinstance(model, str):
        return bind(resolve(model, library), library)
    # A path object is a path: never the catalogue's id of the same spelling, never a Hub id.
    return bind(from_path(Path(model).expanduser(), library), library)


def _size(size: int | str, what: str = "--fit") -> int:
    return units.size_bytes(size, what) if isinstance(size, str) else size


def _rate(rate: float | str | None, what: str) -> float | None:
    return units.per_second(rate, what) if isinstance(rate, str) else rate
