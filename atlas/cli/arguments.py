"""What a command line says, before Typer reads it or where Typer could not."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

_GENERAL = {"--quiet", "-q", "--debug"}
_JSON = {"--json"[:length] for length in range(3, 7)}
"""`--json` and what begins it: an unknown `--js` is answered as JSON too, since that is what was meant."""


def valued_options(command: Any) -> frozenset[str]:
    """The options of a command and of those below it that take a value, as they are spelled.

    Args:
        command: what Typer makes of the command line; its class is not part of Typer's public names.
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
    """Where the options stand; the word after one that takes a value is that value, whatever it looks like."""
    found = []
    i = 0
    while i < len(arguments) and arguments[i] != "--":
        if arguments[i].startswith("-"):
            found.append(i)
        i += 2 if arguments[i] in valued else 1
    return found


def hoisted(arguments: Sequence[str], valued: Collection[str]) -> list[str]:
    """`--quiet` and `--debug` may stand after the command too; Typer wants them before it."""
    general = [i for i in options(arguments, valued) if arguments[i] in _GENERAL]
    return [arguments[i] for i in general] + [word for i, word in enumerate(arguments) if i not in general]


def asks_for(name: str, arguments: Sequence[str], valued: Collection[str]) -> bool:
    """Whether an option is given, also where it is given wrongly: with a value, or before the command."""
    names = _JSON if name == "--json" else {name}
    return any(arguments[i].partition("=")[0] in names for i in options(arguments, valued))
