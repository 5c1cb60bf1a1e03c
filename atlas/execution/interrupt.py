"""Long work that Ctrl-C ends at once, also where native code does not return for seconds."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from atlas.execution import mapped

T = TypeVar("T")

Check = Callable[[], None]
"""To be called between two steps of the work; it raises where nobody waits for the result any more."""


class StoppedError(Exception):
    """The work ends because nobody waits for its result."""


def interruptible(work: Callable[[Check], T]) -> T:
    """The result of `work`, computed in a thread of its own while the main thread waits and hears signals.

    Python raises KeyboardInterrupt in the main thread, and only between two of its own instructions. Inside a kernel of torch
    there are none for seconds; waiting for another thread is interrupted at once. The work then ends at its next check.

    Meanwhile files may be mapped (`atlas.execution.mapped`).
    Called from any other thread, which no signal reaches, it just calls `work`.

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
    with mapped.surviving() as look_after:
        try:
            thread.start()
            while not done.wait(0.1):  # on Windows only a wait with a limit hears Ctrl-C
                look_after()
        except BaseException as error:  # KeyboardInterrupt, also while the thread starts
            stop.set()
            if isinstance(error, RuntimeError):
                raise MemoryError(str(error)) from None
            raise
    if failures:
        raise failures[0]
    return results[0]
