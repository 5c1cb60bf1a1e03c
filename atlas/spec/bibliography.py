"""`bibliography/*.toml`: the cited sources, their revisions, and the lines that support each claim.

A source's location is passed to git and put into URLs, and description files may come from strangers. Each field therefore
has a strict form that excludes command-line options, other hosts and paths outside the repository.
"""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationInfo
from pydantic_core import PydanticCustomError

from atlas.spec.table import Spec

_REPO = re.compile(r"(?![-.])[A-Za-z0-9_.-]{1,100}/(?!-|\.{1,2}$)[A-Za-z0-9_.-]{1,100}")
_REVISIONS = {"git": (40, 40), "pypi": (7, 40), "hub": (7, 40)}
"""Fewest and most hex digits. An abbreviated hash names a commit if it is unique."""


def _repo(value: str) -> str:
    if not _REPO.fullmatch(value):
        raise PydanticCustomError("repo", "expected owner/name")
    return value


def _revision(value: str, info: ValidationInfo) -> str:
    least, most = _REVISIONS.get(info.data.get("kind", ""), (7, 40))
    if value and not re.fullmatch(rf"[0-9a-f]{{{least},{most}}}", value):
        digits = "40" if least == most else f"{least} to {most}"
        raise PydanticCustomError("revision", f"expected a commit's hash, {digits} hex digits")
    return value


def _path(value: str) -> str:
    plain = value.isprintable() and not re.search(r"[\\:]", value) and len(value) <= 1000
    if not plain or not all(
        0 < len(part.encode()) <= 255 and part not in (".", "..") for part in value.split("/")
    ):
        raise PydanticCustomError("path", "expected a relative path, with / between its parts and without ..")
    return value


Path = Annotated[str, AfterValidator(_path)]


class Source(Spec):
    """Something that can be cited: a file at a fixed revision."""

    kind: Literal["git", "pypi", "hub"]
    role: Literal["reference", "catalogue", "dependency", "implementation", "checkpoint"]
    title: str
    repo: Annotated[str, AfterValidator(_repo)]
    revision: Annotated[str, AfterValidator(_revision)] = ""
    """A commit's hash: 40 hex digits, or 7 and more for kinds other than git. Without one, only a file given with `--source`
    is read."""
    path: Path
    package: Annotated[str, Field(pattern=r"^([A-Za-z0-9]([A-Za-z0-9._-]{0,98}[A-Za-z0-9])?)?$")] = ""
    version: Annotated[str, Field(pattern=r"^[0-9A-Za-z.!+_-]{0,64}$")] = ""
    package_path: Path | Literal[""] = ""
    """The path of the same file in the Python package, if the source is also a package."""
    lines: Annotated[int, Field(ge=0)] = 0
    file_sha256: Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")] = ""
    describes: list[str] = []
    """The families whose own code or catalogue this is. For these families the source is direct evidence."""


class Cite(Spec):
    claim: str
    at: list[str]
    """Every place that supports it: `llama3 266-269,298-302 sha256:…`, or only the source for a published configuration."""
    values: dict[str, Any] = {}
    """The values in a published configuration."""


class Bibliography(Spec):
    sources: dict[str, Source] = {}
    cites: dict[str, Cite] = {}
