"""A stream on which nothing acts that was not ours: everything written to it is escaped, whoever writes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any

from atlas.text import printable, styled

_CURSOR_UP = re.compile(r"(?:\x1b\[A)+")
"""How tqdm, with which huggingface_hub draws its bars, moves between them."""


class Guard:
    """Stands in for `sys.stdout` or `sys.stderr`, and is otherwise the stream itself.

    Libraries print too, and so do Python's own warnings, loggers and tracebacks; here their text is escaped as ours is.
    Newlines and tabs stay. On a terminal a carriage return at the beginning of a write stays as well, since progress bars
    of other libraries are drawn so.
    """

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream
        self._ours = False

    def write(self, text: str) -> int:
        if self._ours:
            self.stream.write(styled(text))
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
        """While our own renderer writes: its styles pass, and nothing else that acts."""
        before, self._ours = self._ours, True
        try:
            yield
        finally:
            self._ours = before

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class Styled:
    """The same stream for a renderer that writes at any time, from any thread: a progress bar."""

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream.stream if isinstance(stream, Guard) else stream

    def write(self, text: str) -> int:
        self.stream.write(styled(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)
