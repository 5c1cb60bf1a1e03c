"""The findings of a check: one finding for each cause, with its code, severity and exit status.

    error    2   the weights, their index or their configuration cannot be read
    error    1   it can be read, and something in it is wrong
    warning  0   worth a look; an error where the check is strict
    note     0   unusual, and right

A message is one sentence with an address; after a semicolon follows what to try.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypeVar

CODES = (
    "pointer", "adapter", "header", "config", "index", "missing", "unexpected", "shape", "tied", "duplicate", "dtype",
    "truncated", "trailing", "offsets", "nonfinite", "hash", "zero", "loader", "quantisation", "release", "buffer", "redundant", "stray", "apart",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One cause of one or many differences.

    Attributes:
        tensor: the tensor, or the first of several.
        file: the file's name in its folder or repository.
        expected, found: a count, a shape, or text; None where the message is enough. For `nonfinite`, `found` is the place of
            the first value.
        count: the number of tensors it covers; of files for faults of whole files, of values for
            `nonfinite`.
    """

    code: str
    severity: Literal["error", "warning", "note"] = "error"
    tensor: str | None = None
    file: str | None = None
    expected: int | str | tuple[int, ...] | None = None
    found: int | str | tuple[int, ...] | None = None
    count: int = 1
    message: str
    exit_code: Literal[0, 1, 2] = 1


unreadable = partial(Finding, exit_code=2)
warning = partial(Finding, severity="warning", exit_code=0)
note = partial(Finding, severity="note", exit_code=0)


def judged(
    findings: Sequence[Finding], *, ignore: Collection[str] = (), strict: bool = False
) -> tuple[tuple[Finding, ...], dict[str, int]]:
    """The findings that are not ignored, most severe first, and the number of ignored ones by code.

    Findings about unreadable files are never ignored: nothing else is known of such files.
    """
    kept = [finding for finding in findings if finding.code not in ignore or finding.exit_code == 2]
    left_out = Counter(
        finding.code for finding in findings if finding.code in ignore and finding.exit_code != 2
    )
    if strict:
        kept = [
            replace(finding, severity="error", exit_code=1) if finding.severity == "warning" else finding
            for finding in kept
        ]
    order = ("error", "warning", "note")
    kept.sort(key=lambda finding: (-finding.exit_code, order.index(finding.severity)))
    return tuple(map(_shortened, kept)), dict(left_out)


LONGEST_WORD, LONGEST_MESSAGE, MOST_DIMS = 1_000, 4_000, 64
"""Limits on the text of a finding; a name may be as long as its header."""


def _shortened(finding: Finding) -> Finding:
    """A finding whose long texts are shortened, with their length stated."""
    return replace(
        finding,
        tensor=_cut(finding.tensor, LONGEST_WORD),
        file=_cut(finding.file, LONGEST_WORD),
        expected=_cut(finding.expected, LONGEST_WORD),
        found=_cut(finding.found, LONGEST_WORD),
        message=_cut(finding.message, LONGEST_MESSAGE),
    )


Cut = TypeVar("Cut", str, str | None, int | str | tuple[int, ...] | None)


def _cut(value: Cut, most: int) -> Cut:
    if isinstance(value, str) and len(value) > most:
        return f"{value[: most // 2]} … {value[-most // 4 :]} ({len(value):,} characters)"
    if isinstance(value, tuple) and len(value) > MOST_DIMS:
        first = ", ".join(map(str, value[:MOST_DIMS]))
        return f"[{first} and {len(value) - MOST_DIMS:,} more dimensions]"
    return value


def said(message: str, hint: str) -> str:
    """A message and a hint as one sentence."""
    return f"{message}; {hint}" if hint else message


def listing(names: Sequence[str], most: int = 3) -> str:
    """`a, b, c and 5 more`; long names are shortened."""
    names = [
        name if len(name) <= LONGEST_WORD else _cut(name, LONGEST_WORD) for name in names[: most + 1]
    ] + [*names[most + 1 :]]
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most:,} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
