"""Progress bars, on stderr and only if it is a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from atlas.report import console
from atlas.text import printable

OnProgress = Callable[[str, int, int], None]
"""A callback: what is in progress, the amount done, and the total."""


def bars_are_seen() -> bool:
    """Whether to draw bars: stderr is a terminal, and neither --quiet nor NO_COLOR is set."""
    return sys.stderr.isatty() and not console.quiet and not os.environ.get("NO_COLOR")


@contextmanager
def progress(unit: str = "steps") -> Iterator[OnProgress | None]:
    """A callback that draws a bar; None if bars are not drawn.

    Args:
        unit: `steps`, or `bytes`, which are shown with their rate.
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

        def on_progress(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(printable(what), total=total)
            bars.update(tasks[what], completed=done, total=total)

        yield on_progress
