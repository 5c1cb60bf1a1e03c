"""Cited sources from strangers: nothing a clone, a description, a host or a file says is run, fetched, or read without a bound."""

from __future__ import annotations

import contextlib
import hashlib
import os
import socketserver
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from atlas.errors import SourceError, SpecError, UsageError
from atlas.evidence import check as evidence
from atlas.evidence import git_clone as clones
from atlas.evidence import sources, web
from atlas.evidence.sources import Reader, Text, locations
from atlas.spec.library import Library

BY = {
    name: value
    for who in ("AUTHOR", "COMMITTER")
    for name, value in ((f"GIT_{who}_NAME", "a"), (f"GIT_{who}_EMAIL", "a@b"))
}
CONTENT = b"first\nsecond\n"


def git(folder: Path, *arguments: str) -> str:
    quiet = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        env={**os.environ, **BY, **quiet},
        check=True,
        capture_output=True,
    )
    return done.stdout.decode().strip()


@pytest.fixture
def clone(tmp_path: Path) -> tuple[Path, str]:
    """A clone whose file has another content by now, and the commit that has `CONTENT`."""
    folder = tmp_path / "clone"
    (folder / "a").mkdir(parents=True)
    git(folder, "init", "-q")
    (folder / "a" / "x.py").write_bytes(CONTENT)
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "x")
    revision = git(folder, "rev-parse", "HEAD")
    (folder / "a" / "x.py").write_bytes(b"changed\n")
    git(folder, "commit", "-qam", "y")
    return folder, revision


def described(tmp_path: Path, **fields: str) -> Library:
    """A library with a source `e` and a cite of its first line."""
    table = {
        "kind": "git",
        "role": "reference",
        "title": "x",
        "repo": "a/b",
        "revision": "a" * 40,
        "path": "x",
    }
    lines = "".join(f"{key} = {value!r}\n" for key, value in {**table, **fields}.items())
    sha = hashlib.sha256(b"first\n").hexdigest()
    folder = tmp_path / "specs" / "bibliography"
    folder.mkdir(parents=True, exist_ok=True)
    text = f'[sources.e]\n{lines}[cites.e]\nclaim = "x"\nat = ["e 1-1 sha256:{sha}"]\n'
    (folder / "e.toml").write_text(text, encoding="utf-8")
    return Library(tmp_path / "specs")


# ---------------------------------------------------------------- clones


def test_a_file_is_read_at_its_revision_and_not_as_it_is_checked_out(clone: tuple[Path, str]) -> None:
    folder, revision = clone
    assert clones.file_at(folder, revision, "a/x.py", most=100) == CONTENT
    assert clones.file_at(folder, revision[:12], "a/x.py", most=100) == CONTENT
    assert clones.file_at(folder / "a", revision, "a/x.py", most=100) == CONTENT
    git(folder, "gc", "-q")  # packed
    assert clones.file_at(folder, revision, "a/x.py", most=100) == CONTENT
    for other in ("a/y.py", "a", "x.py"):
        assert clones.file_at(folder, revision, other, most=100) is None


def test_bare_repositories_worktrees_and_shared_objects_are_read_too(
    clone: tuple[Path, str], tmp_path: Path
) -> None:
    folder, revision = clone
    git(folder, "worktree", "add", "-q", str(tmp_path / "worktree"), "HEAD")
    git(tmp_path, "clone", "-q", "--bare", str(folder), str(tmp_path / "bare"))
    git(tmp_path, "clone", "-q", "--shared", str(folder), str(tmp_path / "shared"))
    for place in ("worktree", "bare", "shared"):
        assert clones.file_at(tmp_path / place, revision, "a/x.py", most=100) == CONTENT, place


