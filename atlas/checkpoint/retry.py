"""The retry policy for requests to the Hub: which failures are transient, how long to wait, when to give up.

huggingface_hub's own retry loop prints a line for each failure, waits up to five minutes if the server asks for it, and
closes the session that other threads use. A check of a few seconds needs a quiet and short one.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from atlas.checkpoint.settings import http, seconds_asked

T = TypeVar("T")

WAITS = (0.5, 1.0, 2.0)
"""Seconds between attempts where the server states none; up to half of each is random jitter."""
LONGEST_WAIT = 30
"""The longest Retry-After that is obeyed, in seconds; a longer one is reported to the user."""
_TRANSIENT = frozenset({408, 429, 500, 502, 503, 504})


def with_retries(ask: Callable[[], T]) -> T:
    """Call `ask` up to four times and return its result.

    Raises:
        Exception: the last failure, with a note of the number of attempts.
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
        error.add_note(f"after {len(WAITS) + 1} attempts")
        raise


def _pause(error: Exception, wait: float) -> float | None:
    """Seconds to wait before the next attempt; None where a retry cannot help."""
    response = getattr(error, "response", None)
    if response is not None:
        if response.status_code not in _TRANSIENT:
            return None
        asked = seconds_asked(response.headers)
        if asked is not None:
            return asked if asked <= LONGEST_WAIT else None
    elif not isinstance(error, (http().NetworkError, http().RemoteProtocolError, http().ReadTimeout)):
        return None
    return random.uniform(wait / 2, wait)
