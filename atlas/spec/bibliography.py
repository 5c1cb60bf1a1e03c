"""`bibliography/*.toml`: what is cited, at which revision, and which of its lines bear out which claim.

What says where a source is goes to git and into URLs, and whoever writes a description is not whoever reads it. So each of
these fields has a strict form, in which nothing is an option, another host, or a path out of the repository.
"""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationInfo
from pydantic_core import PydanticCustomError

from atlas.spec.table import Spec

_REPO = re.compile(r"(?![-.])[A-Za-z0-9_.-]{1,100}/(?!-|\.{1,2}$)[A-Za-z0-9_.-]{1,100}")
_REVISIONS = {"git": (40, 40), "pypi": (7, 40), "hub": (7, 40)}
"""How many hex digits; an abbreviated hash names a commit as long as it is unique."""


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
    role: Literal["reference", "catalogue", "dependency", "checkpoint"]
    title: str
    repo: Annotated[str, AfterValidator(_repo)]
    revision: Annotated[str, AfterValidator(_revision)] = ""
    """A commit's hash: 40 hex digits, of which kinds other than git may give 7 or more. Without one, only a file that the
    user hands over is read."""
    path: Path
    package: Annotated[str, Field(pattern=r"^([A-Za-z0-9]([A-Za-z0-9._-]{0,98}[A-Za-z0-9])?)?$")] = ""
    version: Annotated[str, Field(pattern=r"^[0-9A-Za-z.!+_-]{0,64}$")] = ""
    package_path: Path | Literal[""] = ""
    """Where the same file stands in the package, for a source that is one too."""
    lines: Annotated[int, Field(ge=0)] = 0
    file_sha256: Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")] = ""
    describes: list[str] = []
    """The families whose very own code or catalogue this is: there it bears a claim out directly."""


class Cite(Spec):
    claim: str
    at: list[str]
    """Every place that says it: `llama3 266-269,298-302 sha256:…`, or for a published configuration its source alone."""
    values: dict[str, Any] = {}
    """For a published configuration, the values read in it."""


class Bibliography(Spec):
    sources: dict[str, Source] = {}
    cites: dict[str, Cite] = {}
