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
        seen: set[str] = set()
        raise KeyTwice(next(key for key, _ in pairs if key in seen or seen.add(key)))  # type: ignore[func-returns-value]
    return found


def beyond_limits(error: Exception) -> str:
    """What Python's reader could not do, although the text is JSON, from the ValueError or RecursionError that it raised."""
    return "nested too deeply" if isinstance(error, RecursionError) else "a number with thousands of digits"
