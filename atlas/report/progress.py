"""Progress of long work, on stderr and only where that is a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from atlas.report import console
from atlas.text import printable

Told = Callable[[str, int, int], None]
"""Of what is under way, how much is done, and of how much."""


def bars_are_seen() -> bool:
    """Whether a bar on stderr would be seen, and is wanted: NO_COLOR asks for neither colours nor animation."""
    return sys.stderr.isatty() and not console.quiet and not os.environ.get("NO_COLOR")


@contextmanager
def progress(unit: str = "steps") -> Iterator[Told | None]:
    """A callback that moves a bar; None where nobody would see one.

    Args:
        unit: `steps`, or `bytes` for what has a rate worth showing.
    """
    if not bars_are_seen():
        yield None
        return
    from rich import progress as bar

    amount = (
        (bar.DownloadColumn(), bar.TransferSpeedColumn()) if unit == "bytes" else (bar.MofNCompleteColumn(),)
    )
    columns = (
        bar.TextColumn("{task.description}", markup=False),
        bar.BarColumn(),
        *amount,
        bar.TimeRemainingColumn(),
    )
    with bar.Progress(*columns, console=console.console(sys.stderr), transient=True) as bars:
        tasks = {}

        def told(what: str, done: int, of: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(printable(what), total=of)
            bars.update(tasks[what], completed=done, total=of)

        yield told
