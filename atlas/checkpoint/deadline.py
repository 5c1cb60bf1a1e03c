"""A deadline for the headers of a response.

The HTTP library's timeout applies between two bytes, so a server that sends a byte every few seconds could go on for days.
One thread watches all requests that wait for headers; when one is late, it closes the connections, and the waiting read
fails. The retry policy repeats other requests on those connections.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

HEAD_WITHIN = 60.0
"""Seconds from the first request to the response headers, redirects included."""
_INTERVAL = 0.5


class Deadline:
    """The time by which the response headers must have arrived.

    Attributes:
        missed: the connections were closed because they had not.
    """

    def __init__(self, seconds: float) -> None:
        self.end = time.monotonic() + seconds
        self.missed = False


_pending: set[Deadline] = set()
_lock = threading.Lock()
_watching = False


@contextmanager
def response_deadline() -> Iterator[Deadline]:
    """Send a request and read its response headers within this block.

    Raises:
        MemoryError: no watching thread can be started.
    """
    global _watching
    deadline = Deadline(HEAD_WITHIN)
    with _lock:
        if not _watching:
            try:
                threading.Thread(target=_watch, name="atlas-hub-watch", daemon=True).start()
            except RuntimeError:
                raise MemoryError("no thread can be started") from None
            _watching = True
        _pending.add(deadline)
    try:
        yield deadline
    finally:
        with _lock:
            _pending.discard(deadline)


def _watch() -> None:
    global _watching
    while True:
        time.sleep(_INTERVAL)
        with _lock:
            if not _pending:
                _watching = False
                return
            now = time.monotonic()
            late = [deadline for deadline in _pending if deadline.end < now and not deadline.missed]
            for deadline in late:
                deadline.missed = True
        if late:
            from huggingface_hub import close_session

            close_session()
