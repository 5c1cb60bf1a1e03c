"""What `atlas verify` says of one checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from atlas.checkpoint.findings import Finding
from atlas.errors import Refusal
from atlas.tables import Tabular


@dataclass(frozen=True, slots=True)
class Source:
    """Where the checkpoint lies.

    Attributes:
        kind: `folder`, `cache` (a snapshot in the local Hub cache) or `hub`.
        location: the path, or the repository's id where its files lie on the Hub.
        revision: the commit, where the files have one.
        repo: the Hub id that was asked for; None where a path was.
    """

    kind: str
    location: str
    revision: str | None
    repo: str | None = None

    def __str__(self) -> str:
        """`meta-llama/Llama-3.1-8B @ 0e9e39f249a1`, and whether that is the local cache's copy."""
        cache = " in the local cache" if self.repo and self.kind == "cache" else ""
        return (self.repo or self.location) + (f" @ {self.revision[:12]}" if self.revision else "") + cache


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
class File:
    """A weight file of the model.

    Attributes:
        bytes: its size.
        sha256: as computed where the data was read, else as it is recorded; None where neither is known.
        sha256_from: where that comes from: "the data", "the Hub" in this very run, or "the name of its blob in the local Hub
            cache".
        checked_against: where the hash stands that the data was held against: a download's metadata or a checklist beside
            the weights, the blob's name; None where the data was not read, or there is none.
    """

    name: str
    bytes: int | None
    sha256: str | None
    checked_against: str | None
    sha256_from: str | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Verification(Tabular):
    """A checkpoint held against a description: names, shapes and dtypes. It says nothing of the values.

    Attributes:
        model: the description's id; None where it is not known.
        convention: whose names the tensors have; None where they have nobody's.
        verdict: `unreadable` where something could not be read, else whether anything differs.
        tensors, bytes: those stored, without what a note sets aside: old buffers, a copy of a tied matrix.
        parameters: those of them that are distinct: a tied matrix counts once, wherever it is stored.
        components: they sum to the parameters; tensors that no component has stand last, as `unexpected`.
        ignored: how many findings of which code were to be left out, and are no part of the verdict.
        files: those the verdict is about.
        deep: whether the data was read too.
        requests: over the network.
    """

    rows_fields: ClassVar[tuple[str, ...]] = ("findings", "components")

    model: str | None
    source: Source
    convention: str | None
    verdict: Literal["verified", "differs", "unreadable"]
    tensors: Amount
    parameters: Amount
    bytes: Amount
    components: tuple[Component, ...]
    findings: tuple[Finding, ...]
    ignored: Mapping[str, int]
    files: tuple[File, ...]
    deep: bool
    requests: int
    bytes_read: int
    seconds: float

    @property
    def exit_code(self) -> int:
        return max((finding.exit_code for finding in self.findings), default=0)


@dataclass(frozen=True, slots=True)
class Failed:
    """A checkpoint of several that could not be checked at all."""

    source: Source
    error: Refusal
    exit_code: int = 2


@dataclass(frozen=True, slots=True, repr=False)
class Several(Tabular):
    """What `atlas verify` says of several checkpoints, in the order they were asked for."""

    rows_fields: ClassVar[tuple[str, ...]] = ("checkpoints",)

    checkpoints: tuple[Verification | Failed, ...]

    @property
    def exit_code(self) -> int:
        return max((each.exit_code for each in self.checkpoints), default=0)


Printed = Verification | Several
"""One document of `atlas verify --json`."""


def amounts(codes: Mapping[str, int]) -> str:
    """`2 missing, 1 dtype`."""
    return ", ".join(f"{count:,} {code}" for code, count in codes.items())
