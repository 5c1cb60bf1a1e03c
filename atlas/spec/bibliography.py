"""`bibliography/*.toml`: what is cited, at which revision, and which of its lines bear out which claim."""

from typing import Any, Literal

from atlas.spec.table import Spec


class Source(Spec):
    """Something that can be cited: a file at a fixed revision."""

    kind: Literal["git", "pypi", "hub"]
    role: Literal["reference", "catalogue", "dependency", "checkpoint"]
    title: str
    repo: str
    revision: str = ""
    path: str
    package: str = ""
    version: str = ""
    package_path: str = ""
    """Where the same file stands in the package, for a source that is one too."""
    lines: int = 0
    file_sha256: str = ""
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
