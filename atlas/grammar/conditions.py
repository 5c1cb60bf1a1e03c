"""Conditions in a description: whether an optional weight, step or note applies.

"bias"           the value is set: not false, 0 or "off"
"tied=false"     the value equals this one
"""

from __future__ import annotations

from collections.abc import Mapping

from atlas.errors import SpecError


def holds(when: str | None, values: Mapping[str, bool | int | float | str]) -> bool:
    """Whether the condition is met. None is always met.

    Raises:
        SpecError: it uses a name that has no value.
    """
    if when is None:
        return True
    name, equals, word = when.partition("=")
    if name not in values:
        raise SpecError(f"when = {when[:80]!r}: nothing is called {name[:80]!r}")
    value = values[name]
    if not equals:
        return value not in (0, False, "off")
    return (str(value).lower() if isinstance(value, bool) else str(value)) == word
