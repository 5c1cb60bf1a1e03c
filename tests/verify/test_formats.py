"""`--format`: GitHub's annotations and JUnit XML."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from atlas.checkpoint.findings import Finding, note, unreadable
from atlas.errors import Refusal
from atlas.report.annotations import github, junit
from atlas.verification.result import Amount, Failed, Source, Verification
from tests.cli.conftest import run
from tests.verify.checkpoints import T, hub, save


def outcome(*findings: Finding, location: str = "folder") -> Verification:
    return Verification(
        model="m", source=Source("folder", location, None), convention="hf", verdict="differs", tensors=Amount(1, 1),
        parameters=Amount(1, 1), bytes=Amount(1, 1), components=(), findings=findings, ignored={}, files=(), deep=False,
        requests=0, bytes_read=0, seconds=0.5,
    )  # fmt: skip


def test_a_github_annotation_is_escaped_as_github_does() -> None:
    """actions/toolkit, packages/core/src/command.ts: escapeData % \\r \\n, escapeProperty also : and ,"""
    finding = Finding(code="shape", file="a,b:c%.safetensors", message="50% of\r\nit: a, b\n::error::no")
    [line] = github([outcome(finding, location="f:1")])
    assert line == (
        "::error file=f%3A1/a%2Cb%3Ac%25.safetensors,title=atlas verify%3A shape in f%3A1"
        "::50%25 of%0D%0Ait: a, b%0A::error::no"
    )


def test_severities_and_repositories() -> None:
    warning = Finding(code="zero", severity="warning", message="w", exit_code=0)
    found = [*github([outcome(warning, note(code="stray", message="n"))])]
    assert [line.split(" ")[0] for line in found] == ["::warning", "::notice"]
    failed = Failed(
        Source("hub", "tiny/gone", None, "tiny/gone"), Refusal("not_found", "no such repository", "look")
    )
    assert [*github([failed])] == [
        "::error title=atlas verify%3A not_found in tiny/gone::no such repository; look"
    ]
    assert [*github([outcome(warning)], only_errors=True)] == []


@pytest.mark.parametrize(
    "name", ["\x00\x1b[2J\n]]>", "<a & 'b' \"c\">", "\udcff\ud800\ufffe\uffff", "é𝄞\u2028"]
)
def test_junit_is_valid_whatever_a_name_is(name: str) -> None:
    found = [
        Finding(code="shape", tensor=name, file=name, message=name),
        unreadable(code="header", message=name),
    ]
    document = junit([outcome(*found, note(code="stray", message=name), location=name)])
    suite = ET.fromstring(document.encode("utf-8"))[0]
    assert {key: suite.get(key) for key in ("tests", "failures", "errors")} == {
        "tests": "4",
        "failures": "1",
        "errors": "1",
    }
    texts = [each.get("message") or each.text for each in suite.iter() if each.tag in ("failure", "error")]
    assert len(set(texts)) == 1


def test_as_a_command(tmp_path: Path) -> None:
    folder = save(tmp_path / "c", hub() | {"odd\nname": T((1,))})
    ran = run("verify", str(folder), "--format", "github")
    assert ran.code == 1
    lines = ran.out.splitlines()
    assert lines[0].startswith("differs: ")
    assert [line.partition(" ")[0] for line in lines[1:]] == ["::error"]
    ran = run("verify", str(folder), "--format", "junit")
    assert ran.code == 1
    assert len(ET.fromstring(ran.out.encode()).findall(".//failure")) == 1
    good = run("verify", str(save(tmp_path / "good", hub())), "--format", "junit")
    [case] = ET.fromstring(good.out.encode()).findall(".//testcase")
    assert (good.code, case.get("name"), len(case)) == (0, "verified (headers)", 0)


@pytest.mark.parametrize("options", [("--format", "xml"), ("--format", "junit", "--json")])
def test_what_is_no_format(options: tuple[str, ...], tmp_path: Path) -> None:
    ran = run("verify", str(save(tmp_path / "c", hub())), *options)
    assert ran.code == 2
