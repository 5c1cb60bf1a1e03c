"""`atlas`, and `python -m atlas`."""

from __future__ import annotations

import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import NoReturn


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    """Ctrl-C where nothing has begun, or nothing is left to do: end at once.

    An exception would not do: raised in the middle of an import it may be printed and dropped, or turned into another.
    """
    import os

    os._exit(130)


def main() -> NoReturn:
    """The entry point: Ctrl-C ends it in silence from the first import on."""
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if ours:  # else whoever started this has Ctrl-C ignored or handles it
        signal.signal(signal.SIGINT, _leave)
    from atlas.cli import main as run

    run(_leave if ours else None)


if __name__ == "__main__":
    main()
