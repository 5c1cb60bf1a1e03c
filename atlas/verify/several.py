"""Several checkpoints at once: checked concurrently, each told as soon as it is known, and none stops the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path

from atlas.errors import AtlasError, Refusal, UsageError
from atlas.files import read_text
from atlas.verify.result import Failed, Source, Verification

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
    with ThreadPoolExecutor(at_once) as workers:
        asked: dict[Future[Outcome], int] = {
            workers.submit(_one, repo, check): i for i, repo in enumerate(repos)
        }
        try:
            for done in as_completed(asked):
                yield asked[done], done.result()
        finally:
            for future in asked:
                future.cancel()


def _one(repo: str, check: Callable[[str], Verification]) -> Outcome:
    try:
        return check(repo)
    except AtlasError as error:
        refusal = Refusal(error.code, error.message, error.hint)
        return Failed(Source("hub", repo, None, repo), refusal, error.exit_code)


def listed(path: Path) -> list[str]:
    """The repositories of a file: one a line; empty lines and those that begin with # are left out.

    Raises:
        UsageError: it cannot be read, or lists none.
    """
    lines = read_text(path, "--repos-from").splitlines()
    repos = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if not repos:
        raise UsageError(
            f"--repos-from {path} lists no repository",
            hint="write one id a line, such as meta-llama/Llama-3.2-1B",
        )
    return repos
