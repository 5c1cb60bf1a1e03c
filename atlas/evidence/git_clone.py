"""Files of a git clone at a revision, read without trusting the clone.

A clone's own configuration can make git run commands: a missing object is fetched through a helper that the clone names,
and so with file system monitors, text converters, hooks and pagers. So git never sees the clone. It runs in an empty
repository of our own, with no configuration but ours, and only reads objects from the clone's object store. What is asked
for goes to its standard input, where nothing is an option. No new dependency is needed for this, and unlike a reader
within this process git can be stopped: it is given a time, and an amount of memory.
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
"""For git to find and write out one file."""

_MOST_MEMORY = 2 * 2**30
_MOST_LINK_BYTES = 4096
_REVISION = re.compile(r"[0-9a-f]{4,40}")
_FOUND = re.compile(rb"([0-9a-f]{40}) blob ([0-9]{1,18})\n")

# The clone's packs are mapped in small pieces, so that the limit on memory suffices for the largest repository.
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


def file_at(folder: Path, revision: str, path: str, *, most: int) -> bytes | None:
    """A file of the clone that a folder is, or is in; None where there is no clone, or it lacks that file.

    Args:
        revision: a commit's hash, or a beginning of it that is unique.
        path: in the repository, relative to its root.
        most: bytes; a longer file is refused before it is read.

    Raises:
        SourceError: the file is too long, or git takes too long.
    """
    if not _REVISION.fullmatch(revision) or not path.isprintable():
        return None
    git = shutil.which("git")
    objects = _objects(folder)
    if git is None or objects is None:
        return None
    with tempfile.TemporaryDirectory(prefix="atlas-git-") as own:
        _empty_repository(Path(own))
        asked = f"{revision}:{path}\n".encode("utf-8", "surrogateescape")
        found = _FOUND.fullmatch(_git(git, "--batch-check", asked, Path(own), objects, 1024))
        if found is None:
            return None
        name, size = found[1], int(found[2])
        if size > most:
            raise SourceError(
                f"{folder}: {path} at {revision[:12]} has {size:,} bytes; at most {most:,} are read of a source"
            )
        head = len(found[0])
        answer = _git(git, "--batch", name + b"\n", Path(own), objects, head + size + 1)
    complete = answer[:head] == found[0] and len(answer) == head + size + 1
    return answer[head : head + size] if complete else None


def _objects(folder: Path) -> Path | None:
    """The object store of the clone: of a working tree, of a bare repository, of a worktree or a submodule."""
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
    """The folder that a one-line file names, relative to the file."""
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


def _git(git: str, option: str, asked: bytes, own: Path, objects: Path, most: int) -> bytes:
    """What `git cat-file` answers, no more than `most` bytes of it."""
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
    if "SYSTEMROOT" in os.environ:  # Windows starts no program without it
        environment["SYSTEMROOT"] = os.environ["SYSTEMROOT"]
    (own / "asked").write_bytes(asked)
    with (
        (own / "asked").open("rb") as questions,
        subprocess.Popen(
            [git, "--no-pager", "cat-file", option],
            stdin=questions,
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
        raise SourceError(f"{objects.parent}: git has not read the file within {MOST_SECONDS} seconds")
    return answer


def _limits() -> Callable[[], None] | None:
    """What bounds git's memory, where the system can: a small packed object may unpack to one of any size."""
    if sys.platform == "win32":
        return None
    import resource

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))

    return limit
