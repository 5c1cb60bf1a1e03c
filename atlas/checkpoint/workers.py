"""The thread pool for requests to the Hub: a fixed limit on parallel requests for all repositories together.

The threads are daemons, unlike those of `concurrent.futures`, for which an interpreter that ends on Ctrl-C would wait.

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
"""Fewer make 191 shards wait; more gain nothing, since a request takes about a millisecond of one CPU core."""

_jobs: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()
_threads: list[threading.Thread] = []
_starting = threading.Lock()


def submit(job: Callable[[], T]) -> Future[T]:
    """Run a job in the thread pool; jobs start in the order in which they were submitted.

    Raises:
        MemoryError: no thread can be started.
    """
    future: Future[T] = Future()
    _jobs.put((future, job))
    with _starting:
        if len(_threads) < MOST_WORKERS:
            thread = threading.Thread(target=_work, name="atlas-hub", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # out of threads or memory; the existing threads do the work, more slowly
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