HOSTILE = {
    "lazy fetch": '[extensions]\npartialClone = origin\n[remote "origin"]\nurl = ext::sh -c touch% {ran}\npromisor = true\n'
    '[protocol "ext"]\nallow = always\n',
    "ssh": '[extensions]\npartialClone = origin\n[remote "origin"]\nurl = ssh://h/x\npromisor = true\n'
    "[core]\nsshCommand = touch {ran};\n",
    "file system monitor": "[core]\nfsmonitor = touch {ran}; true\n",
    "pager and editor": "[core]\npager = touch {ran}\neditor = touch {ran}\n[pager]\ncat-file = touch {ran}\n",
    "alias": "[alias]\ncat-file = !touch {ran}\nshow = !touch {ran}\n",
    "included": "[include]\npath = {included}\n",
    "text converter and filter": '[diff "x"]\ntextconv = touch {ran};\n[filter "x"]\nsmudge = touch {ran}\nprocess = touch {ran}\n',
    "not a configuration": "[[[\n",
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("missing", [False, True])
def test_nothing_that_a_clone_says_is_run(
    clone: tuple[Path, str], tmp_path: Path, kind: str, missing: bool
) -> None:
    folder, revision = clone
    ran, included = tmp_path / "ran", tmp_path / "included"
    included.write_text(f"[core]\nfsmonitor = touch {ran}; true\npager = touch {ran}\n")
    (folder / ".gitattributes").write_text("* diff=x filter=x\n")
    (folder / ".git" / "info").mkdir(exist_ok=True)
    (folder / ".git" / "info" / "attributes").write_text("* diff=x filter=x\n")
    for hook in ("post-checkout", "post-index-change", "reference-transaction"):
        (folder / ".git" / "hooks").mkdir(exist_ok=True)
        (folder / ".git" / "hooks" / hook).write_text(f"#!/bin/sh\ntouch {ran}\n")
        (folder / ".git" / "hooks" / hook).chmod(0o755)
    head = "[core]\nrepositoryformatversion = 1\n" if kind != "not a configuration" else ""
    (folder / ".git" / "config").write_text(head + HOSTILE[kind].format(ran=ran, included=included))
    (folder / "a" / "x.py").unlink()
    asked = "b" * 40 if missing else revision
    library = described(tmp_path, revision=asked, path="a/x.py")
    text = Reader(library, {"e": folder}).read("e")
    assert (text.content if isinstance(text, Text) else None) == (None if missing else CONTENT)
    assert not ran.exists()


def test_the_environment_does_not_reach_git(
    clone: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, revision = clone
    monkeypatch.setenv("GIT_DIR", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.fsmonitor")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", f"touch {tmp_path / 'ran'}")
    monkeypatch.setenv("GIT_TRACE", str(tmp_path / "ran"))
    assert clones.file_at(folder, revision, "a/x.py", most=100) == CONTENT
    assert not (tmp_path / "ran").exists()


def test_a_replaced_object_is_not_what_the_revision_names(clone: tuple[Path, str]) -> None:
    folder, revision = clone
    git(
        folder,
        "replace",
        git(folder, "rev-parse", f"{revision}:a/x.py"),
        git(folder, "rev-parse", "HEAD:a/x.py"),
    )
    assert clones.file_at(folder, revision, "a/x.py", most=100) == CONTENT


def test_a_long_file_is_refused_by_its_size(clone: tuple[Path, str]) -> None:
    folder, revision = clone
    assert clones.file_at(folder, revision, "a/x.py", most=len(CONTENT)) == CONTENT
    with pytest.raises(SourceError, match="has 13 bytes; the limit for a source is 12"):
        clones.file_at(folder, revision, "a/x.py", most=12)


def test_an_object_that_is_a_fifo_ends(
    clone: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, revision = clone
    object_ = folder / ".git" / "objects" / revision[:2] / revision[2:]
    object_.unlink()
    os.mkfifo(object_)
    monkeypatch.setattr(clones, "MOST_SECONDS", 0.3)
    reader = Reader(described(tmp_path, revision=revision, path="a/x.py"), {"e": folder})
    assert "git did not read the file" in str(reader.read("e"))


def test_a_clone_that_took_too_long_is_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def file_at(folder: Path, revision: str, path: str, *, most: int) -> bytes | None:
        asked.append(path)
        raise clones.GitTimeoutError("git did not read the file")

    monkeypatch.setattr(sources, "file_at", file_at)
    reader = Reader(described(tmp_path), {"e": tmp_path, "llama3": tmp_path})
    assert reader.read("e") == reader.read("llama3") == "git did not read the file"
    assert asked == ["x"]


@pytest.mark.parametrize(
    "link", [b"gitdir: /nowhere\n", b"", b"\0", b"gitdir: " + b"a" * 9000, b"gitdir: .git\n", b"\xff"]
)
def test_a_git_file_that_leads_nowhere(tmp_path: Path, link: bytes) -> None:
    (tmp_path / ".git").write_bytes(link)
    library = described(tmp_path, path="a/x.py")
    assert isinstance(Reader(library, {"e": tmp_path}).read("e"), str)


def test_without_git_the_files_of_the_folder_are_read(
    clone: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, revision = clone
    monkeypatch.setenv("PATH", str(tmp_path))
    text = Reader(described(tmp_path, revision=revision, path="a/x.py"), {"e": folder}).read("e")
    assert isinstance(text, Text)
    assert text.content == b"changed\n"


# ---------------------------------------------------------------- what a description says of a source


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("revision", "--output=x"),
        ("revision", "main"),
        ("revision", "HEAD"),
        ("revision", "a" * 39),
        ("revision", "a" * 40 + "\n"),
        ("revision", "A" * 40),
        ("revision", "a" * 38 + "/.."),
        ("path", "/etc/passwd"),
        ("path", "../x"),
        ("path", "a/../../x"),
        ("path", "a//x"),
        ("path", "./x"),
        ("path", ""),
        ("path", "a\\x"),
        ("path", "c:x"),
        ("path", "a\nb"),
        ("path", "a\x00b"),
        ("path", "a\x1b[2J"),
        ("path", "a" * 300),
        ("path", "a/" * 600 + "a"),
        ("repo", "a"),
        ("repo", "a/b/c"),
        ("repo", "../b"),
        ("repo", "a/.."),
        ("repo", "-a/b"),
        ("repo", "@evil.example/b"),
        ("repo", "a/b?x"),
        ("repo", "a/b#x"),
        ("repo", "a/b\n"),
        ("package", "../x"),
        ("package", "-x"),
        ("package_path", "../x"),
        ("package_path", "/x"),
        ("version", "1 x"),
        ("file_sha256", "x"),
    ],
)
def test_each_field_has_a_strict_form(tmp_path: Path, field: str, value: str) -> None:
    library = described(tmp_path)
    assert library.source("e", "test").path == "x"
    file = tmp_path / "specs" / "bibliography" / "e.toml"
    lines = [line for line in file.read_text().splitlines() if not line.startswith(f"{field} = ")]
    written = "".join(f"\\u{ord(c):04x}" for c in value)
    lines.insert(1, f'{field} = "{written}"')
    file.write_text("\n".join(lines))
    with pytest.raises(SpecError, match=rf"e\.toml: sources\.e\.{field}"):
        Library(tmp_path / "specs").source("e", "test")


@pytest.mark.parametrize(("kind", "revision"), [("hub", "cb1fcda"), ("pypi", "0e0b8c519242"), ("git", "")])
def test_kinds_that_may_be_abbreviated(tmp_path: Path, kind: str, revision: str) -> None:
    assert described(tmp_path, kind=kind, revision=revision).source("e", "test").revision == revision


def test_without_a_revision_nothing_is_fetched(tmp_path: Path) -> None:
    reader = Reader(described(tmp_path, revision=""), {}, web=True, github="http://127.0.0.1:9")
    assert "no revision" in str(reader.read("e"))


# ---------------------------------------------------------------- files


def test_a_source_larger_than_any_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "x").open("wb") as file:
        file.truncate(2**40)
    library = described(tmp_path)
    for place in (tmp_path, tmp_path / "x"):
        assert "larger than 16,777,216 bytes" in str(Reader(library, {"e": place}).read("e"))


@pytest.mark.parametrize("kind", ["fifo", "loop", "device"])
def test_what_is_no_regular_file_is_not_read(tmp_path: Path, kind: str) -> None:
    if kind == "fifo":
        os.mkfifo(tmp_path / "x")
    else:
        (tmp_path / "x").symlink_to("/dev/zero" if kind == "device" else tmp_path / "x")
    library = described(tmp_path)
    for place in (tmp_path, tmp_path / "x"):
        assert isinstance(Reader(library, {"e": place}).read("e"), str)


@pytest.mark.parametrize(
    "path", ["a" * 300, "a\0b", "\ud800", "~nobody-of-this-name/x", "loop", "absent", "x/" * 3000]
)
def test_a_path_that_the_system_does_not_take(tmp_path: Path, path: str) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    word = path if path.startswith("~") else f"{tmp_path}/{path}"
    with pytest.raises(UsageError, match="--source llama3"):
        locations([f"llama3={word}"], Library())


def test_a_folder_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scandir = os.scandir

    def refuse(path: Any) -> Any:
        if Path(path) == tmp_path:
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)  # as root nothing is forbidden
    with pytest.raises(UsageError, match=r"--source llama3: .*Permission denied"):
        locations([f"llama3={tmp_path}"], Library())


