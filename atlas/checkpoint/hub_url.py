"""Parses Hub URLs: of a repository, a tree or a file, as a browser shows them or as a download uses them."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from atlas.errors import HubError
from atlas.text import public_url

_HOSTS = {"huggingface.co", "www.huggingface.co", "hf.co", "www.hf.co", "hub.hf.co"}
_NOT_MODELS = {
    "datasets": "dataset",
    "spaces": "Space",
    "collections": "collection",
    "papers": "paper",
    "docs": "documentation",
}
_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
_VIEWS = {"tree", "blob", "resolve", "raw", "commit", "blame", "edit"}


@dataclass(frozen=True, slots=True)
class HubURL:
    """What a Hub URL names.

    Attributes:
        repo: `owner/name`, or `name` for a canonical repository.
        revision: a branch, a tag or a commit; None if the URL names none.
        path: a file or folder in the repository; empty for the repository.
        is_folder: whether the path is that of a folder.
    """

    repo: str
    revision: str | None = None
    path: str = ""
    is_folder: bool = False

    def __str__(self) -> str:
        """The repository, with `@revision` and `/path` where the URL names them."""
        revision = f"@{self.revision}" if self.revision else ""
        return f"{self.repo}{revision}" + (f"/{self.path}" if self.path else "")


def repository(text: str) -> HubURL:
    """The repository that a text names, as a URL or as its id. Whether an id is valid is checked where it is requested.

    Raises:
        HubError: the URL is of another host, of something that is not a model repository, or of a folder inside one.
    """
    found = parse(text)
    if found is not None and found.is_folder:
        raise _refused(
            f"{public_url(_with_scheme(text) or '')} names a folder inside a repository, and only its top folder is read"
        )
    return HubURL(text) if found is None else found


def parse(text: str) -> HubURL | None:
    """The parts of a Hub URL; None if the text is not an http, https or hf URL, nor begins with a host of the Hub.

    Raises:
        HubError: the URL is of another host, or of something that is not a model repository.
    """
    url = _with_scheme(text)
    if url is None:
        return None
    try:
        parts = urlsplit(url)
        host, _ = (parts.hostname or "").lower(), parts.port
    except ValueError:
        raise _refused(f"the given {url.partition(':')[0]}:// address is not a valid URL") from None
    given = public_url(url)
    if not host or (host not in _HOSTS and host != _endpoint()):
        raise _refused(f"{given} is not a URL of the Hugging Face Hub")
    words = [unquote(word) for word in parts.path.split("/") if word]
    if words and words[0] in _NOT_MODELS:
        raise _refused(f"{given} is the URL of a {_NOT_MODELS[words[0]]}, not of a model")
    if words and words[0] == "models":
        words = words[1:]
    view = next((i for i, word in enumerate(words[:3]) if i > 0 and word in _VIEWS), None)
    name, rest = (words[:view], words[view:]) if view is not None else (words[:2], [])
    if not 1 <= len(name) <= 2 or not all(map(_PART.fullmatch, name)):
        raise _refused(f"{given} does not name a repository")
    path = "/".join(rest[2:])
    return HubURL("/".join(name), rest[1] if len(rest) > 1 else None, path, bool(path) and rest[0] == "tree")


def _with_scheme(text: str) -> str | None:
    """The text as an http or https URL; None if it is not meant as a URL."""
    text = text.strip()
    scheme = re.match(r"(https?|hf)://", text, re.IGNORECASE)
    if scheme is None:
        return f"https://{text}" if text.partition("/")[0].lower() in _HOSTS else None
    return f"https://huggingface.co/{text[scheme.end() :]}" if scheme[1].lower() == "hf" else text


def _endpoint() -> str:
    """The host in `HF_ENDPOINT`; empty if there is none."""
    try:
        return (urlsplit(os.environ.get("HF_ENDPOINT", "")).hostname or "").lower()
    except ValueError:
        return ""


def _refused(message: str) -> HubError:
    return HubError(
        message,
        hint="give owner/name, or a URL such as https://huggingface.co/owner/name",
        code="not_found",
    )
