"""The threads that read: each takes the next block of the lane that has the fewest of them, does it, and takes another.

So many files are read side by side as there are threads, and where there are fewer files than threads, they share one. Each
thread has one block, which bounds the memory. They are daemons and are not waited for long: one that hangs in a read must
not keep a command from ending on Ctrl-C.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

Job = Callable[[threading.Event], int]
"""Reads one block, and says how many bytes that were. It may wait for others only as long as the event is not set."""

MOST_THREADS = 8
"""More would read faster than disks do."""

_TICK_SECONDS = 0.1
_PATIENCE_SECONDS = 0.5


class Lane(Protocol):
    """Blocks that are read in their order.

    Attributes:
        most: threads that are of use in it at the same time.
    """

    most: int

    def take(self) -> Job | None:
        """The next block; None where there is none left."""
        ...


def threads_of_use() -> int:
    """As many as there are processors for this process, within a bound."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(available, MOST_THREADS)


class Crew:
    """Threads at work on some lanes.

    Args:
        tick: called about ten times a second, in the thread that waits, with the bytes read so far.
    """

    def __init__(self, lanes: Iterable[Lane], tick: Callable[[int], None]) -> None:
        self._lanes = list(lanes)
        self._tick = tick
        self._stop = threading.Event()
        self._changed = threading.Condition()
        self._at: Counter[Lane] = Counter()
        self._working = 0
        self._bytes_read = 0
        self._error: BaseException | None = None

    def run(self, threads: int) -> int:
        """Read every block of every lane; the bytes that were.

        Raises:
            KeyboardInterrupt: within a second, whatever the threads are at.
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
            deadline = time.monotonic() + _PATIENCE_SECONDS
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
                lane, job = taken
                done = job(self._stop)
                with self._changed:
                    self._at[lane] -= 1
                    self._bytes_read += done
        except BaseException as error:
            self._error = error
            self._stop.set()
        finally:
            with self._changed:
                self._working -= 1
                self._changed.notify_all()

    def _take(self) -> tuple[Lane, Job] | None:
        while lanes := [lane for lane in self._lanes if self._at[lane] < lane.most]:
            lane = min(lanes, key=self._at.__getitem__)
            job = lane.take()
            if job is not None:
                self._at[lane] += 1
                return lane, job
            self._lanes.remove(lane)
        return None
