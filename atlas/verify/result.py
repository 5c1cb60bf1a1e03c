"""What `atlas verify` says of one checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from atlas.checkpoint.findings import Finding


@dataclass(frozen=True, slots=True)
class Source:
    """Where the checkpoint lies.

    Attributes:
        kind: `folder`, `cache` (a snapshot in the local Hub cache) or `hub`.
        revision: the commit, where the files have one.
    """

    kind: str
    location: str
    revision: str | None


@dataclass(frozen=True, slots=True)
class Amount:
    """A figure as declared and as found; `expected` is None where no model is known."""

    expected: int | None
    found: int


@dataclass(frozen=True, slots=True)
class Component:
    """The parameters of one component over all of its layers."""

    id: str
    expected: int
    found: int
    difference: int


@dataclass(frozen=True, slots=True)
class Verification:
    """A checkpoint held against a description: names, shapes and dtypes. It says nothing of the values.

    Attributes:
        model: the description's id; None where it is not known.
        convention: whose names the tensors have; None where they have nobody's.
        verdict: `unreadable` where something could not be read, else whether anything differs.
        tensors, bytes: those stored, without what a note sets aside: old buffers, a copy of a tied matrix.
        parameters: those of them that are distinct: a tied matrix counts once, wherever it is stored.
        components: they sum to the parameters; tensors that no component has stand last, as `unexpected`.
        requests: over the network.
    """

    model: str | None
    source: Source
    convention: str | None
    verdict: Literal["verified", "differs", "unreadable"]
    tensors: Amount
    parameters: Amount
    bytes: Amount
    components: tuple[Component, ...]
    findings: tuple[Finding, ...]
    requests: int
    bytes_read: int
    seconds: float

    @property
    def exit_code(self) -> int:
        return max((finding.exit_code for finding in self.findings), default=0)
