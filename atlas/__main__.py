"""`atlas`, and `python -m atlas`."""

from __future__ import annotations

import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import NoReturn


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    """The handler of Ctrl-C before and after the command: end at once.

    KeyboardInterrupt would not do: raised in the middle of an import it may be printed and dropped, or become another error.
    """
    import os

    os._exit(130)


def main() -> NoReturn:
    """The entry point. Ctrl-C ends it silently from the first import on."""
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if ours:  # otherwise the parent process has set SIGINT to be ignored or handled
        signal.signal(signal.SIGINT, _leave)
    from atlas.cli import main as run

    run(_leave if ours else None)


if __name__ == "__main__":
    main()
