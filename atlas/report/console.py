"""The one place that writes to the terminal: results to stdout, everything else to stderr."""

from __future__ import annotations

import errno
import io
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, cast

from atlas.errors import AtlasError
from atlas.report import layout
from atlas.report.guard import Guard, Styled
from atlas.report.plain import dumps
from atlas.text import printable

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

    from atlas.tables import Table

WIDE = 100_000
"""Columns where output goes to a file or a pipe: nothing is cut there."""

NARROW = 40
"""Columns below which no table is legible."""

quiet = False
"""Whether notes and warnings are left out (`--quiet`)."""


answered = False
"""Whether the JSON document that a command prints has been printed: there is never a second one."""


class ReaderGoneError(Exception):
    """Nobody reads the output any more (`| head`): nothing is wrong, and nothing more can be written.

    Not an OSError, which Typer would take for a failure of the command.
    """


class OutputError(AtlasError):
    """What is printed cannot be written: the disk is full, the file too large."""

    code = "output"


FULL = {errno.ENOSPC, errno.EFBIG, errno.EDQUOT}
"""What the system says where there is no room for more output."""


def cannot_write(error: OSError) -> OutputError:
    return OutputError(f"the output cannot be written: {error.strerror}")


def open_streams() -> None:
    """Make both streams fit to be written to, whatever the shell has done with them.

    A stream that was closed is given nowhere to go; one that cannot show × or a Greek letter shows a ? in its place. Without
    a buffer (PYTHONUNBUFFERED) a stream drops in silence what the system did not take at once, so it is given one. Whatever
    anybody writes to them from here on is escaped (`atlas.report.guard`).
    """
    _sane_sizes()
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  it lives as long as we do
        elif isinstance(stream, io.TextIOWrapper) and isinstance(stream.buffer, io.RawIOBase):
            encoding, buffer = stream.encoding, io.BufferedWriter(stream.detach())
            setattr(sys, name, io.TextIOWrapper(buffer, encoding, "replace", line_buffering=True))
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
        setattr(sys, name, Guard(getattr(sys, name)))
    warnings.showwarning = _warned  # type: ignore[assignment]  # the other arguments are not looked at


def _warned(message: Warning | str, *_: object) -> None:
    """A warning of Python's or a library's, in one line, as our own are."""
    warn(" ".join(str(message).split()))


def _sane_sizes() -> None:
    """Take back what the environment says of the terminal's size where it is no size.

    The libraries that print read the same variables, take ² for a number, and lay out as many columns as they are told.
    """
    for name in ("COLUMNS", "LINES", "TERMINAL_WIDTH"):
        said = os.environ.get(name)
        if said is not None and not (said.isascii() and said.isdigit() and 0 < int(said[:20]) <= WIDE):
            del os.environ[name]


def drop(stream: IO[str]) -> None:
    """Let nothing more reach a stream, not even what is still buffered."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def console(stream: IO[str]) -> Console:
    from rich.console import Console

    columns = os.environ.get("COLUMNS", "")
    width = None if stream.isatty() else WIDE
    if columns.isascii() and columns.isdigit() and 0 < int(columns[:20]) <= WIDE:
        width = max(int(columns), NARROW)
    target = cast("IO[str]", Styled(stream))
    return Console(file=target, width=width, highlight=False, soft_wrap=False, emoji=False, markup=False)


def out(*things: RenderableType) -> None:
    """A result, to stdout."""
    target = console(sys.stdout)
    with target.capture() as captured:
        for thing in things:
            target.print(thing, markup=False)
    with _told(), own_styles():
        for text in captured.get().splitlines():
            sys.stdout.write(text.rstrip() + "\n")


def print_table(content: Table, *, markdown: bool = False, csv: bool = False) -> None:
    """A command's table on stdout: for the terminal, or in the format of `--markdown` or `--csv`."""
    if markdown:
        write(content.markdown())
    elif csv:
        write(content.csv())
    else:
        out(table(content.headers(), content.cells(), content.right()))


@contextmanager
def own_styles() -> Iterator[None]:
    """While a renderer writes to stdout text that has been escaped: its colours stay."""
    if isinstance(sys.stdout, Guard):
        with sys.stdout.styles():
            yield
    else:
        yield


def line(text: str = "") -> None:
    """One line of a result, to stdout: a newline within a name is shown, not printed.

    Raises:
        ReaderGoneError, OutputError: it cannot be written.
    """
    write(printable(text))


def write(text: str) -> None:
    """Lines of a result, to stdout. Newlines and tabs are taken to be our layout; all else that would act is escaped.

    Raises:
        ReaderGoneError, OutputError: it cannot be written.
    """
    with _told():
        sys.stdout.write(printable(text, keep="\n\t") + "\n")


def flush() -> None:
    """Have written what has been printed.

    Raises:
        ReaderGoneError, OutputError: it cannot be.
    """
    with _told():
        sys.stdout.flush()


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise ReaderGoneError from None
    except OSError as error:
        raise cannot_write(error) from None


def json(value: Any) -> None:
    """One JSON document on stdout, and nothing else there."""
    global answered
    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    document = dumps(value, ascii_only=not encoding.startswith("utf"))
    answered = True
    write(document)


def warn(text: str) -> None:
    """A warning or a note, to stderr."""
    if not quiet:
        _aside(f"warning: {printable(text)}")


def note(text: str) -> None:
    if not quiet:
        _aside(f"note: {printable(text)}")


def error(message: str, hint: str = "") -> None:
    """An error in one line, to stderr."""
    line = f"error: {message}" + (f"; {hint}" if hint else "")
    _aside(" ".join(printable(line, keep="\n\t").split()))


def _aside(line: str) -> None:
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:  # nobody hears; the exit code says it too
        drop(sys.stderr)


class _Fitted:
    """A table that rich lays out as wide as the terminal allows; see `atlas.report.layout`."""

    def __init__(self, headers: list[str], rows: list[list[str]], right: Sequence[int]) -> None:
        self.headers, self.rows, self.right = headers, rows, right

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        from rich.box import SIMPLE_HEAD
        from rich.table import Table as Grid
        from rich.text import Text

        widths = layout.widths(self.headers, self.rows, self.right, options.max_width)
        if widths is None:
            for line in layout.paragraphs(self.headers, self.rows, options.max_width):
                yield Text(line, no_wrap=True, overflow="ignore")
            return
        grid = Grid(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for i, (header, width) in enumerate(zip(self.headers, widths, strict=True)):
            grid.add_column(Text(header), justify="right" if i in self.right else "left", width=width)
        for row in self.rows:
            grid.add_row(*map(Text, row))
        yield grid


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> RenderableType:
    """A table without frames; the last row may be a total. In a narrow terminal no id or number is broken.

    Args:
        right: the columns aligned right: numbers.
    """
    return _Fitted([printable(header) for header in headers], layout.cleaned(list(rows)), right)
