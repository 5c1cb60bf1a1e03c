"""Finds cited sources and reads them, wherever they are at hand.

A source is looked for where the user says (`--source llama3=PATH`: a clone, an unpacked package or the file itself), then
in an installed package of the pinned version, then, when asked, on the web at its pinned revision. Nothing is compared
here; `atlas.evidence` holds what was read against what is recorded.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from atlas import spec
from atlas.errors import UsageError
from atlas.library import Library

GITHUB = "https://raw.githubusercontent.com"
HUB = "https://huggingface.co"
MOST_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Text:
    """A source's bytes, and where they were read."""

    content: bytes
    origin: str

    @property
    def lines(self) -> list[str]:
        text = self.content.decode("utf-8", errors="replace")
        return text.removesuffix("\n").split("\n") if text else []


def locations(given: Iterable[str], library: Library) -> dict[str, Path]:
    """`ID=PATH` words -> source id -> path. `llama-models=PATH` stands for every source of that package.

    Raises:
        UsageError: not of that form, no such source, or nothing at the path.
    """
    found: dict[str, Path] = {}
    for word in given:
        name, equals, path = word.partition("=")
        if not equals or not path:
            raise UsageError(f"--source {word!r}: expected ID=PATH, such as llama3=../llama3")
        sources = [known for known in library.sources if known == name or known.startswith(f"{name}/")]
        if not sources:
            raise UsageError(
                f"--source: no source is called {name!r}", hint=f"there are {', '.join(library.sources)}"
            )
        if not Path(path).expanduser().exists():
            raise UsageError(f"--source {name}: {path}: no such file or folder")
        found |= dict.fromkeys(sources, Path(path).expanduser())
    return found


class Reader:
    """Finds sources and remembers what it read.

    Args:
        places: source id -> a clone, a folder or a file (from `locations`).
        web: whether to read from the web what is not at hand.
        github: where raw files of a git repository are served; replaced in tests.
        hub: where files of a Hub repository are; `HF_ENDPOINT` by default.
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

    def read(self, name: str) -> Text | str:
        """The source's text; or, where it is not at hand, the reason."""
        if name not in self._read:
            self._read[name] = self._find(name, self.library.source(name, "evidence"))
        return self._read[name]

    def _find(self, name: str, source: spec.Source) -> Text | str:
        if name in self.places:
            return _local(self.places[name], source)
        installed = _installed(source)
        if isinstance(installed, Text):
            return installed
        return self._fetch(source) if self.web else installed

    def _fetch(self, source: spec.Source) -> Text | str:
        """The file at its pinned revision; a host that cannot be reached is asked once."""
        base = self.bases[source.kind]
        if base in self._out_of_reach:
            return self._out_of_reach[base]
        from http.client import HTTPException
        from urllib.error import HTTPError
        from urllib.request import urlopen

        between = "resolve/" if source.kind == "hub" else ""
        url = f"{base}/{source.repo}/{between}{source.revision}/{source.path}"
        try:
            with urlopen(url, timeout=MOST_SECONDS) as reply:
                return Text(reply.read(), url)
        except HTTPError as error:
            return f"not at hand: {url} answered {error.code}"
        except (OSError, ValueError, HTTPException) as error:
            self._out_of_reach[base] = (
                f"not at hand: {base} could not be reached: {getattr(error, 'reason', error)}"
            )
            return self._out_of_reach[base]


# ---------------------------------------------------------------- where a source may be


def _local(path: Path, source: spec.Source) -> Text | str:
    if path.is_file():
        return Text(path.read_bytes(), str(path))
    if source.revision:
        shown = subprocess.run(
            ["git", "-C", str(path), "show", f"{source.revision}:{source.path}"],
            capture_output=True,
            check=False,
        )
        if shown.returncode == 0:
            return Text(shown.stdout, f"{path} at {source.revision[:12]}")
    tried = [source.path, source.package_path, source.package_path.partition("/")[2]]
    for relative in filter(None, tried):
        if (path / relative).is_file():
            return Text((path / relative).read_bytes(), str(path / relative))
    return f"{path} holds no {source.path}" + (f" at {source.revision[:12]}" if source.revision else "")


def _installed(source: spec.Source) -> Text | str:
    if not source.package:
        return "not at hand: give a clone with --source"
    from importlib import metadata

    try:
        package = metadata.distribution(source.package)
    except metadata.PackageNotFoundError:
        return f"not at hand: {source.package} {source.version} is not installed, and no --source is given"
    if package.version != source.version:
        return f"{source.package} {package.version} is installed, and {source.version} is cited"
    path = Path(str(package.locate_file(source.package_path)))
    return (
        Text(path.read_bytes(), f"{source.package} {source.version}")
        if path.is_file()
        else f"{path} is not there"
    )
