"""The threads that wait for the Hub: so many requests in flight and no more, however many repositories are read at once.

They are daemons, which those of `concurrent.futures` are not: an interpreter that ends on Ctrl-C would wait for every one
of theirs to get its answer.

Threads rather than coroutines, by measurement: for the same 191 requests huggingface_hub's asynchronous client takes up to
a third longer, behind redirects half as long again, and opens more connections.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")

MOST_WORKERS = 48
"""Fewer leave 191 shards waiting; more gain nothing, since a request costs the client about a millisecond of its one core."""

_jobs: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()
_threads: list[threading.Thread] = []
_starting = threading.Lock()


def submit(job: Callable[[], T]) -> Future[T]:
    """Do it in one of the threads, after what was submitted before.

    Raises:
        MemoryError: the system allows not one thread.
    """
    future: Future[T] = Future()
    _jobs.put((future, job))
    with _starting:
        if len(_threads) < MOST_WORKERS:
            thread = threading.Thread(target=_work, name="atlas-hub", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # of threads or of memory; with those that there are it takes longer
                if not _threads:
                    future.cancel()
                    raise MemoryError("no thread can be started") from None
            else:
                _threads.append(thread)
    return future


def _work() -> None:
    while True:
        _do(*_jobs.get())


def _do(future: Future[T], job: Callable[[], T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = job()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)
