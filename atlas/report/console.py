"""The only module that writes to the terminal: results to stdout, everything else to stderr."""

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
"""Columns of a file or a pipe: tables there are as wide as they need to be."""

NARROW = 40
"""The fewest columns that a table is laid out for."""

quiet = False
"""Whether notes and warnings are suppressed (`--quiet`)."""

answered = False
"""Whether the command's JSON document has been printed. There is never a second one."""


class ReaderGoneError(Exception):
    """The reader of a pipe has gone away (`| head`), which is no error.

    It is not an OSError, which Typer would report as a failure of the command.
    """


class OutputError(AtlasError):
    """The output cannot be written: the disk is full, or the file too large."""

    code = "output"


UNWRITABLE = {errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EBADF, errno.EIO}
"""Error numbers of a stream that takes no more output: no room, open for reading only, a terminal that is gone."""


def cannot_write(error: OSError) -> OutputError:
    return OutputError(f"the output cannot be written: {error.strerror}")


def open_streams() -> None:
    """Prepare both streams, whatever the shell has done with them.

    A closed stream is replaced by the null device. A stream whose encoding lacks × or a Greek letter writes a ? instead.
    An unbuffered stream (PYTHONUNBUFFERED) silently drops what the system does not take at once, so it gets a buffer.
    Everything written to the streams from here on is escaped (`atlas.report.guard`).
    """
    _sane_sizes()
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  it is open as long as the process lives
        elif isinstance(stream, io.TextIOWrapper) and isinstance(stream.buffer, io.RawIOBase):
            encoding, buffer = stream.encoding, io.BufferedWriter(stream.detach())
            setattr(sys, name, io.TextIOWrapper(buffer, encoding, "replace", line_buffering=True))
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
        setattr(sys, name, Guard(getattr(sys, name)))
    warnings.showwarning = _warned  # type: ignore[assignment]  # the other arguments are ignored


def _warned(message: Warning | str, *_: object) -> None:
    """Print a warning of Python or a library as one line, like our own."""
    warn(" ".join(str(message).split()))


def _sane_sizes() -> None:
    """Remove terminal sizes from the environment that are not sizes.

    The libraries that print read the same variables, accept ² as a number, and lay out any number of columns.
    """
    for name in ("COLUMNS", "LINES", "TERMINAL_WIDTH"):
        value = os.environ.get(name)
        if value is not None and not (value.isascii() and value.isdigit() and 0 < int(value[:20]) <= WIDE):
            del os.environ[name]


def drop(stream: IO[str]) -> None:
    """Redirect a stream to the null device, so that not even its buffer is written."""
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
    """Print parts of a result to stdout."""
    target = console(sys.stdout)
    with target.capture() as captured:
        for thing in things:
            target.print(thing, markup=False)
    with _write_errors(), own_styles():
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
    """Let the colours of a renderer pass while it writes text that is already escaped to stdout."""
    if isinstance(sys.stdout, Guard):
        with sys.stdout.styles():
            yield
    else:
        yield


def line(text: str = "") -> None:
    """Print one line of a result to stdout. A newline inside a name is escaped.

    Raises:
        ReaderGoneError, OutputError: it cannot be written.
    """
    write(printable(text))


def write(text: str, end: str = "\n") -> None:
    """Print lines of a result to stdout. Newlines and tabs are our layout; other control characters are escaped.

    Raises:
        ReaderGoneError, OutputError: it cannot be written.
    """
    with _write_errors():
        sys.stdout.write(printable(text, keep="\n\t") + end)


def flush() -> None:
    """Write out what is still buffered.

    Raises:
        ReaderGoneError, OutputError: it cannot be written.
    """
    with _write_errors():
        sys.stdout.flush()


@contextmanager
def _write_errors() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise ReaderGoneError from None
    except OSError as error:
        raise cannot_write(error) from None


def json(value: Any) -> None:
    """Print the JSON document of a command, the only thing it writes to stdout."""
    global answered
    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    document = dumps(value, ascii_only=not encoding.startswith("utf"))
    answered = True
    write(document)


def warn(text: str) -> None:
    """Print a warning to stderr, unless --quiet."""
    if not quiet:
        _to_stderr(f"warning: {printable(text)}")


def note(text: str) -> None:
    """Print a note to stderr, unless --quiet."""
    if not quiet:
        _to_stderr(f"note: {printable(text)}")


def error(message: str, hint: str = "") -> None:
    """Print an error as one line to stderr."""
    line = f"error: {message}" + (f"; {hint}" if hint else "")
    _to_stderr(" ".join(printable(line, keep="\n\t").split()))


def _to_stderr(line: str) -> None:
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:  # the exit code reports the error too
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
