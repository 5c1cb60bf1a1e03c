"""Finds and reads cited sources.

A source is read from the path that the user gives (`--source llama3=PATH`: a clone, an unpacked package or the file), else
from an installed package of the pinned version, else, if enabled, from the web at its pinned revision.
`atlas.evidence.check` compares the content with the records.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from itertools import islice
from pathlib import Path
from urllib.parse import quote

from atlas import spec
from atlas.errors import SourceError, UsageError
from atlas.evidence import web
from atlas.evidence.git_clone import GitTimeoutError, file_at
from atlas.files import read_regular
from atlas.spec.library import Library
from atlas.text import public_url

GITHUB = "https://raw.githubusercontent.com"
HUB = "https://huggingface.co"

MOST_BYTES = 16 * 2**20
"""Largest source. The largest cited files, indexes of large checkpoints, have a few million bytes."""

MOST_SECONDS = 30
"""Time limit for one source from the web."""

MOST_SECONDS_A_HOST = 120
"""Time limit for all sources of one host. After it, the host counts as unreachable."""

_MOST_KEPT_BYTES = 4 * MOST_BYTES


@dataclass(frozen=True)
class Text:
    """The bytes of a source, and where they were read."""

    content: bytes
    origin: str

    @cached_property
    def line_count(self) -> int:
        """The number of lines. Only a newline ends a line."""
        return self.content.count(b"\n") + (not self.content.endswith(b"\n") and bool(self.content))

    def lines(self, ranges: Sequence[Sequence[int]]) -> list[bytes]:
        """The lines of these ranges in order, without newlines. The ranges must exist."""
        found: list[bytes] = []
        for first, last in ranges:
            lines = islice(BytesIO(self.content), first - 1, last)
            found += [line.removesuffix(b"\n") for line in lines]
        return found


def locations(given: Iterable[str], library: Library) -> dict[str, Path]:
    """Parse `ID=PATH` arguments into source id -> path. `llama-models=PATH` means every source of that package.

    Raises:
        UsageError: the form is wrong, or the source or the path does not exist.
    """
    found: dict[str, Path] = {}
    for word in given:
        name, equals, path = word.partition("=")
        if not equals or not path:
            raise UsageError(f"--source {word!r}: expected ID=PATH, such as llama3=../llama3")
        known = library.sources
        sources = [source for source in known if source == name or source.startswith(f"{name}/")]
        if not sources:
            raise UsageError(f"--source: unknown source {name!r}", hint=f"available: {', '.join(known)}")
        found |= dict.fromkeys(sources, _place(name, path))
    return found


def _place(name: str, path: str) -> Path:
    """The file or folder of a `--source` argument.

    Raises:
        UsageError: it does not exist or cannot be read.
    """
    try:
        place = Path(path).expanduser()
        if os.path.isdir(place):
            with os.scandir(place):
                return place
        os.stat(place)
    except FileNotFoundError:
        raise UsageError(f"--source {name}: {path}: no such file or folder") from None
    except OSError as error:
        raise UsageError(f"--source {name}: {path}: {error.strerror or error}") from None
    except (ValueError, RuntimeError):  # a null byte, a surrogate, or ~ of an unknown user
        raise UsageError(f"--source {name}: {path!r} is not a path") from None
    return place


class Reader:
    """Finds sources and caches their content.

    Args:
        places: source id -> a clone, a folder or a file (from `locations`).
        web: whether to read unavailable sources from the web.
        github: base URL for raw files of git repositories; replaced in tests.
        hub: base URL of the Hub; `HF_ENDPOINT` by default.
    """

    def __init__(
        self,
        library: Library,
        places: Mapping[str, Path],
        *,
        web: bool = False,
        github: str = GITHUB,
        hub: str | None = None,
    ) -> None:
        self.library = library
        self.places = places
        self.web = web
        self.bases = {"hub": hub or os.environ.get("HF_ENDPOINT") or HUB}
        self.bases |= dict.fromkeys(("git", "pypi"), github)
        self._read: dict[str, Text | str] = {}
        self._out_of_reach: dict[str, str] = {}
        self._seconds: dict[str, float] = {}

    def read(self, name: str) -> Text | str:
        """The source's text, or the reason it is not available."""
        if name not in self._read:
            found = self._find(name, self.library.source(name, "evidence"))
            kept = sum(len(text.content) for text in self._read.values() if isinstance(text, Text))
            if isinstance(found, Text) and kept + len(found.content) > _MOST_KEPT_BYTES:
                self._read.clear()  # evicted sources are read again when needed
            self._read[name] = found
        return self._read[name]

    def _find(self, name: str, source: spec.Source) -> Text | str:
        if name in self.places:
            return self._given(self.places[name], source)
        installed = _installed(source)
        if isinstance(installed, Text):
            return installed
        return self._fetch(source) if self.web else installed

    def _given(self, path: Path, source: spec.Source) -> Text | str:
        """Read from a clone, a folder or a file. A clone that takes too long is not tried again."""
        place = str(path)
        if place in self._out_of_reach:
            return self._out_of_reach[place]
        start = time.monotonic()
        try:
            found = _local(path, source)
        except GitTimeoutError as error:
            self._out_of_reach[place] = found = error.message
        except SourceError as error:
            found = error.message
        spent = self._seconds[place] = self._seconds.get(place, 0.0) + time.monotonic() - start
        if spent > MOST_SECONDS_A_HOST:
            self._out_of_reach[place] = f"{path} took {spent:.0f} seconds to read"
        return found

    def _fetch(self, source: spec.Source) -> Text | str:
        """Read the file at its pinned revision. An unreachable host is tried once."""
        if not source.revision:
            return "not available: its description has no revision, so it can only be read with --source"
        base = self.bases[source.kind]
        if base in self._out_of_reach:
            return self._out_of_reach[base]
        between = "resolve/" if source.kind == "hub" else ""
        url = f"{base.rstrip('/')}/{source.repo}/{between}{source.revision}/{quote(source.path)}"
        start, spent = time.monotonic(), self._seconds.get(base, 0.0)
        found = web.fetch(url, most=MOST_BYTES, seconds=min(MOST_SECONDS, MOST_SECONDS_A_HOST - spent))
        self._seconds[base] = spent + time.monotonic() - start
        if isinstance(found, bytes):
            return Text(found, public_url(url))
        if found.status is not None:
            return f"not available: {public_url(url)}: {found.reason}"
        self._out_of_reach[base] = f"not available: {public_url(base)} could not be reached: {found.reason}"
        return self._out_of_reach[base]


