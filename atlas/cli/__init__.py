"""The command line: one file for each group of commands. It parses, calls, prints and sets the exit code; no arithmetic.

Each command imports what it needs when it runs, so that `atlas params` loads neither torch nor the Hub client. Nothing but
`atlas.__main__` imports this room.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

# Starting up makes tens of thousands of objects that stay. At the usual threshold the collector would go through them dozens
# of times, which is noticeable in a command that takes a fifth of a second.
gc.set_threshold(500_000, 10, 10)

import typer  # noqa: E402
from typer.main import get_command  # noqa: E402

from atlas.cli import arguments, completion  # noqa: E402
from atlas.cli.application import COMMANDS, application  # noqa: E402
from atlas.errors import AtlasError, Failure, Refusal, UsageError, clipped  # noqa: E402
from atlas.report import console  # noqa: E402

Handler = Callable[[int, FrameType | None], NoReturn]

INTERRUPTED = 130
"""128 + SIGINT: what a shell reports of a program that Ctrl-C has ended."""

READER_GONE = 141
"""128 + SIGPIPE: what a shell reports of a program whose reader has gone away."""


def __getattr__(name: str) -> object:
    """`app`, with every command, made on first use."""
    if name == "app":
        return application()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def main(leave: Handler | None = None) -> NoReturn:
    """The entry point: runs a command and turns whatever it raises into one line and an exit code.

    Args:
        leave: the handler of Ctrl-C before and after a command, when there is nothing to clean up: it ends the process.
    """
    console.answered = False
    try:
        console.open_streams()
        if leave is not None:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        code = _run(sys.argv[1:])
        console.flush()
    except (console.ReaderGoneError, BrokenPipeError):
        console.drop(sys.stdout)
        code = READER_GONE
    except console.OutputError as failure:
        console.drop(sys.stdout)
        code = _report(failure, as_json=False)
    except KeyboardInterrupt:
        code = INTERRUPTED
    if leave is not None:  # everything is written, and a second Ctrl-C need not wait for the rest
        signal.signal(signal.SIGINT, leave)
    if code == INTERRUPTED:
        # An interpreter that ends in order would wait for huggingface_hub's threads: a download's last byte.
        if downloads := sys.modules.get("atlas.checkpoint.download"):
            downloads.remove_partial_files()
        os._exit(code)
    gc.freeze()  # the collector need not go through what is left once more on the way out
    sys.exit(code)


def _run(words: list[str]) -> int:
    """Run a command, which prints its answer or its error. Returns the exit code."""
    name = next((COMMANDS[word] for word in words if word in COMMANDS), None)
    asked_by_shell = not completion.ASKED_BY_SHELL.isdisjoint(os.environ)
    as_json = debug = False
    try:
        completion.require_request()
        completes = name is None and completion.wanted(words)
        chosen = get_command(application(None if asked_by_shell else name, completes=asked_by_shell))
        valued = arguments.valued_options(chosen)
        as_json, debug = (arguments.asks_for(option, words, valued) for option in ("--json", "--debug"))
        code = chosen(
            arguments.hoisted(words, valued),
            prog_name=completion.program(sys.argv[0]),
            standalone_mode=False,
        )
    except (console.ReaderGoneError, console.OutputError, BrokenPipeError):
        raise
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except SystemExit as ended:
        if asked_by_shell:
            raise
        if isinstance(ended.__context__, BrokenPipeError):  # what Typer makes of it while it prints --help
            raise console.ReaderGoneError from None
        return 2 if ended.code else 0
    except Exception as failure:
        if isinstance(failure, OSError) and not failure.filename and failure.errno in console.UNWRITABLE:
            raise console.cannot_write(failure) from None  # while Typer prints --help
        if debug:
            import traceback

            traceback.print_exc()
        return _report(failure, as_json=as_json, command=_command(words))
    code = code if isinstance(code, int) else 0
    return 2 if completes and code else code


def _command(words: list[str]) -> str:
    """The command that a command line names, as its help is asked for: `atlas memory`, `atlas specs check`."""
    at = next((i for i, word in enumerate(words) if word in COMMANDS), None)
    if at is None:
        return "atlas"
    names = words[at : at + 2] if words[at] in {"specs", "evidence"} else words[at : at + 1]
    return " ".join(["atlas", *(name for name in names if name in {*COMMANDS, "import", "check"})])


def _report(failure: Exception, *, as_json: bool, command: str = "atlas") -> int:
    """Print why a command failed. Returns the exit code."""
    exit_code = 2
    if isinstance(failure, AtlasError):
        code, exit_code, message, hint = failure.code, failure.exit_code, failure.message, failure.hint
        if isinstance(failure, UsageError) and not hint and message.startswith("--"):
            hint = f"see `{command} --help`"
    elif hasattr(failure, "format_message") and hasattr(failure, "exit_code"):
        # Misuse, as Typer reports it; its class is not part of Typer's public names.
        message = str(failure.format_message()).removesuffix(".").replace("Value error, ", "")
        code, hint = "usage", f"see `{command} --help`"
        if not message:
            return 2
    elif isinstance(failure, MemoryError):
        code, message, hint = "memory", "out of memory", ""
    elif isinstance(failure, OSError) and isinstance(failure.filename, str):
        code, message, hint = "system", f"{failure.filename}: {failure.strerror or 'cannot be used'}", ""
    else:
        code, message = "internal", "the command failed unexpectedly"
        hint = "this is a bug of the atlas: run again with --debug and report it"
    if as_json and not console.answered:
        console.json(Failure(Refusal(code, clipped(message), clipped(hint))))
    else:
        console.error(clipped(message), clipped(hint))
    return int(exit_code)
