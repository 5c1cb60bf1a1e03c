"""Reads files of a git clone at a revision without trusting the clone.

A clone's configuration can make git run commands: remote helpers for missing objects, file system monitors, text
converters, hooks and pagers. git therefore runs in an empty temporary repository with our configuration only, and reads
objects from the clone's object store. Object names are passed on standard input, so that none is parsed as an option.
The git process has a time limit and a memory limit.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from atlas.errors import SourceError
from atlas.files import read_regular

MOST_SECONDS = 20
"""Time limit for git to find and print one file."""

_MOST_MEMORY = 2 * 2**30
_MOST_LINK_BYTES = 4096
_REVISION = re.compile(r"[0-9a-f]{4,40}")
_FOUND = re.compile(rb"([0-9a-f]{40}) blob ([0-9]{1,18})\n")

# Packs are mapped in small windows, so that the memory limit suffices for large repositories.
_CONFIG = """[core]
\trepositoryformatversion = 0
\tbare = true
\tcommitGraph = false
\tmultiPackIndex = false
\tpackedGitWindowSize = 32m
\tpackedGitLimit = 256m
\tdeltaBaseCacheLimit = 64m
\thooksPath = /dev/null
\tfsmonitor = false
[protocol]
\tallow = never
"""


class GitTimeoutError(SourceError):
    """git exceeded its time limit. Another file of the same clone would take as long."""


def file_at(folder: Path, revision: str, path: str, *, most: int) -> bytes | None:
    """A file of the clone that contains the folder; None if there is no clone, or no such file in it.

    Args:
        revision: a commit's hash, or a unique prefix of it.
        path: relative to the root of the repository.
        most: limit in bytes, checked before the file is read.

    Raises:
        SourceError: the file is too large.
        GitTimeoutError: git exceeds its time limit.
    """
    if not _REVISION.fullmatch(revision) or not path.isprintable():
        return None
    git = shutil.which("git")
    objects = _objects(folder)
    if git is None or objects is None:
        return None
    with tempfile.TemporaryDirectory(prefix="atlas-git-") as own:
        _empty_repository(Path(own))
        request = f"{revision}:{path}\n".encode("utf-8", "surrogateescape")
        found = _FOUND.fullmatch(_git(git, "--batch-check", request, Path(own), objects, 1024))
        if found is None:
            return None
        name, size = found[1], int(found[2])
        if size > most:
            raise SourceError(
                f"{folder}: {path} at {revision[:12]} has {size:,} bytes; the limit for a source is {most:,}"
            )
        head = len(found[0])
        answer = _git(git, "--batch", name + b"\n", Path(own), objects, head + size + 1)
    complete = answer[:head] == found[0] and len(answer) == head + size + 1
    return answer[head : head + size] if complete else None


def _objects(folder: Path) -> Path | None:
    """The object store of a working tree, a bare repository, a worktree or a submodule."""
    start = Path(os.path.abspath(folder))
    for place in (start, *start.parents):
        git = place / ".git"
        if os.path.isfile(git):
            git = _linked(git, "gitdir:")
        elif not os.path.isdir(git):
            git = place
        if os.path.isfile(git / "commondir"):
            git = _linked(git / "commondir", "")
        if os.path.isfile(git / "HEAD") and os.path.isdir(git / "objects"):
            return git / "objects"
    return None


def _linked(file: Path, before: str) -> Path:
    """The folder named in a one-line file, relative to that file."""
    data = read_regular(file, most=_MOST_LINK_BYTES, error=SourceError)
    target = os.fsdecode(data).removeprefix(before).strip()
    if not target or "\0" in target:
        raise SourceError(f"{file}: expected a folder of a git repository")
    return file.parent / target


def _empty_repository(own: Path) -> None:
    for folder in ("objects", "refs"):
        (own / folder).mkdir()
    (own / "HEAD").write_text("ref: refs/heads/none\n", encoding="ascii")
    (own / "config").write_text(_CONFIG, encoding="ascii")


def _git(git: str, option: str, request: bytes, own: Path, objects: Path, most: int) -> bytes:
    """The output of `git cat-file`, at most `most` bytes."""
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C",
        "HOME": str(own),
        "GIT_DIR": str(own),
        "GIT_OBJECT_DIRECTORY": str(objects),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
    }
    if "SYSTEMROOT" in os.environ:  # required to start a program on Windows
        environment["SYSTEMROOT"] = os.environ["SYSTEMROOT"]
    (own / "request").write_bytes(request)
    with (
        (own / "request").open("rb") as requests,
        subprocess.Popen(
            [git, "--no-pager", "cat-file", option],
            stdin=requests,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=own,
            env=environment,
            preexec_fn=_limits(),
        ) as process,
    ):
        late = threading.Event()

        def stop() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(MOST_SECONDS, stop)
        timer.daemon = True
        timer.start()
        try:
            assert process.stdout is not None
            answer = process.stdout.read(most)
        finally:
            timer.cancel()
            process.kill()
    if late.is_set():
        raise GitTimeoutError(f"{objects.parent}: git did not read the file within {MOST_SECONDS} seconds")
    return answer


def _limits() -> Callable[[], None] | None:
    """A function that limits git's memory, if the system supports it. A small packed object may unpack to any size."""
    if sys.platform == "win32":
        return None
    import resource

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))

    return limit
