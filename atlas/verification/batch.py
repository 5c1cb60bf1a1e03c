"""Several checkpoints in one call: checked concurrently, each reported when it is done; a failure does not stop the others."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue

from atlas.errors import AtlasError, Refusal, UsageError
from atlas.files import read_text
from atlas.verification.result import Failed, Source, Verification

AT_ONCE = 4
"""Repositories checked at the same time; each sends several requests at once."""

Outcome = Verification | Failed


def outcomes(
    repos: Sequence[str], check: Callable[[str], Verification], *, at_once: int = AT_ONCE
) -> Iterator[tuple[int, Outcome]]:
    """(position, outcome) of each repository, in the order in which they finish.

    Args:
        at_once: how many are checked at the same time. With 1 they are checked in this thread, one after the other. That is right
            for data on disk: every processor reads the same checkpoint, and only the main thread receives Ctrl-C.
    """
    if at_once == 1:
        yield from ((i, _one(repo, check)) for i, repo in enumerate(repos))
        return
    waiting: SimpleQueue[tuple[int, str]] = SimpleQueue()
    done: SimpleQueue[tuple[int, Outcome | BaseException]] = SimpleQueue()
    for asked in enumerate(repos):
        waiting.put(asked)
    # Daemons: on Ctrl-C the process ends without waiting for the Hub's answers.
    for started in range(min(at_once, len(repos))):
        thread = threading.Thread(target=_work, args=(waiting, done, check), name="atlas-verify", daemon=True)
        try:
            thread.start()
        except (
            RuntimeError
        ):  # the system has no room for more threads; those that were started do all the work
            if not started:
                raise MemoryError("no thread can be started") from None
            break
    try:
        for _ in repos:
            i, outcome = done.get()
            if isinstance(outcome, BaseException):
                raise outcome
            yield i, outcome
    finally:
        _drain(waiting)


def _work(
    waiting: SimpleQueue[tuple[int, str]],
    done: SimpleQueue[tuple[int, Outcome | BaseException]],
    check: Callable[[str], Verification],
) -> None:
    while True:
        try:
            i, repo = waiting.get_nowait()
        except Empty:
            return
        try:
            done.put((i, _one(repo, check)))
        except BaseException as error:  # not the repository's fault; raised in the thread that waits
            done.put((i, error))


def _drain(waiting: SimpleQueue[tuple[int, str]]) -> None:
    """Remove the repositories that no thread has started."""
    while True:
        try:
            waiting.get_nowait()
        except Empty:
            return


def _one(repo: str, check: Callable[[str], Verification]) -> Outcome:
    """The outcome of one repository; an error becomes its outcome and does not stop the others."""
    try:
        return check(repo)
    except AtlasError as error:
        refusal, exit_code = Refusal(error.code, error.message, error.hint), error.exit_code
    except MemoryError:
        refusal, exit_code = Refusal("memory", "out of memory", ""), 2
    except Exception as error:
        hint = "this is a fault of the atlas: verify this one alone with --debug and report it"
        refusal, exit_code = Refusal("internal", f"{type(error).__name__}: {error}", hint), 2
    return Failed(Source("hub", repo, None, repo), refusal, exit_code)


def read_repository_list(path: Path) -> list[str]:
    """The repositories in a file, one id a line; empty lines and lines that begin with # are skipped.

    Raises:
        UsageError: the file cannot be read, or lists no repository.
    """
    # Editors on Windows put a byte order mark first.
    lines = read_text(path, "--repos-from").removeprefix("\ufeff").splitlines()
    repos = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if not repos:
        raise UsageError(
            f"--repos-from {path} lists no repository",
            hint="write one id a line, such as meta-llama/Llama-3.2-1B",
        )
    return repos