def test_what_is_kept_in_memory_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_MOST_KEPT_BYTES", 20)
    library = Library()
    names = list(library.sources)[:4]
    (tmp_path / "x").write_bytes(CONTENT)  # 13 bytes: two are more than 20
    reader = Reader(library, dict.fromkeys(names, tmp_path / "x"))
    for name in names:
        reader.read(name)
        assert len(reader._read) == 1


# ---------------------------------------------------------------- lines


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"\n", [b""]),
        (b"a", [b"a"]),
        (b"a\n", [b"a"]),
        (b"a\n\n", [b"a", b""]),
        (b"a\r\nb\0c\xe2\x80\xa8d\x85\x0c\n\xff", [b"a\r", b"b\0c\xe2\x80\xa8d\x85\x0c", b"\xff"]),
    ],
)
def test_newlines_alone_end_lines(content: bytes, lines: list[bytes]) -> None:
    text = Text(content, "x")
    assert text.line_count == len(lines)
    assert [text.lines([[n, n]])[0] for n in range(1, len(lines) + 1)] == lines
    assert text.lines([[1, len(lines)]]) == lines


def test_lines_are_compared_as_bytes() -> None:
    """Two bytes that are not UTF-8 are two lines, although both would be shown as one replacement character."""
    sha = hashlib.sha256(b"\xff\n").hexdigest()
    assert evidence.compare(Text(b"\xff", "x"), [[1, 1]], sha) is None
    assert "sha256" in str(evidence.compare(Text(b"\xfe", "x"), [[1, 1]], sha))


