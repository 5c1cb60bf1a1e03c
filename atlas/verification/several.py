"""Several checkpoints at once: checked concurrently, each told as soon as it is known, and none stops the others."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue

from atlas.errors import AtlasError, Refusal, UsageError
from atlas.files import read_text
from atlas.verification.result import Failed, Source, Verification

AT_ONCE = 4
"""Repositories checked at the same time; each has several requests under way."""

Outcome = Verification | Failed


def outcomes(
    repos: Sequence[str], check: Callable[[str], Verification], *, at_once: int = AT_ONCE
) -> Iterator[tuple[int, Outcome]]:
    """(position, what became of it) of each repository, in the order in which they are done.

    Args:
        at_once: how many are checked at the same time. One after the other they are checked in this thread, which is right
            for data on disk: one checkpoint has the whole machine read it, and Ctrl-C reaches no other thread.
    """
    if at_once == 1:
        yield from ((i, _one(repo, check)) for i, repo in enumerate(repos))
        return
    waiting: SimpleQueue[tuple[int, str]] = SimpleQueue()
    done: SimpleQueue[tuple[int, Outcome | BaseException]] = SimpleQueue()
    for asked in enumerate(repos):
        waiting.put(asked)
    # Daemons: on Ctrl-C the process ends without waiting for what the Hub has yet to answer.
    for started in range(min(at_once, len(repos))):
        thread = threading.Thread(target=_work, args=(waiting, done, check), name="atlas-verify", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # of threads or of memory; those that there are do it all
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
        except BaseException as error:  # none of a repository's, but whoever waits must hear of it
            done.put((i, error))


def _drain(waiting: SimpleQueue[tuple[int, str]]) -> None:
    """Take back what nobody has begun."""
    while True:
        try:
            waiting.get_nowait()
        except Empty:
            return


def _one(repo: str, check: Callable[[str], Verification]) -> Outcome:
    """What became of one repository; whatever goes wrong is its own, and the others' results stay."""
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


def listed(path: Path) -> list[str]:
    """The repositories of a file: one a line; empty lines and those that begin with # are left out.

    Raises:
        UsageError: it cannot be read, or lists none.
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
