"""Results as plain data: for JSON, and for the shell's other formats.

A result is a tree of small frozen dataclasses whose field names are the keys users rely on (cli.md).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from atlas.report.escape import json_escaped, printable, without_surrogates


def plain(value: Any) -> Any:
    """Dataclasses become objects, tuples lists; everything else stays as it is, but that text is what UTF-8 can encode."""
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
    """One JSON document, with control and format characters as escapes, which mean the same.

    Raises:
        ValueError: a float that JSON has no word for.
    """
    import json

    return json_escaped(json.dumps(plain(value), indent=2, ensure_ascii=ascii_only, allow_nan=False))


def markdown(headers: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> str:
    """A GitHub table; `right` are the columns set flush right."""
    lines = [headers, ["---:" if i in right else "---" for i in range(len(headers))], *rows]
    return "\n".join(
        "| " + " | ".join(printable(cell).replace("|", "\\|") for cell in row) + " |" for row in lines
    )


def comma_separated(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """CSV as spreadsheets read it."""
    import csv
    import io

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in (headers, *rows):
        writer.writerow([printable(str(cell)) for cell in row])
    return text.getvalue().rstrip("\n")


def gibibytes(count: int) -> str:
    """Bytes for reading: `1.00 GiB`, and smaller units where that would round to nothing."""
    for name, power in (("TiB", 4), ("GiB", 3), ("MiB", 2), ("KiB", 1)):
        if count >= 1024**power:
            hundredths = (200 * count + 1024**power) // (2 * 1024**power)
            return f"{hundredths // 100:,}.{hundredths % 100:02d} {name}"
    return f"{count:,} bytes"
