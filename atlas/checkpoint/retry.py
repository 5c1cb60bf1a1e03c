"""Asking the Hub again: which failures pass by themselves, how long to wait, and when to give up.

huggingface_hub has such a loop too, for downloads: it prints a line for each failure, waits as long as a server asks it
to, five minutes if need be, and closes the session that other threads are using. For a check of a few seconds it must be
quiet and short.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from atlas.checkpoint.settings import http, seconds_asked

T = TypeVar("T")

WAITS = (0.5, 1.0, 2.0)
"""Seconds between the attempts, where the server asks for none; half of each is chance, so that not all return at once."""
LONGEST_WAIT = 30
"""Seconds that a server may ask for; more, and the user is told instead."""
_PASSING = frozenset({408, 429, 500, 502, 503, 504})


def with_retries(ask: Callable[[], T]) -> T:
    """What `ask` returns, asked up to four times.

    Raises:
        Exception: the last failure, with a note of how often it was met.
    """
    for wait in WAITS:
        try:
            return ask()
        except http().HTTPError as error:
            pause = _pause(error, wait)
            if pause is None:
                raise
        time.sleep(pause)
    try:
        return ask()
    except http().HTTPError as error:
        error.add_note(f"asked {len(WAITS) + 1} times")
        raise


def _pause(error: Exception, wait: float) -> float | None:
    """Seconds to wait before another attempt; None where there is no point in one."""
    response = getattr(error, "response", None)
    if response is not None:
        if response.status_code not in _PASSING:
            return None
        asked = seconds_asked(response.headers)
        if asked is not None:
            return asked if asked <= LONGEST_WAIT else None
    elif not isinstance(error, (http().NetworkError, http().RemoteProtocolError, http().ReadTimeout)):
        return None
    return random.uniform(wait / 2, wait)
