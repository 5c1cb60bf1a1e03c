"""Fuzzing cited sources: for any file, any published JSON and any git clone an answer, a reason or an `AtlasError`, in time.

A clone's configuration, its `.git` and its object store are mutated with what git would run, fetch or wait for; a file that
every command in them would make must never be there. ATLAS_FUZZ_EXAMPLES sets how many are drawn.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlas.errors import AtlasError, SourceError
from atlas.evidence import check as evidence
from atlas.evidence import git_clone as clones
from atlas.evidence.sources import Text
from tests.bounds import Choices, bounded, fuzz
from tests.test_sources import CONTENT, git

PIECES = (
    b"\n", b"\r", b"\r\n", b"\0", b"\x1b[2J", b"\xe2\x80\xa8", b"\xed\xa0\x80", b"\xff", b"\x85", b"\x0c", b"a", "é".encode(), b" ",
)  # fmt: skip
JSON_PIECES = (
    b"{", b"}", b"[", b"]", b":", b",", b'"a"', b'"metadata"', b'"\\ud800"', b'"\\u0000"', b"1", b"-", b"1e999", b"NaN", b"null",
    b"true", b"9" * 5000, b"[" * 3000, b'{"a":' * 3000, b"\xef\xbb\xbf", b"\xff", b" ",
)  # fmt: skip
spans = st.lists(st.tuples(st.integers(-1, 12), st.integers(-1, 12) | st.just(10**18)).map(list), max_size=4)


@pytest.mark.parametrize("times", [1, 100_000])
def test_any_lines_of_any_text(times: int) -> None:
    @fuzz(300 if times == 1 else 10)
    @given(st.lists(st.sampled_from(PIECES), max_size=20), spans)
    def run(pieces: list[bytes], ranges: list[list[int]]) -> None:
        content = b"".join(pieces) * times
        with bounded():
            text = Text(content, "x")
            # As the description says it: each line is ended by one newline, which the last may lack.
            lines = content.removesuffix(b"\n").split(b"\n") if content else []
            assert text.line_count == len(lines)
            problem = evidence.compare(text, ranges, "0" * 64)
            assert problem is not None
            numbers = [n for first, last in ranges for n in range(first, min(last, len(lines) + 1) + 1)]
            there = all(1 <= first <= last <= len(lines) for first, last in ranges)
            if there and len(set(numbers)) == len(numbers):
                said = b"".join(lines[n - 1] + b"\n" for n in numbers)
                assert evidence.compare(text, ranges, hashlib.sha256(said).hexdigest()) is None
            else:
                assert "cited" in problem

    run()


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "metadata", "b"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@fuzz(300)
@given(values | st.lists(st.sampled_from(JSON_PIECES), max_size=12).map(b"".join), values)
def test_any_published_json(content: Any, recorded: Any) -> None:
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    with bounded():
        found = evidence._values(Text(raw, "x"), {"a": recorded})
    if found is not None:
        assert len(found) < 400
        found.encode()
    else:
        assert isinstance(json.loads(raw), dict)


RUNS = "touch {ran}"
SECTIONS = (
    "[core]\nrepositoryformatversion = 1\n", "[core]\nrepositoryformatversion = 99\n", "[core]\nbare = maybe\n",
    "[extensions]\npartialClone = origin\n", '[remote "origin"]\npromisor = true\nurl = ext::sh -c touch% {ran}\n',
    '[remote "origin"]\nurl = ssh://-oProxyCommand=touch%20{ran}/x\n', '[protocol "ext"]\nallow = always\n',
    "[core]\nfsmonitor = " + RUNS + "\n", "[core]\nsshCommand = " + RUNS + "\n", "[core]\npager = " + RUNS + "\n",
    "[core]\ngitProxy = " + RUNS + "\n", "[core]\nhooksPath = {hooks}\n", "[core]\nalternateRefsCommand = " + RUNS + "\n",
    "[core]\nworktree = /\n", "[core]\naskPass = " + RUNS + "\n", "[credential]\nhelper = !" + RUNS + "\n",
    "[include]\npath = {fifo}\n", "[include]\npath = config\n", '[includeIf "gitdir:/"]\npath = {fifo}\n',
    '[diff "x"]\ntextconv = ' + RUNS + "\n", '[filter "x"]\nsmudge = ' + RUNS + "\nprocess = " + RUNS + "\n",
    "[alias]\ncat-file = !" + RUNS + "\n", "[gpg]\nprogram = " + RUNS + "\n", "[uploadpack]\npackObjectsHook = " + RUNS + "\n",
    "[extensions]\nobjectFormat = sha256\n", "[extensions]\nworktreeConfig = true\n", "[[[", "\0", "[a]\nb = \"" + "x" * 9000,
)  # fmt: skip


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("original")
    git(folder, "init", "-q")
    (folder / "x.py").write_bytes(CONTENT)
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "x")
    return folder, git(folder, "rev-parse", "HEAD")


def harmed(choices: Choices, clone: Path, places: dict[str, str]) -> None:
    """Changes something in a clone that git would look at."""
    inside = clone / ".git"
    files = sorted(path for path in inside.rglob("*") if path.is_file() and "hooks" not in path.parts)
    match choices.of(
        [
            "config",
            "config",
            "config",
            "alternates",
            "bytes",
            "bytes",
            "fifo",
            "link",
            "git file",
            "odd",
            "attributes",
        ]
    ):
        case "config":
            text = "".join(choices.of(SECTIONS) for _ in range(choices.of([1, 2, 4, 6])))
            for word, place in places.items():
                text = text.replace(f"{{{word}}}", place)
            (inside / choices.of(["config", "config", "config.worktree"])).write_text(text)
        case "alternates":
            text = choices.of(
                ["/\n", "../objects\n", ".\n", places["fifo"] + "\n", '"\n', "/dev\n", "ext::x\n", "a" * 9000]
            )
            (inside / "objects" / "info").mkdir(exist_ok=True)
            (inside / "objects" / "info" / "alternates").write_text(text)
        case "bytes":
            file = choices.of(files)
            data = bytearray(file.read_bytes()) or bytearray(b"\0")
            data[choices.below(len(data))] ^= 1 << choices.below(8)
            file.chmod(0o644)
            file.write_bytes(data[: choices.below(len(data)) if choices.below(2) else None])
        case "fifo":
            file = choices.of([path for path in files if "objects" not in path.parts])
            file.unlink()
            os.mkfifo(file)
        case "link":
            file = choices.of(files)
            file.unlink()
            file.symlink_to(choices.of([file, "/nowhere", "/dev/null", "/etc", inside]))
        case "git file":
            shutil.rmtree(inside)
            inside.write_bytes(
                choices.of(
                    [
                        b"gitdir: .",
                        b"gitdir: .git",
                        b"gitdir: /",
                        b"\0",
                        b"",
                        b"gitdir: ext::x",
                        b"\xff" * 9000,
                    ]
                )
            )
        case "odd":
            name = choices.of(
                ["commondir", "shallow", "packed-refs", "info/grafts", "objects/info/commit-graph", "gitdir"]
            )
            (inside / name).parent.mkdir(exist_ok=True)
            (inside / name).write_bytes(
                choices.of([b"..\n", b"/\n", b"\0", b"a" * 5000, b"\xff", b"", b".\n"])
            )
        case _:
            (clone / ".gitattributes").write_text("* diff=x filter=x\n")


def test_any_clone(original: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    source, revision = original
    monkeypatch.setattr(clones, "MOST_SECONDS", 5)

    @fuzz(40)
    @given(st.binary(min_size=40, max_size=40))
    def run(raw: bytes) -> None:
        choices = Choices(raw)
        with tempfile.TemporaryDirectory() as work:
            clone, ran, fifo = Path(work) / "clone", Path(work) / "ran", Path(work) / "fifo"
            shutil.copytree(source, clone)
            os.mkfifo(fifo)
            hooks = Path(work) / "hooks"
            hooks.mkdir()
            for hook in ("post-checkout", "reference-transaction", "post-index-change"):
                (hooks / hook).write_text(f"#!/bin/sh\ntouch {ran}\n")
                (hooks / hook).chmod(0o755)
            for _ in range(choices.of([1, 2, 3])):
                if (clone / ".git").is_dir():
                    harmed(choices, clone, {"ran": str(ran), "fifo": str(fifo), "hooks": str(hooks)})
            asked = choices.of([revision, revision, revision[:8], "b" * 40])
            found = None
            with bounded():
                try:
                    found = clones.file_at(clone, asked, "x.py", most=1000)
                except AtlasError as error:
                    assert isinstance(error, SourceError)  # noqa: PT017
            assert not ran.exists()
            if asked == "b" * 40:
                assert found is None

    run()
