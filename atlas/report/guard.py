"""Streams that escape everything written to them, so that no text from outside controls the terminal."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any

from atlas.text import printable, styled

_CURSOR_UP = re.compile(r"(?:\x1b\[A)+")
"""How tqdm moves between progress bars; huggingface_hub uses it."""


class Guard:
    """A wrapper of `sys.stdout` or `sys.stderr` that escapes what is written to it.

    It also escapes what libraries print, and Python's warnings, loggers and tracebacks. Newlines and tabs stay. On a
    terminal a carriage return at the beginning of a write stays too, since libraries draw progress bars with it.
    """

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream
        self._ours = False

    def write(self, text: str) -> int:
        if self._ours:
            # Typer styles its help wherever GITHUB_ACTIONS is set, in a file too.
            styles = self.stream.isatty() or bool(os.environ.get("FORCE_COLOR"))
            self.stream.write(styled(text, keep=styles))
        elif text.isprintable() or not self.stream.isatty():
            self.stream.write(printable(text, keep="\n\t"))
        elif _CURSOR_UP.fullmatch(text):
            self.stream.write(text)
        else:
            plain = text.removeprefix("\r")
            self.stream.write("\r" * (len(text) - len(plain)) + printable(plain, keep="\n\t"))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    @contextmanager
    def styles(self) -> Iterator[None]:
        """Let the styles of our own renderer pass while it writes; everything else is still escaped."""
        before, self._ours = self._ours, True
        try:
            yield
        finally:
            self._ours = before

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class Styled:
    """The stream for a renderer that writes at any time, from any thread: a progress bar. Styles always pass."""

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream.stream if isinstance(stream, Guard) else stream

    def write(self, text: str) -> int:
        self.stream.write(styled(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)
