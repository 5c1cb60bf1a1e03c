"""Text that strangers wrote, made fit to be printed: what a terminal would act on is shown instead of obeyed.

Control characters, format characters (zero width, bidirectional overrides), line and paragraph separators, surrogates and
unassigned code points are written as escapes. Letters of every script, combining marks, symbols and spaces stay.
"""

from __future__ import annotations

import re

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


def styled(text: str, *, seen: bool = True) -> str:
    """What rich made of text that was already printable: its styles stay, everything else is escaped.

    Args:
        seen: whether anything obeys styles; else they are left out.
    """
    if text.isprintable():
        return text
    return "".join(
        (part if seen else "") if i % 2 else printable(part, keep="\n\r\t")
        for i, part in enumerate(_STYLE.split(text))
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
