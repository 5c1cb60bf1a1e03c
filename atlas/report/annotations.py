"""Findings of `atlas verify` for continuous integration: GitHub's workflow commands, and JUnit XML."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence

from atlas.checkpoint.findings import Finding
from atlas.text import printable
from atlas.verification.result import Failed, Verification

_LEVELS = {"error": "error", "warning": "warning", "note": "notice"}
_ESCAPES = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY_ESCAPES = {**_ESCAPES, ":": "%3A", ",": "%2C"}

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that an XML 1.0 document cannot have, not even escaped."""


def github(outcomes: Sequence[Verification | Failed], only_errors: bool = False) -> Iterator[str]:
    """A workflow command for each finding: `::error file=…,title=…::message`.

    A finding's file is named relative to where the command runs; a repository's files are not in the workspace, so none is named.
    """
    for outcome in outcomes:
        if isinstance(outcome, Failed):
            yield _command("error", None, f"{outcome.error.code} in {outcome.source}", _refusal(outcome))
            continue
        source = outcome.source
        for finding in outcome.findings:
            if only_errors and finding.severity != "error":
                continue
            file = source.location if source.repo is None else None
            if file is not None and finding.file is not None and not file.endswith(finding.file):
                file = f"{file}/{finding.file}"
            yield _command(
                _LEVELS[finding.severity], file, f"{finding.code} in {source}", _text(finding.message)
            )


def _command(level: str, file: str | None, title: str, message: str) -> str:
    properties = {"file": file, "title": f"atlas verify: {title}"}
    listed = ",".join(
        f"{key}={_escaped(value, _PROPERTY_ESCAPES)}" for key, value in properties.items() if value
    )
    return f"::{level} {listed}::{_escaped(message, _ESCAPES)}"


def _escaped(text: str, escapes: dict[str, str]) -> str:
    return "".join(escapes.get(character, character) for character in printable(text, keep="\r\n\t"))


def junit(outcomes: Sequence[Verification | Failed]) -> str:
    """A JUnit document: a suite for each checkpoint, a test case for its verdict, and one for each finding.

    An error is a `failure`, or an `error` if something cannot be read; warnings and notes pass, with their message as output.
    """
    root = ET.Element("testsuites", name="atlas verify")
    for outcome in outcomes:
        suite = ET.SubElement(root, "testsuite", name=_text(str(outcome.source)))
        if isinstance(outcome, Failed):
            case = _case(suite, outcome.source.location, "unreadable")
            ET.SubElement(case, "error", message=_text(_refusal(outcome)), type=outcome.error.code)
        else:
            _case(suite, outcome.source.location, outcome.title)
            suite.set("time", f"{outcome.seconds:.3f}")
            for finding in outcome.findings:
                _add(suite, outcome.source.location, finding)
        for attribute, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error")):
            suite.set(attribute, str(len(suite.findall(f".//{tag}"))))
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode")


def _add(suite: ET.Element, location: str, finding: Finding) -> None:
    place = ": ".join(filter(None, [finding.code, finding.tensor or finding.file]))
    case = _case(suite, location, place)
    if finding.severity == "error":
        tag = "error" if finding.exit_code == 2 else "failure"
        ET.SubElement(case, tag, message=_text(finding.message), type=finding.code)
    else:
        ET.SubElement(case, "system-out").text = _text(f"{finding.severity}: {finding.message}")


def _case(suite: ET.Element, location: str, name: str) -> ET.Element:
    return ET.SubElement(suite, "testcase", classname=_text(location), name=_text(name))


def _refusal(outcome: Failed) -> str:
    return f"{outcome.error.message}; {outcome.error.hint}" if outcome.error.hint else outcome.error.message


def _text(text: str) -> str:
    """Text that XML and a terminal can have: other characters are written as escapes."""
    return _NOT_XML.sub(
        lambda found: found[0].encode("unicode_escape").decode(), printable(text, keep="\r\n\t")
    )
