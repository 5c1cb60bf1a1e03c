"""Parses Hub URLs: of a repository, a tree or a file, as a browser shows them or as a download uses them."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from atlas.errors import UsageError

_HOSTS = {"huggingface.co", "www.huggingface.co", "hf.co", "www.hf.co"}
_NOT_MODELS = {
    "datasets": "dataset",
    "spaces": "Space",
    "collections": "collection",
    "papers": "paper",
    "docs": "documentation",
}
_PART = re.compile(r"[A-Za-z0-9][\w.-]*")
_VIEWS = {"tree", "blob", "resolve", "raw", "commit", "blame", "edit"}


@dataclass(frozen=True, slots=True)
class HubURL:
    """What a Hub URL names.

    Attributes:
        repo: `owner/name`, or `name` for a canonical repository.
        revision: a branch, a tag or a commit; None for `main`.
        path: a file or folder in the repository; empty for the repository.
    """

    repo: str
    revision: str | None = None
    path: str = ""


def parse(text: str) -> HubURL | None:
    """The parts of a Hub URL; None if the text is not an http or https URL, nor one without the scheme.

    Raises:
        UsageError: the URL is of another host, or of something that is not a model repository.
    """
    text = text.strip()
    scheme = re.match(r"(https?|hf)://", text, re.IGNORECASE)
    if scheme is None:
        if text.partition("/")[0].lower() not in _HOSTS:
            return None
        text = f"https://{text}"
    elif scheme[1].lower() == "hf":
        text = f"https://huggingface.co/{text[scheme.end() :]}"
    try:
        parts = urlsplit(text)
        host = (parts.hostname or "").lower()
        endpoint = urlsplit(os.environ.get("HF_ENDPOINT", "")).hostname or ""
    except ValueError:
        raise UsageError(f"{text[:200]!r} is not a valid URL") from None
    if host not in _HOSTS and host != endpoint.lower():
        raise UsageError(
            f"{text[:200]!r} is not a URL of the Hugging Face Hub",
            hint="give a Hub id (owner/name), a catalogue id (llama3.1-8b) or a path",
        )
    words = [unquote(word) for word in parts.path.split("/") if word]
    if words and words[0] in _NOT_MODELS:
        raise UsageError(f"{text[:200]!r} is the URL of a {_NOT_MODELS[words[0]]}, not of a model")
    if words and words[0] == "models":
        words = words[1:]
    view = next((i for i, word in enumerate(words[:3]) if i > 0 and word in _VIEWS), None)
    name, rest = (words[:view], words[view:]) if view is not None else (words[:2], [])
    if not 1 <= len(name) <= 2 or not all(map(_PART.fullmatch, name)):
        raise UsageError(
            f"{text[:200]!r} does not name a repository",
            hint="a repository's URL is https://huggingface.co/owner/name",
        )
    revision = rest[1] if len(rest) > 1 else None
    return HubURL("/".join(name), None if revision == "main" else revision, "/".join(rest[2:]))
