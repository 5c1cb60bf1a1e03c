"""Web addresses as they may be shown: without a password and without a signature."""

from __future__ import annotations

from urllib.parse import urlsplit


def public_url(url: str) -> str:
    """Scheme, host, port and path of an address; no user, password, query or fragment.

    An address that cannot be parsed is replaced by a placeholder, because nobody knows which part of it is secret.
    """
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  raises ValueError where it is not a number
    except ValueError:
        return "an address that cannot be parsed"
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=host, query="", fragment="").geturl()
