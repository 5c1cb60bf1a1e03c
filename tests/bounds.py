"""For fuzz tests: how many examples, choices read from bytes, and a bound on the time and the memory of each example."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings

MOST_SECONDS = 20
"""For one example on a busy machine; each takes milliseconds."""

MOST_MEMORY = 2**30
"""Beyond what the process has when an example starts."""


def fuzz(examples: int) -> settings:
    """So many examples, the same each time; or as many new ones as ATLAS_FUZZ_EXAMPLES says."""
    return settings(
        max_examples=int(os.environ.get("ATLAS_FUZZ_EXAMPLES", examples)),
        deadline=None,
        database=None,
        derandomize="ATLAS_FUZZ_EXAMPLES" not in os.environ,
        suppress_health_check=list(HealthCheck),
    )


class TookTooLong(BaseException):
    """No `except Exception` on the way stops it."""


@contextmanager
def bounded() -> Iterator[None]:
    """Ends what hangs or grows: by `TookTooLong`, or by a MemoryError."""

    def stop(*_: object) -> None:
        raise TookTooLong

    statm = Path("/proc/self/statm")
    limits = resource.getrlimit(resource.RLIMIT_AS)
    if statm.exists():
        used = int(statm.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MOST_MEMORY, limits[1]))
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, MOST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        resource.setrlimit(resource.RLIMIT_AS, limits)


class Choices:
    """Choices read from bytes, so that hypothesis draws once and shrinks towards the first option of each."""

    def __init__(self, raw: bytes) -> None:
        self.raw = iter(raw)

    def below(self, limit: int) -> int:
        return (next(self.raw, 0) * 256 + next(self.raw, 0)) % limit

    def of(self, options: Sequence[Any]) -> Any:
        return options[self.below(len(options))]
