"""Long computations that Ctrl-C ends at once, also while native code runs for seconds."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from atlas.execution import memory_map

T = TypeVar("T")

Check = Callable[[], None]
"""To be called between two steps of the work. It raises StoppedError once the work has been interrupted."""


class StoppedError(Exception):
    """Ends work that has been interrupted."""


def interruptible(work: Callable[[Check], T]) -> T:
    """The result of `work`, computed in a second thread while the main thread waits for it and handles signals.

    Python raises KeyboardInterrupt only in the main thread, and only between two bytecode instructions. A torch kernel may
    run for seconds without one; waiting for another thread is interrupted at once. The work then ends at its next check.

    While it runs, files may be memory-mapped (`atlas.execution.memory_map`).
    Called from any other thread, which receives no signals, this just calls `work`.

    Raises:
        MemoryError: there is none for another thread.
    """
    if threading.current_thread() is not threading.main_thread():
        return work(lambda: None)
    stop, done = threading.Event(), threading.Event()
    results: list[T] = []
    failures: list[BaseException] = []

    def check() -> None:
        if stop.is_set():
            raise StoppedError

    def call() -> None:
        try:
            results.append(work(check))
        except BaseException as error:
            failures.append(error)
        finally:
            done.set()

    thread = threading.Thread(target=call, name="atlas run", daemon=True)
    with memory_map.sigbus_handled() as replace_lost_pages:
        try:
            thread.start()
            while not done.wait(0.1):  # on Windows only a wait with a timeout is interrupted by Ctrl-C
                replace_lost_pages()
        except BaseException as error:  # KeyboardInterrupt, also while the thread starts
            stop.set()
            if isinstance(error, RuntimeError):
                raise MemoryError(str(error)) from None
            raise
    if failures:
        raise failures[0]
    return results[0]