@pytest.mark.parametrize(
    "ranges", [[[1, 3]], [[0, 1]], [[2, 1]], [[1, 10**18]], [[1, 2], [2, 2]], [[2, 2], [1, 2]]]
)
def test_lines_that_are_not_there_or_are_cited_twice(ranges: list[list[int]]) -> None:
    assert "cited" in str(evidence.compare(Text(CONTENT, "x"), ranges, "0" * 64))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"metadata": [1]}', "its metadata is [1]"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b'{"a": ' + b"9" * 5000 + b"}", "thousands of digits"),
        (b'{"a": 1, "a": 2}', 'duplicate key "a"'),
        (b"\xff", "byte 0 is not UTF-8"),
        (b"a: 1", "not JSON"),
        (b"[]", "not a JSON object"),
        (b'{"a": "\\ud800"}', "recorded 1"),
        (b'{"a": ' + b"[" * 900 + b"]" * 900 + b"}", ""),
        (b'{"a": 1e999}', "recorded 1"),
    ],
)
def test_published_json_that_is_not_what_it_should_be(content: bytes, words: str) -> None:
    found = evidence._values(Text(content, "x"), {"a": 1})
    assert found is not None
    assert words in found
    assert len(found) < 300
    found.encode()


# ---------------------------------------------------------------- the web


@pytest.fixture
def host() -> Iterator[Callable[[Callable[[socketserver.StreamRequestHandler], None]], str]]:
    """A host of one function, which is given each connection once its request has been read."""
    servers = []

    def serve(answer: Callable[[socketserver.StreamRequestHandler], None]) -> str:
        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                self.request_head = b""
                while (line := self.rfile.readline()) not in (b"\r\n", b""):
                    self.request_head += line
                with contextlib.suppress(OSError):  # the client has gone
                    answer(self)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            allow_reuse_address = True

        server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}"

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


OK = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"


