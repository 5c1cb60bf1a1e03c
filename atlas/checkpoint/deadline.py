"""A deadline for the head of an answer.

A timeout of the HTTP library counts from one byte to the next, so that a server that sends a byte every few seconds
could go on for days. One thread looks after all requests that wait for a head; where one is late, it closes the
connections, and the read that waits fails. Other requests on them are asked again by the retry policy.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

HEAD_WITHIN = 60.0
"""Seconds from the first request to the head of the answer, redirects included."""
_INTERVAL = 0.5


class Deadline:
    """When a request must have been answered.

    Attributes:
        missed: the connections were closed because it was not.
    """

    def __init__(self, seconds: float) -> None:
        self.end = time.monotonic() + seconds
        self.missed = False


_pending: set[Deadline] = set()
_lock = threading.Lock()
_watching = False


@contextmanager
def response_deadline() -> Iterator[Deadline]:
    """Within this block a request is sent and the head of its answer read.

    Raises:
        MemoryError: the system allows no thread that watches.
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
