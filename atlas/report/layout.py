"""How a table fits a terminal: no word of it, and so no id and no number, is ever broken.

Where every column has room for its longest word, the table has columns, and sentences wrap within theirs. Where one has not,
each row becomes a short paragraph: its first cell on a line, then the others, each after its heading.
"""

from __future__ import annotations

from collections.abc import Sequence

from atlas.text import printable

GAP = 3
"""Spaces between two columns."""

READABLE = 16
"""Characters a column of sentences keeps at least, so that it does not become a tower of single words."""

INDENT = "    "


def cell_width(text: str) -> int:
    """Columns that a text takes in a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def widths(
    headers: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int], available: int
) -> list[int] | None:
    """The width of each column, or None where the table does not fit.

    Args:
        right: columns of numbers, which do not wrap.
        available: columns of the terminal.
    """
    columns = [[header, *(row[i] for row in rows)] for i, header in enumerate(headers)]
    full = [max(map(cell_width, column)) for column in columns]
    least = [
        full[i] if i in right else max(min(full[i], READABLE), _longest_word(column))
        for i, column in enumerate(columns)
    ]
    spare = available - GAP * (len(headers) - 1) - sum(least)
    if spare < 0:
        return None
    found = list(least)
    # What is left goes to the columns in want of it, the least wanting first.
    for n, i in enumerate(sorted(range(len(found)), key=lambda i: full[i] - least[i])):
        given = min(full[i] - least[i], spare // (len(found) - n))
        found[i] += given
        spare -= given
    return found


def _longest_word(column: Sequence[str]) -> int:
    return max((cell_width(word) for cell in column for word in cell.split()), default=0)


def paragraphs(headers: Sequence[str], rows: Sequence[Sequence[str]], available: int) -> list[str]:
    """The rows of a table that does not fit, each as a paragraph."""
    lines: list[str] = []
    for first, *others in rows:
        cells = [
            (f"{header}: {cell}" if header else cell)
            for header, cell in zip(headers[1:], others, strict=True)
            if cell
        ]
        lines += [first, *_filled(cells, available - len(INDENT))]
    return lines


def _filled(cells: Sequence[str], available: int) -> list[str]:
    """Cells side by side as far as there is room; one that is longer than a line wraps between words."""
    lines: list[str] = []
    for cell in cells:
        if lines and cell_width(lines[-1]) + GAP + cell_width(cell) <= available:
            lines[-1] += " " * GAP + cell
            continue
        lines.append("")
        for word in cell.split(" "):
            if lines[-1] and cell_width(lines[-1]) + 1 + cell_width(word) > available:
                lines.append("")
            lines[-1] += f" {word}" if lines[-1] else word
    return [INDENT + line for line in lines]


def cleaned(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Cells in which nothing acts on a terminal."""
    return [[printable(cell) for cell in row] for row in rows]