def endless(write: Callable[[bytes], object], piece: bytes, pause: float = 0.0) -> None:
    end = time.monotonic() + 5
    while time.monotonic() < end:
        write(piece)
        time.sleep(pause)


def test_an_endless_body_is_cut_at_the_bound(host: Callable[..., str]) -> None:
    def answer(to: socketserver.StreamRequestHandler) -> None:
        to.wfile.write(OK + b"\r\n")
        endless(to.wfile.write, b"x" * 65536)

    found = web.fetch(host(answer), most=1000, seconds=5)
    assert isinstance(found, web.Unread)
    assert "larger than 1,000 bytes" in found.reason


@pytest.mark.parametrize("where", ["head", "body", "redirect"])
def test_a_host_that_drips_ends(host: Callable[..., str], where: str) -> None:
    def answer(to: socketserver.StreamRequestHandler) -> None:
        if where == "redirect":
            to.wfile.write(b"HTTP/1.1 302 Found\r\nLocation: /x\r\n\r\n")
        else:
            to.wfile.write(OK + (b"\r\n" if where == "body" else b"X: "))
        endless(to.wfile.write, b"x", 0.02)

    start = time.monotonic()
    found = web.fetch(host(answer), most=1000, seconds=0.5)
    assert isinstance(found, web.Unread)
    assert time.monotonic() - start < 4


def test_a_body_that_is_cut_off_is_not_the_file(host: Callable[..., str]) -> None:
    url = host(lambda to: to.wfile.write(OK + b"Content-Length: 10\r\n\r\nabc"))
    assert web.fetch(url, most=1000, seconds=5) == web.Unread(
        "the connection was closed before the end of the file"
    )


@pytest.mark.parametrize(
    "location", ["file:///etc/passwd", "ftp://127.0.0.1/x", "data:,x", "//[", "http://:99999/", "\x1b"]
)
def test_a_redirect_to_what_is_no_web_page(host: Callable[..., str], location: str) -> None:
    url = host(lambda to: to.wfile.write(f"HTTP/1.1 302 Found\r\nLocation: {location}\r\n\r\n".encode()))
    found = web.fetch(url, most=1000, seconds=5)
    assert isinstance(found, web.Unread)
    assert found.reason.isprintable()


def test_a_password_goes_to_its_host_and_to_no_other(host: Callable[..., str]) -> None:
    seen: list[bytes] = []

    def second(to: socketserver.StreamRequestHandler) -> None:
        seen.append(to.request_head)  # type: ignore[attr-defined]
        to.wfile.write(OK + b"\r\nfile")

    elsewhere = host(second)

    def first(to: socketserver.StreamRequestHandler) -> None:
        seen.append(to.request_head)  # type: ignore[attr-defined]
        to.wfile.write(f"HTTP/1.1 302 Found\r\nLocation: {elsewhere}/y\r\n\r\n".encode())

    url = host(first).replace("://", "://user:s3cret@")
    assert web.fetch(f"{url}/x", most=1000, seconds=5) == b"file"
    # "dXNlcjpzM2NyZXQ=" is base64 of user:s3cret.
    assert [b"Basic dXNlcjpzM2NyZXQ=" in head for head in seen] == [True, False]


@pytest.mark.parametrize(
    "base",
    [
        "http://u:s3cret@127.0.0.1:9",
        "http://u:s3/cret@h",
        "u:s3cret@h",
        "file:///s3cret",
        "http://127.0.0.1:9/?s3cret",
    ],
)
def test_no_secret_of_an_address_is_told(tmp_path: Path, base: str) -> None:
    reader = Reader(described(tmp_path, kind="hub"), {}, web=True, hub=base)
    found = str(reader.read("e"))
    assert "could not be reached" in found
    assert "cret" not in found.replace("file:///s3cret", "")


def test_what_a_host_says_in_place_of_http_is_not_shown(host: Callable[..., str], tmp_path: Path) -> None:
    base = host(lambda to: to.wfile.write(b"\x1b]0;pwned\x07\r\n\r\n"))
    found = str(Reader(described(tmp_path, kind="hub"), {}, web=True, hub=base).read("e"))
    assert found.isprintable()
    assert "pwned" not in found
