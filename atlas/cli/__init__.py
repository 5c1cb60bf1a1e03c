"""The command line: one file for each group of commands. It parses, calls, shows and sets the exit code; no arithmetic.

Everything heavy is imported inside the command that needs it, so that `atlas params` pays for neither torch nor the Hub.
"""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from typing import Annotated, NoReturn

# Starting up makes tens of thousands of objects that stay; at the usual threshold the collector would go through
# them dozens of times, which is felt in a command that is over in a fifth of a second.
gc.set_threshold(500_000, 10, 10)

import typer  # noqa: E402

from atlas.errors import AtlasError, Failure, Refusal  # noqa: E402
from atlas.report import console  # noqa: E402
from atlas.version import __version__  # noqa: E402

# command -> the file of atlas.cli that holds it
COMMANDS = {
    "models": "models",
    "params": "params",
    "trace": "trace",
    "explain": "explain",
    "memory": "memory",
    "flops": "memory",
    "verify": "verify",
    "run": "run",
    "diff": "diff",
    "specs": "specs",
    "evidence": "evidence",
    "schema": "schema",
}


def application(only: str | None = None) -> typer.Typer:
    """The command line, whole or with the commands of one file of `atlas.cli`.

    Typer inspects every command it knows before it runs one, which takes longer than `atlas params` takes to count; so
    `main` asks for the one it needs, without the options that install completion.
    """
    made = typer.Typer(
        name="atlas",
        help="Open language models described once, as data: counted, traced, verified and run from it.",
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_enable=False,
        add_completion=only is None,
    )
    made.callback()(root)
    for file in [only] if only else dict.fromkeys(COMMANDS.values()):
        import_module(f"atlas.cli.{file}").register(made)
    return made


COMPLETES = {"_ATLAS_COMPLETE", "_OPEN_MODEL_ATLAS_COMPLETE"}
"""Set by the shell where it asks for completions: then every command is needed."""


INTERRUPTED = 130
"""128 + SIGINT, what a shell sees of a program that Ctrl-C has ended."""

READER_GONE = 141
"""128 + SIGPIPE, what a shell sees of a program whose reader has gone away."""


def _version(wanted: bool) -> None:
    if wanted:
        console.write(f"atlas {__version__}")
        raise typer.Exit


def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No notes, warnings or progress.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show a traceback where something fails.")] = False,
) -> None:
    console.quiet = quiet


def __getattr__(name: str) -> object:
    """`app`, with every command, made when it is asked for."""
    if name == "app":
        return application()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def main() -> NoReturn:
    """The entry point: runs a command and turns whatever it raises into one line and an exit code."""
    console.open_streams()
    try:
        code = _run(_hoisted(sys.argv[1:]))
        console.flush()
    except (console.ReaderGoneError, BrokenPipeError):
        console.drop(sys.stdout)
        code = READER_GONE
    except console.OutputError as failure:
        console.drop(sys.stdout)
        code = _report(failure, as_json=False)
    except KeyboardInterrupt:
        code = INTERRUPTED
    if code == INTERRUPTED:
        # All is written. An interpreter that ends in order would wait for huggingface_hub's threads: a download's last byte.
        if downloads := sys.modules.get("atlas.checkpoint.download"):
            downloads.sweep()
        os._exit(code)
    gc.freeze()  # what is left need not be gone through once more on the way out
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    """The exit code of a command, which has printed its answer or why there is none."""
    command = next((COMMANDS[word] for word in arguments if word in COMMANDS), None)
    completes = not COMPLETES.isdisjoint(os.environ)
    chosen = application(None if completes else command)
    try:
        code = chosen(arguments, standalone_mode=False)
    except (console.ReaderGoneError, console.OutputError, BrokenPipeError):
        raise
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except SystemExit:
        if completes:
            raise
        raise console.ReaderGoneError from None  # what Typer makes of it while it prints --help
    except Exception as failure:
        if isinstance(failure, OSError) and failure.errno in console.FULL:  # while Typer prints --help
            raise console.cannot_write(failure) from None
        if "--debug" in arguments:
            import traceback

            traceback.print_exc()
        return _report(failure, as_json="--json" in arguments)
    return code if isinstance(code, int) else 0


def _report(failure: Exception, *, as_json: bool) -> int:
    if isinstance(failure, AtlasError):
        code, exit_code, message, hint = failure.code, failure.exit_code, failure.message, failure.hint
    elif hasattr(failure, "format_message") and hasattr(failure, "exit_code"):
        # Misuse, as Typer reports it; its class is not part of Typer's public names.
        code, exit_code, message = (
            "usage",
            2,
            str(failure.format_message()).removesuffix(".").replace("Value error, ", ""),
        )
        hint = "see `atlas --help`, or a command's own --help"
        if not message:
            return 2
    elif isinstance(failure, MemoryError):
        code, exit_code, message, hint = "memory", 2, "out of memory", ""
    else:
        code, exit_code, hint = (
            "internal",
            2,
            "this is a fault of the atlas: run again with --debug and report it",
        )
        message = f"{type(failure).__name__}: {failure}"
    if as_json:
        console.json(Failure(Refusal(code, message, hint)))
    else:
        console.error(message, hint)
    return int(exit_code)


def _hoisted(arguments: list[str]) -> list[str]:
    """`--quiet` and `--debug` may stand after the command too; Typer wants them before it."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    general = {"--quiet", "-q", "--debug"}
    first = [
        word
        for i, word in enumerate(arguments[:end])
        if word in general and arguments[i - 1 : i] != ["--prompt"]
    ]
    rest = [
        word
        for i, word in enumerate(arguments)
        if i >= end or word not in general or arguments[i - 1 : i] == ["--prompt"]
    ]
    return first + rest
