"""A thread pool that reads: each thread takes the next block of the work item with the fewest threads, until none is left.

As many files are read at once as there are threads; if there are fewer files than threads, threads share a file. Each
thread has one block, which bounds the memory. The threads are daemons and are joined for a short time only: one that hangs in a
read must not keep the command from ending on Ctrl-C.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

Job = Callable[[threading.Event], int]
"""Reads one block and returns the number of bytes. It may wait for other threads only while the event is not set."""

MOST_THREADS = 8
"""More threads would be faster than disks are."""

_TICK_SECONDS = 0.1
_JOIN_SECONDS = 0.5


class WorkItem(Protocol):
    """Something that is read block by block, in order.

    Attributes:
        most: the number of threads that may work on it at the same time.
    """

    most: int

    def take(self) -> Job | None:
        """The next block's job; None if none is left."""
        ...


def useful_threads() -> int:
    """The number of processors that this process may use, up to `MOST_THREADS`."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(available, MOST_THREADS)


class ThreadPool:
    """Threads that read all blocks of some work items.

    Args:
        tick: called about ten times a second, in the waiting thread, with the bytes read so far.
    """

    def __init__(self, items: Iterable[WorkItem], tick: Callable[[int], None]) -> None:
        self._items = list(items)
        self._tick = tick
        self._stop = threading.Event()
        self._changed = threading.Condition()
        self._at: Counter[WorkItem] = Counter()
        self._working = 0
        self._bytes_read = 0
        self._error: BaseException | None = None

    def run(self, threads: int) -> int:
        """Read every block of every item; returns the bytes read.

        Raises:
            KeyboardInterrupt: within a second, whatever the threads are doing.
            MemoryError: the system allows not one thread.
        """
        workers = [
            threading.Thread(target=self._work, name="atlas-deep", daemon=True) for _ in range(threads)
        ]
        self._working = threads
        try:
            self._start(workers)
            done = False
            while not done:
                with self._changed:
                    done = self._changed.wait_for(lambda: not self._working, _TICK_SECONDS)
                self._tick(self._bytes_read)
        finally:
            self._stop.set()
            deadline = time.monotonic() + _JOIN_SECONDS
            for worker in workers:
                if worker.ident is not None:
                    worker.join(max(0.0, deadline - time.monotonic()))
        if self._error is not None:
            raise self._error
        return self._bytes_read

    def _start(self, workers: Sequence[threading.Thread]) -> None:
        for started, worker in enumerate(workers):
            try:
                worker.start()
            except RuntimeError:  # of threads or of memory; those that there are do it all
                if not started:
                    raise MemoryError("no thread can be started") from None
                with self._changed:
                    self._working -= len(workers) - started
                return

    def _work(self) -> None:
        try:
            while not self._stop.is_set():
                with self._changed:
                    taken = self._take()
                if taken is None:
                    break
                item, job = taken
                done = job(self._stop)
                with self._changed:
                    self._at[item] -= 1
                    self._bytes_read += done
        except BaseException as error:
            self._error = error
            self._stop.set()
        finally:
            with self._changed:
                self._working -= 1
                self._changed.notify_all()

    def _take(self) -> tuple[WorkItem, Job] | None:
        while items := [item for item in self._items if self._at[item] < item.most]:
            item = min(items, key=self._at.__getitem__)
            job = item.take()
            if job is not None:
                self._at[item] += 1
                return item, job
            self._items.remove(item)
        return None
