"""Text from untrusted input: strict JSON hooks, URLs without their secrets, and text escaped for the terminal."""

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


_SPACES = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
"""Spaces that `str.isprintable` does not count as printable; they only take room."""

_SPACE = re.compile(f"[{_SPACES}]")
_SURROGATE = re.compile("[\ud800-\udfff]")

_STYLE = re.compile(r"(\x1b\[(?:[0-9;]*[mAK]|\?25[lh]))")
"""What rich writes for itself: colours, cursor up, erase line, hide and show the cursor."""


def printable(text: str, keep: str = "") -> str:
    """Text as it is but for what a terminal would act on.

    Args:
        keep: characters that stay, such as the newlines of our own layout.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in keep or _SPACE.match(char) else escaped(char) for char in text
    )


def escaped(char: str) -> str:
    """A character as an escape. A byte of a path that is not UTF-8, which Python holds as a surrogate, is shown as the byte."""
    if "\udc80" <= char <= "\udcff":
        return f"\\x{ord(char) - 0xDC00:02x}"
    return char.encode("unicode_escape").decode("ascii")


def styled(text: str) -> str:
    """What rich made of text that was already printable: its styles stay, everything else is escaped."""
    if text.isprintable():
        return text
    return "".join(
        part if i % 2 else printable(part, keep="\n\r\t") for i, part in enumerate(_STYLE.split(text))
    )


def without_surrogates(text: str) -> str:
    """Text that UTF-8 can encode: a surrogate becomes its escape, spelled out."""
    if text.isascii() or _SURROGATE.search(text) is None:
        return text
    return _SURROGATE.sub(lambda found: escaped(found[0]), text)


def json_escaped(text: str) -> str:
    """A JSON document in which no character acts on a terminal; it says the same.

    Such characters stand only inside its strings, where an escape means the character. The newlines are its layout.
    """
    if text.replace("\n", "").isprintable():
        return text
    return "\n".join(
        line if line.isprintable() else "".join(map(_json_char, line)) for line in text.split("\n")
    )


def _json_char(char: str) -> str:
    if char.isprintable() or _SPACE.match(char):
        return char
    units = char.encode("utf-16-be")  # two units where the character is beyond the basic plane
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
