"""Results as JSON, and bytes for people. A result is a tree of small frozen dataclasses whose field names are the JSON keys."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from atlas.tables.table import comma_separated, markdown
from atlas.text import json_escaped, without_surrogates

__all__ = ["comma_separated", "dumps", "gibibytes", "markdown", "plain"]


def plain(value: Any) -> Any:
    """A result with dicts for dataclasses and lists for tuples. Text is made encodable as UTF-8; the rest is unchanged."""
    if isinstance(value, str):
        return without_surrogates(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, bytes) or not isinstance(value, Iterable):
        return value
    return [plain(item) for item in value]


def dumps(value: Any, *, ascii_only: bool = False) -> str:
    """One JSON document. Control and format characters are written as JSON escapes.

    Raises:
        ValueError: NaN or an infinity, which JSON cannot represent.
    """
    import json

    return json_escaped(json.dumps(plain(value), indent=2, ensure_ascii=ascii_only, allow_nan=False))


def gibibytes(count: int) -> str:
    """Bytes for people: `1.00 GiB`, or a smaller unit."""
    for name, power in (("TiB", 4), ("GiB", 3), ("MiB", 2), ("KiB", 1)):
        if count >= 1024**power:
            hundredths = (200 * count + 1024**power) // (2 * 1024**power)
            return f"{hundredths // 100:,}.{hundredths % 100:02d} {name}"
    return f"{count:,} bytes"
