"""The threads: who takes what, Ctrl-C, and errors that are nobody's finding."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from functools import partial

import pytest

from atlas.verification.deep.thread_pool import MOST_THREADS, Job, ThreadPool, useful_threads


class WorkItem:
    """So many blocks, each of which is one call."""

    def __init__(self, blocks: int, do: Callable[[int, threading.Event], int], most: int = 8) -> None:
        self.most = most
        self.left = iter(range(blocks))
        self.do = do

    def take(self) -> Job | None:
        i = next(self.left, None)
        return None if i is None else partial(self.do, i)


def test_every_block_once_and_in_turn() -> None:
    taken: list[tuple[str, int]] = []

    def item(name: str, blocks: int) -> WorkItem:
        def do(i: int, stop: threading.Event) -> int:
            taken.append((name, i))
            return 10

        return WorkItem(blocks, do)

    calls: list[int] = []
    assert ThreadPool([item("a", 3), item("b", 0), item("c", 4)], calls.append).run(1) == 70
    assert taken == [("a", 0), ("a", 1), ("a", 2), ("c", 0), ("c", 1), ("c", 2), ("c", 3)]
    assert calls[-1] == 70


def test_files_before_company() -> None:
    """Two threads take two items; the third is theirs as soon as one is done, and then they share what is left."""
    at: dict[str, set[int]] = {name: set() for name in "abc"}
    together = threading.Barrier(2)

    def item(name: str, most: int = 2) -> WorkItem:
        def do(i: int, stop: threading.Event) -> int:
            at[name].add(threading.get_ident())
            together.wait(5)
            return 1

        return WorkItem(2, do, most)

    assert ThreadPool([item("a"), item("b"), item("c")], lambda done: None).run(2) == 6
    assert len(at["a"]) == len(at["b"]) == 1
    assert len(at["c"]) == 2


def test_no_more_in_a_lane_than_are_of_use() -> None:
    here, most = 0, 0
    lock = threading.Lock()

    def do(i: int, stop: threading.Event) -> int:
        nonlocal here, most
        with lock:
            here += 1
            most = max(most, here)
        time.sleep(0.005)
        with lock:
            here -= 1
        return 1

    assert ThreadPool([WorkItem(20, do, most=2)], lambda done: None).run(6) == 20
    assert most == 2


def test_nothing_to_read() -> None:
    calls: list[int] = []
    assert ThreadPool([], calls.append).run(3) == 0
    assert calls == [0]


def test_an_error_of_a_thread_comes_out() -> None:
    def do(i: int, stop: threading.Event) -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ThreadPool([WorkItem(5, do)], lambda done: None).run(3)


@pytest.mark.parametrize("hangs", [True, False], ids=["in a read that hangs", "between blocks"])
def test_ctrl_c_ends_within_a_second(hangs: bool) -> None:
    """A disk that does not answer is not waited for; blocks that follow each other are no longer taken."""
    release = threading.Event()
    done = 0

    def do(i: int, stop: threading.Event) -> int:
        nonlocal done
        release.wait(30 if hangs else 0.001)
        done += 1
        return 1

    begin = time.monotonic()
    threading.Timer(0.2, signal.raise_signal, [signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        ThreadPool([WorkItem(10**9, do)], lambda read: None).run(2)
    assert time.monotonic() - begin < 1.2
    so_far = done
    time.sleep(0.05)
    assert done == so_far
    release.set()


def test_as_many_threads_as_processors_within_a_bound() -> None:
    assert 1 <= useful_threads() <= MOST_THREADS


@pytest.mark.parametrize("allowed", [0, 1, 3])
def test_a_system_that_allows_few_threads(monkeypatch: pytest.MonkeyPatch, allowed: int) -> None:
    start, left = threading.Thread.start, [allowed]

    def limited(thread: threading.Thread) -> None:
        if not left[0]:
            raise RuntimeError("can't start new thread")
        left[0] -= 1
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    pool = ThreadPool([WorkItem(5, lambda i, stop: 10)], lambda done: None)
    if allowed:
        assert pool.run(4) == 50
    else:
        with pytest.raises(MemoryError):
            pool.run(4)
