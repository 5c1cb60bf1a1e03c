"""JSON as strangers write it: what Python's reader passes over or gives up on, a key twice and its own limits, in our words."""

from __future__ import annotations

from typing import Any


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
