"""What people give as a repository: `owner/name`, or the URL of a repository, a tree or a file on the Hub."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from atlas.errors import HubError, shown

_HOSTS = {"huggingface.co", "www.huggingface.co", "hf.co", "hub.hf.co"}
_PART = r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}"
_PATH = re.compile(
    rf"/?(?:models/)?(?P<repo>{_PART}/{_PART})(?:/(?P<kind>tree|blob|resolve|raw)/(?P<revision>[^/]+)(?:/(?P<path>.+))?)?/?"
)


@dataclass(frozen=True, slots=True)
class HubAddress:
    """A repository, and the revision and file where the URL names them."""

    repo: str
    revision: str | None = None
    file: str | None = None

    def __str__(self) -> str:
        """`owner/name`, with `@revision` and `/file` where the URL names them."""
        return (
            self.repo
            + (f"@{self.revision}" if self.revision else "")
            + (f"/{self.file}" if self.file else "")
        )


def parse_hub_address(text: str) -> HubAddress:
    """The repository that a text names; any text that is not a URL is taken as an id unchanged.

    Raises:
        HubError: a URL of another host, of a data set or space, or of a folder inside a repository.
    """
    url = text.strip()
    bare = url.split("/", 1)[0].lower() in _HOSTS
    if not bare and not re.match(r"(https?|hf)://", url, re.IGNORECASE):
        return HubAddress(text)
    if url.lower().startswith("hf://"):
        url = f"https://huggingface.co/{url[5:]}"
    try:
        parts = urlsplit(f"https://{url}" if bare else url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise _not_of_a_model(text, "it cannot be parsed") from None
    hosts = _HOSTS | {(urlsplit(os.environ.get("HF_ENDPOINT", "")).hostname or "").lower()}
    if not host or host.lower() not in hosts:
        raise _not_of_a_model(text, "its host is not the Hub")
    match = _PATH.fullmatch(parts.path.rstrip("/"))
    if match is None or match["repo"].split("/")[0] in ("datasets", "spaces", "collections", "papers"):
        raise _not_of_a_model(text, "it does not name owner/name")
    path = unquote(match["path"]) if match["path"] else None
    if path is not None and match["kind"] == "tree":
        raise _not_of_a_model(
            text, "it names a folder inside the repository, and only its top folder is read"
        )
    return HubAddress(match["repo"], unquote(match["revision"]) if match["revision"] else None, path)


def _not_of_a_model(text: str, why: str) -> HubError:
    # The part before an @ may be a password, and a query a signature.
    found = shown(text.rpartition("@")[2].partition("?")[0])
    return HubError(
        f"{found} is not the URL of a model repository on the Hub: {why}",
        hint="give owner/name, or a URL such as https://huggingface.co/owner/name",
        code="not_found",
    )
