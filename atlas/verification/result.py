"""The result of `atlas verify`: what its JSON holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from atlas.checkpoint.findings import Finding
from atlas.errors import Refusal
from atlas.tables import Tabular

Verdict = Literal["verified", "differs", "unreadable", "not described"]
Checked = Literal["headers", "data", "hashes", "release"]


@dataclass(frozen=True, slots=True)
class Source:
    """Where the checkpoint is.

    Attributes:
        kind: `folder`, `cache` (a snapshot in the local Hub cache) or `hub`.
        location: the path, or the repository's id if its files are on the Hub.
        revision: the commit, if it is known.
        repo: the Hub id that was given; None if a path was given.
    """

    kind: str
    location: str
    revision: str | None
    repo: str | None = None

    def __str__(self) -> str:
        """`meta-llama/Llama-3.1-8B @ 0e9e39f249a1`, with ` in the local cache` for a cached copy."""
        cache = " in the local cache" if self.repo and self.kind == "cache" else ""
        return (self.repo or self.location) + (f" @ {self.revision[:12]}" if self.revision else "") + cache


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount as declared and as found; `expected` is None if the model is unknown."""

    expected: int | None
    found: int


@dataclass(frozen=True, slots=True)
class Component:
    """The parameters of one component, summed over its layers."""

    id: str
    expected: int
    found: int
    difference: int


@dataclass(frozen=True, slots=True)
class DtypeTotal:
    """What is stored in one dtype."""

    dtype: str
    tensors: int
    elements: int
    bytes: int


@dataclass(frozen=True, slots=True)
class File:
    """A weight file of the model.

    Attributes:
        bytes: its size.
        sha256: computed if the data was read, else as recorded; None if neither is known.
        sha256_from: where it comes from: "the data", "the Hub" (answered in this run), or "the name of its blob in the local Hub
            cache".
        checked_against: the record that the file's hash was compared with: a download's metadata, a checklist next to the
            weights, or the blob's name; None if the data was not read or no hash is recorded.
    """

    name: str
    bytes: int | None
    sha256: str | None
    checked_against: str | None
    sha256_from: str | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Verification(Tabular):
    """A checkpoint compared with a description: names, shapes and dtypes. It never claims that the values are right.

    Attributes:
        model: the description's id; None if the model is unknown.
        convention: the naming convention of the tensors; None if they follow none that is described.
        verdict: `unreadable` if something could not be read; `not described` if only the description is missing; else `differs` if
            there is an error; else `verified`.
        checked: what the verdict is about: `headers`; `data`; `hashes`, if every weight file's was compared with a recorded one;
            `release`, if that was required.
        tensors, bytes: what is stored, without tensors that a note reports as not counted: old buffers, a copy of a tied matrix.
        parameters: distinct ones; a tied matrix counts once, wherever it is stored.
        components: they sum to the parameters; undeclared tensors come last, as `unexpected`.
        ignored: code -> how many findings `--ignore` left out; they do not affect the verdict.
        files: the weight files that were checked.
        deep: whether the data was read too.
        indexed: whether an index lists the tensors.
        dtypes: all that is stored, by dtype, whether it is declared or not.
        requests: sent over the network.
    """

    rows_fields: ClassVar[tuple[str, ...]] = ("findings", "components")

    model: str | None
    source: Source
    convention: str | None
    verdict: Verdict
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
    checked: tuple[Checked, ...] = ()  # receipts of earlier versions do not have it
    indexed: bool = False
    dtypes: tuple[DtypeTotal, ...] = ()

    @property
    def exit_code(self) -> int:
        return max((finding.exit_code for finding in self.findings), default=0)

    @property
    def title(self) -> str:
        """The verdict with what it is about: `verified (headers, data, hashes)`."""
        if self.verdict == "verified":
            return f"verified ({', '.join(self.checked)})" if self.checked else "verified"
        if self.verdict != "not described":
            return self.verdict
        if sum(finding.severity == "error" for finding in self.findings) > 1:
            return "not described"
        sound = "the file is" if len(self.files) == 1 else "files are"
        return f"not described: {'files and index are' if self.indexed else sound} sound"


@dataclass(frozen=True, slots=True)
class Failed:
    """One of several checkpoints, which could not be checked at all."""

    source: Source
    error: Refusal
    exit_code: int = 2


@dataclass(frozen=True, slots=True, repr=False)
class Batch(Tabular):
    """The outcomes of several checkpoints, in the order in which they were given."""

    rows_fields: ClassVar[tuple[str, ...]] = ("checkpoints",)

    checkpoints: tuple[Verification | Failed, ...]

    @property
    def exit_code(self) -> int:
        return max((each.exit_code for each in self.checkpoints), default=0)


Printed = Verification | Batch
"""The one document that `atlas verify --json` prints."""


def amounts(codes: Mapping[str, int]) -> str:
    """`2 missing, 1 dtype`."""
    return ", ".join(f"{count:,} {code}" for code, count in codes.items())
