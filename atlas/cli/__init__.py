"""The command line: one file for each group of commands. It parses, calls, shows and sets the exit code; no arithmetic.

Everything heavy is imported inside the command that needs it, so that `atlas params` pays for neither torch nor the Hub.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from types import FrameType
from typing import Annotated, Any, NoReturn

# Starting up makes tens of thousands of objects that stay; at the usual threshold the collector would go through
# them dozens of times, which is felt in a command that is over in a fifth of a second.
gc.set_threshold(500_000, 10, 10)

import typer  # noqa: E402
from typer.core import TyperCommand, TyperGroup  # noqa: E402
from typer.main import get_command  # noqa: E402

from atlas.cli import arguments, completion  # noqa: E402
from atlas.errors import AtlasError, Failure, Refusal, clipped  # noqa: E402
from atlas.report import console  # noqa: E402
from atlas.version import __version__  # noqa: E402

Handler = Callable[[int, FrameType | None], NoReturn]

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


class _Command(TyperCommand):
    """A command whose help, which is our own text, may be coloured; see `atlas.report.guard`."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        with console.own_styles():
            super().format_help(ctx, formatter)


class _Group(TyperGroup):
    """The same of a group of commands."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        with console.own_styles():
            super().format_help(ctx, formatter)


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
        cls=_Group,
        pretty_exceptions_enable=False,
        add_completion=only is None,
    )
    made.callback()(root)
    for file in [only] if only else dict.fromkeys(COMMANDS.values()):
        import_module(f"atlas.cli.{file}").register(made)
    _dressed(made)
    return made


def _dressed(made: typer.Typer) -> None:
    """Give every command and group the classes above."""
    made.info.cls = _Group
    for command in made.registered_commands:
        command.cls = _Command
    for group in made.registered_groups:
        if group.typer_instance is not None:
            _dressed(group.typer_instance)


INTERRUPTED = 130
"""128 + SIGINT, what a shell sees of a program that Ctrl-C has ended."""

READER_GONE = 141
"""128 + SIGPIPE, what a shell sees of a program whose reader has gone away."""


def _version(wanted: bool) -> None:
    if wanted:
        console.line(f"atlas {__version__}")
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


def main(leave: Handler | None = None) -> NoReturn:
    """The entry point: runs a command and turns whatever it raises into one line and an exit code.

    Args:
        leave: what Ctrl-C does before and after a command, when there is nothing to clean up: it ends the process.
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
    if leave is not None:  # all is written, and a second Ctrl-C need not wait for what is left
        signal.signal(signal.SIGINT, leave)
    if code == INTERRUPTED:
        # An interpreter that ends in order would wait for huggingface_hub's threads: a download's last byte.
        if downloads := sys.modules.get("atlas.checkpoint.download"):
            downloads.remove_partial_files()
        os._exit(code)
    gc.freeze()  # what is left need not be gone through once more on the way out
    sys.exit(code)


def _run(words: list[str]) -> int:
    """The exit code of a command, which has printed its answer or why there is none."""
    name = next((COMMANDS[word] for word in words if word in COMMANDS), None)
    asked_by_shell = not completion.ASKED_BY_SHELL.isdisjoint(os.environ)
    as_json = debug = False
    try:
        completes = name is None and completion.wanted(words)
        chosen = get_command(application(None if asked_by_shell else name))
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
        return _report(failure, as_json=as_json)
    code = code if isinstance(code, int) else 0
    return 2 if completes and code else code


def _report(failure: Exception, *, as_json: bool) -> int:
    exit_code = 2
    if isinstance(failure, AtlasError):
        code, exit_code, message, hint = failure.code, failure.exit_code, failure.message, failure.hint
    elif hasattr(failure, "format_message") and hasattr(failure, "exit_code"):
        # Misuse, as Typer reports it; its class is not part of Typer's public names.
        message = str(failure.format_message()).removesuffix(".").replace("Value error, ", "")
        code, hint = "usage", "see `atlas --help`, or a command's own --help"
        if not message:
            return 2
    elif isinstance(failure, MemoryError):
        code, message, hint = "memory", "out of memory", ""
    elif isinstance(failure, OSError) and isinstance(failure.filename, str):
        code, message, hint = "system", f"{failure.filename}: {failure.strerror or 'cannot be used'}", ""
    else:
        code, message = "internal", "the command failed in a way that the atlas does not expect"
        hint = "this is a fault of the atlas: run again with --debug and report it"
    if as_json and not console.answered:
        console.json(Failure(Refusal(code, clipped(message), clipped(hint))))
    else:
        console.error(clipped(message), clipped(hint))
    return int(exit_code)
