"""The commands as one Typer application, with examples in their help and values to complete."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from inspect import cleandoc
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from atlas.cli import examples
from atlas.report import console
from atlas.version import __version__

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
"""Each command, and the file of `atlas.cli` that has it."""


class _Command(TyperCommand):
    """A command whose help may be coloured, since it is our own text (see `atlas.report.guard`)."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _hide_types_of_flags(self.get_params(ctx))
        with console.own_styles():
            super().format_help(ctx, formatter)


class _Group(TyperGroup):
    """The same for a group of commands."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _hide_types_of_flags(self.get_params(ctx))
        with console.own_styles():
            super().format_help(ctx, formatter)


def _hide_types_of_flags(parameters: list[Any]) -> None:
    """Show `--json` without a `<bool>` after it: a flag takes no value."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""


def application(only: str | None = None, *, completes: bool = False) -> typer.Typer:
    """The command line, whole or with the commands of one file of `atlas.cli`.

    Typer inspects every command it knows before it runs one, which takes longer than `atlas params` takes to count. So
    `main` asks for the one file it needs, without the options that install completion.

    Args:
        completes: whether a shell asks for completions, so that arguments and options need their possible values.
    """
    made = typer.Typer(
        name="atlas",
        help="Count, trace, verify and run open language models, each described once as data.",
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        cls=_Group,
        pretty_exceptions_enable=False,
        add_completion=only is None,
    )
    made.callback()(root)
    for file in [only] if only else dict.fromkeys(COMMANDS.values()):
        import_module(f"atlas.cli.{file}").register(made)
    _finish(made, completes=completes)
    return made


def _finish(made: typer.Typer, prefix: str = "", *, completes: bool) -> None:
    """Give every command and group the classes above, its examples and, for a shell, its values."""
    made.info.cls = _Group
    for command in made.registered_commands:
        command.cls = _Command
        command.epilog = examples.epilog(f"{prefix}{command.name}")
        command.help = _description(command.callback)
        if completes and command.callback is not None:
            from atlas.cli import values

            values.attach(command.callback)
    for group in made.registered_groups:
        if group.typer_instance is not None:
            _finish(group.typer_instance, f"{group.name} ", completes=completes)


def _description(callback: Callable[..., Any] | None) -> str:
    """A command's docstring without its own example: the epilog shows those."""
    paragraphs = cleandoc((callback and callback.__doc__) or "").split("\n\n")
    return "\n\n".join(text for text in paragraphs if not text.startswith("Example"))


def _version(wanted: bool) -> None:
    if wanted:
        console.line(f"atlas {__version__}")
        raise typer.Exit


def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print no notes, warnings or progress.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Print a traceback if the command fails.")] = False,
) -> None:
    console.quiet = quiet
