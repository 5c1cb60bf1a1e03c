"""Text that strangers wrote: JSON read strictly, and URLs shown without what is secret in them."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote, urlsplit


class KeyTwice(ValueError):
    """An object says a key twice; which of the values holds nobody knows."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object from its pairs, for `json`'s object_pairs_hook.

    Raises:
        KeyTwice: a key stands twice.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        seen = set[str]()
        for key, _ in pairs:  # one pass: an object may have millions of keys
            if key in seen:
                raise KeyTwice(key)
            seen.add(key)
    return found


class NotANumber(ValueError):
    """NaN or Infinity, which JSON does not have and Python's reader accepts."""


def no_constant(name: str) -> float:
    """For `json`'s parse_constant.

    Raises:
        NotANumber: always.
    """
    raise NotANumber(name)


def beyond_limits(error: Exception) -> str:
    """What Python's reader could not do, although the text is JSON, from the ValueError or RecursionError that it raised."""
    return "nested too deeply" if isinstance(error, RecursionError) else "a number with thousands of digits"


UNPARSABLE = "(a URL that cannot be parsed)"

_HOST = re.compile(r"[A-Za-z0-9._-]{1,253}|[0-9A-Fa-f:.]{2,45}")
_MOST_CHARACTERS = 300


def public_url(url: str) -> str:
    """Scheme, host, port and path of a URL; user, password, query and fragment are left out.

    A query may hold a signature, and what stands before `@` a password. A URL that could be read in two ways, or that
    is not one, is replaced whole: a part of it may be the password. The result is printable ASCII and never long.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except (ValueError, TypeError, AttributeError):
        return UNPARSABLE
    # A password may hold / ? or #, unquoted; then what looks like host and path is a part of it.
    rest = f"{parts.path}{parts.query}{parts.fragment}"
    if not re.fullmatch(r"[a-z][a-z0-9+.-]{0,20}", parts.scheme) or not _HOST.fullmatch(host) or "@" in rest:
        return UNPARSABLE
    shown = f"[{host}]" if ":" in host else host
    if port is not None:
        shown += f":{port}"
    path = quote(parts.path, safe="/%:+,;=~!$&'()*", errors="replace")
    whole = f"{parts.scheme}://{shown}{path}"
    return whole if len(whole) <= _MOST_CHARACTERS else f"{whole[: _MOST_CHARACTERS - 3]}..."
