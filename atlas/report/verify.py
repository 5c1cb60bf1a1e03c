"""The result of `atlas verify` as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from atlas.checkpoint.findings import Finding, listing
from atlas.report import console
from atlas.report.annotations import github, junit
from atlas.verification.result import Amount, Failed, Verification, amounts

MOST = 20
"""Findings of one code that are printed; further ones are only counted."""


def show(result: Verification) -> None:
    """The verdict in one line, each finding in one line, and a table of the components that differ."""
    console.line(_verdict(result))
    if result.deep and result.files:
        console.line(_data(result))
    listed = Counter[str]()
    for finding in result.findings:
        if finding.severity == "error" or not console.quiet:
            listed[finding.code] += 1
            if listed[finding.code] <= MOST:
                console.line(_line(finding))
    for code, count in listed.items():
        if count > MOST:
            console.line(f"…        {code}: {count - MOST:,} more (--json prints all)")
    rows = [
        [component.id, f"{component.expected:,}", f"{component.found:,}", f"{component.difference:+,}"]
        for component in result.components
        if component.difference
    ]
    if rows and result.tensors.found:
        console.line()
        console.out(console.table(["parameters", "expected", "found", "difference"], rows, right=[1, 2, 3]))
    if result.model is None and result.dtypes:
        stored = [
            [each.dtype, f"{each.tensors:,}", f"{each.elements:,}", f"{each.bytes:,}"]
            for each in result.dtypes
        ]
        console.line()
        console.out(console.table(["stored dtype", "tensors", "elements", "bytes"], stored, right=[1, 2, 3]))


def show_as(form: Literal["github", "junit"], outcomes: Sequence[Verification | Failed]) -> None:
    """The findings of one or several checkpoints for continuous integration; GitHub's have the verdicts in plain lines too."""
    if form == "junit":
        console.write(junit(outcomes))
        return
    for outcome in outcomes:
        line(outcome)
    for command in github(outcomes, only_errors=console.quiet):
        console.line(command)


def line(outcome: Verification | Failed) -> None:
    """One of several checkpoints, in one line: the verdict, and how many findings of which codes."""
    if isinstance(outcome, Failed):
        hint = f"; {outcome.error.hint}" if outcome.error.hint else ""
        console.line(f"unreadable: {outcome.error.message}{hint}")
        return
    codes = Counter(finding.code for finding in outcome.findings if finding.severity != "note")
    console.line(_verdict(outcome) + (f": {amounts(codes)}" if codes else ""))


def _verdict(result: Verification) -> str:
    tensors, parameters, size = result.tensors, result.parameters, result.bytes
    where = str(result.source)
    if result.model is None and not tensors.found:
        return f"{result.title}: {where}"
    counts = f"{_amount(parameters)} parameters in {_amount(tensors)} tensors, {_amount(size)} bytes"
    names = f", {result.convention} names" if result.convention else ""
    model = result.model or ""
    against = f", against {model.rpartition('/')[2] if model.endswith('.json') else model}" if model else ""
    ignoring = f", ignoring {amounts(result.ignored)}" if result.ignored else ""
    return f"{result.title}: {where}: {counts}{names}{against}{ignoring}"


def _data(result: Verification) -> str:
    """What was read, and which recorded hashes it was compared with."""
    places = listing(
        list(dict.fromkeys(file.checked_against for file in result.files if file.checked_against)), 2
    )
    count, all_files = sum(file.checked_against is not None for file in result.files), len(result.files)
    if not count:
        hashes = "no hash is recorded for any weight file"
    elif all_files == 1:
        hashes = f"the hash of the weight file compared with the one recorded in {places}"
    else:
        hashes = (
            f"the hashes of {count:,} of {all_files:,} weight files compared with those recorded in {places}"
        )
    return f"data: {result.bytes_read:,} bytes read; {hashes}"


def _amount(amount: Amount) -> str:
    """`102,720`; if another number is expected, `94,528 of 102,720` or `102,848 (expected 102,720)`."""
    if amount.expected in (None, amount.found):
        return f"{amount.found:,}"
    if amount.expected is not None and amount.found > amount.expected:
        return f"{amount.found:,} (expected {amount.expected:,})"
    return f"{amount.found:,} of {amount.expected:,}"


def _line(finding: Finding) -> str:
    return f"{finding.severity:<8} {finding.code:<12} {finding.message}"
