"""Text from untrusted input: strict JSON hooks, URLs without their secrets, and text escaped for the terminal."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote, urlsplit


class KeyTwice(ValueError):
    """A JSON object has the same key twice, so its value is ambiguous."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A dict from the pairs of a JSON object, for `object_pairs_hook`.

    Raises:
        KeyTwice: a key is there twice.
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
    """NaN or Infinity, which JSON does not allow and Python's parser accepts."""


def no_constant(name: str) -> float:
    """A hook for `parse_constant`.

    Raises:
        NotANumber: always.
    """
    raise NotANumber(name)


def beyond_limits(error: Exception) -> str:
    """The limit of Python's parser that valid JSON exceeded, from the ValueError or RecursionError that it raised."""
    return "nested too deeply" if isinstance(error, RecursionError) else "a number with thousands of digits"


UNPARSABLE = "(a URL that cannot be parsed)"

_HOST = re.compile(r"[A-Za-z0-9._-]{1,253}|[0-9A-Fa-f:.]{2,45}")
_MOST_CHARACTERS = 300


def public_url(url: str) -> str:
    """Scheme, host, port and path of a URL, without user, password, query and fragment.

    A query may have a signature, and the part before `@` a password. A URL that is ambiguous or invalid is replaced
    completely, since any part of it may be the password. The result is printable ASCII and short.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except (ValueError, TypeError, AttributeError):
        return UNPARSABLE
    # A password may contain an unquoted / ? or #. Then what looks like host and path is a part of it.
    rest = f"{parts.path}{parts.query}{parts.fragment}"
    if not re.fullmatch(r"[a-z][a-z0-9+.-]{0,20}", parts.scheme) or not _HOST.fullmatch(host) or "@" in rest:
        return UNPARSABLE
    shown = f"[{host}]" if ":" in host else host
    if port is not None:
        shown += f":{port}"
    path = quote(parts.path, safe="/%:+,;=~!$&'()*", errors="replace")
    whole = f"{parts.scheme}://{shown}{path}"
    return whole if len(whole) <= _MOST_CHARACTERS else f"{whole[: _MOST_CHARACTERS - 3]}..."


_SPACES = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
"""Spaces that `str.isprintable` rejects although they are harmless."""

_SPACE = re.compile(f"[{_SPACES}]")
_SURROGATE = re.compile("[\ud800-\udfff]")

_STYLE = re.compile(r"(\x1b\[(?:[0-9;]*[mAK]|\?25[lh]))")
"""The escape sequences that rich writes: colours, cursor up, erase line, hide and show the cursor."""


def printable(text: str, keep: str = "") -> str:
    """Text with every character escaped that would control a terminal.

    These are control and format characters (zero width, bidirectional overrides), line and paragraph separators, surrogates
    and unassigned code points. Letters of every script, combining marks, symbols and spaces stay.

    Args:
        keep: characters that are not escaped, such as the newlines of our own layout.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in keep or _SPACE.match(char) else escaped(char) for char in text
    )


def escaped(char: str) -> str:
    """A character as an escape. A byte of a path that is not UTF-8, which Python represents as a surrogate, becomes `\\xNN`."""
    if "\udc80" <= char <= "\udcff":
        return f"\\x{ord(char) - 0xDC00:02x}"
    return char.encode("unicode_escape").decode("ascii")


def styled(text: str, *, keep: bool = True) -> str:
    """Output of rich: its escape sequences stay, everything else that controls a terminal is escaped.

    Args:
        keep: whether the sequences stay; False for a stream that shows no styles.
    """
    if text.isprintable():
        return text
    return "".join(
        (part if keep else "") if i % 2 else printable(part, keep="\n\r\t")
        for i, part in enumerate(_STYLE.split(text))
    )


def without_surrogates(text: str) -> str:
    """Text that UTF-8 can encode: a surrogate is replaced by its escape."""
    if text.isascii() or _SURROGATE.search(text) is None:
        return text
    return _SURROGATE.sub(lambda found: escaped(found[0]), text)


def json_escaped(text: str) -> str:
    """The same JSON document without characters that control a terminal.

    Such characters are only inside strings, where JSON has escapes for them. The newlines are layout.
    """
    if text.replace("\n", "").isprintable():
        return text
    return "\n".join(
        line if line.isprintable() else "".join(map(_json_char, line)) for line in text.split("\n")
    )


def _json_char(char: str) -> str:
    if char.isprintable() or _SPACE.match(char):
        return char
    units = char.encode("utf-16-be")  # two units for a character outside the basic multilingual plane
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
