"""URLs as messages may show them: without what is secret."""

from __future__ import annotations

import re
from urllib.parse import quote, urlsplit

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
