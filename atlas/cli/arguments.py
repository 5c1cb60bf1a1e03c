"""The command line read by itself: before Typer parses it, and when Typer cannot."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

_GENERAL = {"--quiet", "-q", "--debug"}
_JSON = {"--json"[:length] for length in range(3, 7)}
"""`--json` and its prefixes: the error about an unknown `--js` is JSON too, since that is what was meant."""


def valued_options(command: Any) -> frozenset[str]:
    """The spellings of the options that take a value, of a command and its subcommands.

    Args:
        command: the command that Typer built; its class is not one of Typer's public names.
    """
    found = {
        spelling
        for parameter in command.params
        if parameter.param_type_name == "option" and not parameter.is_flag
        for spelling in (*parameter.opts, *parameter.secondary_opts)
    }
    for below in getattr(command, "commands", {}).values():
        found |= valued_options(below)
    return frozenset(found)


def options(arguments: Sequence[str], valued: Collection[str]) -> list[int]:
    """The positions of the options. The word after an option that takes a value is the value, whatever it looks like."""
    found = []
    i = 0
    while i < len(arguments) and arguments[i] != "--":
        if arguments[i].startswith("-"):
            found.append(i)
        i += 2 if arguments[i] in valued else 1
    return found


def hoisted(arguments: Sequence[str], valued: Collection[str]) -> list[str]:
    """The command line with `--quiet` and `--debug` first, where Typer expects them: users may put them after the command."""
    general = [i for i in options(arguments, valued) if arguments[i] in _GENERAL]
    return [arguments[i] for i in general] + [word for i, word in enumerate(arguments) if i not in general]


def asks_for(name: str, arguments: Sequence[str], valued: Collection[str]) -> bool:
    """Whether an option is given, even wrongly: with a value, or before the command."""
    names = _JSON if name == "--json" else {name}
    return any(arguments[i].partition("=")[0] in names for i in options(arguments, valued))
