"""Shell completion: which shell it is for, and the name the program was started by."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import PurePath

from atlas.errors import UsageError

PROGRAMS = ("atlas", "open-model-atlas", "hf-atlas")
"""The console scripts."""

ASKED_BY_SHELL = {f"_{program.replace('-', '_').upper()}_COMPLETE" for program in PROGRAMS}
"""Environment variables of a shell that asks for completions; then every command is loaded."""

OPTIONS = {"--show-completion", "--install-completion"}

SHELLS = ("bash", "zsh", "fish", "powershell", "pwsh")

_TAKES_A_SHELL = "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION"
"""If this is set, Typer's two options take a shell's name; otherwise they detect the shell that started them."""


def program(started_as: str) -> str:
    """The console script that completion is installed for; `atlas` for `python -m atlas`."""
    name = PurePath(started_as).stem
    return name if name in PROGRAMS else PROGRAMS[0]


def require_request() -> None:
    """Refuse a request for bash that bash does not make. Typer fails on its variables if they are unset or no number.

    Raises:
        UsageError: the words of the command line, or the index of the one to complete, are not given.
    """
    if "complete_bash" not in {os.environ.get(name) for name in ASKED_BY_SHELL}:
        return
    if "COMP_WORDS" not in os.environ or re.fullmatch("[0-9]{1,9}", os.environ.get("COMP_CWORD", "")) is None:
        found = ", ".join(sorted(ASKED_BY_SHELL & os.environ.keys()))
        raise UsageError(
            f"{found}: expected the words of the command line in COMP_WORDS and the index of one in COMP_CWORD",
            hint="this variable is set by the shell's completion script; unset it",
        )


def wanted(arguments: Sequence[str]) -> bool:
    """Whether the command line has `--show-completion` or `--install-completion`, with or without a shell's name.

    Raises:
        UsageError: the shell is not one that Typer supports.
    """
    for i, word in enumerate(arguments):
        option, given, shell = word.partition("=")
        if option in OPTIONS:
            shell = shell if given else "".join(arguments[i + 1 : i + 2])
            if shell.startswith("-") or not (shell or given):
                return True
            if shell not in SHELLS:
                raise UsageError(
                    f"{option}: {shell!r} is not a supported shell", hint=f"use {', '.join(SHELLS)}"
                )
            os.environ[_TAKES_A_SHELL] = "1"
            return True
    return False