# ---------------------------------------------------------------- where a source may be


def _local(path: Path, source: spec.Source) -> Text | str:
    """Read a source from the path of a `--source` argument.

    Raises:
        SourceError: it exists but cannot be read, or exceeds a limit.
    """
    if not os.path.isdir(path):
        return Text(read_regular(path, most=MOST_BYTES, error=SourceError), str(path))
    if source.revision:
        content = file_at(path, source.revision, source.path, most=MOST_BYTES)
        if content is not None:
            return Text(content, f"{path} at {source.revision[:12]}")
    for relative in filter(None, [source.path, source.package_path, source.package_path.partition("/")[2]]):
        file = path / relative
        if os.path.lexists(file):
            return Text(read_regular(file, most=MOST_BYTES, error=SourceError), str(file))
    return f"{path} does not contain {source.path}" + (
        f" at {source.revision[:12]}" if source.revision else ""
    )


def _installed(source: spec.Source) -> Text | str:
    if not source.package:
        return "not available: give a clone with --source"
    from importlib import metadata

    try:
        package = metadata.distribution(source.package)
    except metadata.PackageNotFoundError:
        return f"not available: {source.package} {source.version} is not installed, and no --source is given"
    if package.version != source.version:
        return f"{source.package} {package.version} is installed, but {source.version} is cited"
    path = Path(str(package.locate_file(source.package_path)))
    try:
        content = read_regular(path, most=MOST_BYTES, error=SourceError)
    except SourceError as error:
        return error.message
    return Text(content, f"{source.package} {source.version}")
