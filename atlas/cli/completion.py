"""Shell completion: which shell is asked about, and under which name the program was started."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import PurePath

from atlas.errors import UsageError

ASKED_BY_SHELL = {"_ATLAS_COMPLETE", "_OPEN_MODEL_ATLAS_COMPLETE"}
"""Set by the shell where it asks for completions: then every command is needed."""

OPTIONS = {"--show-completion", "--install-completion"}

SHELLS = ("bash", "zsh", "fish", "powershell", "pwsh")

_TAKES_A_SHELL = "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION"
"""Where this is set, Typer's two options take a shell's name; otherwise they ask which shell started them."""


def program(started_as: str) -> str:
    """The entry point's name, which completion is installed for; also where `python -m atlas` was typed."""
    return "open-model-atlas" if PurePath(started_as).stem == "open-model-atlas" else "atlas"


def wanted(arguments: Sequence[str]) -> bool:
    """Whether the command line asks for completion, with the shell named as in `--show-completion zsh`.

    Raises:
        UsageError: no shell that is known is called that.
    """
    for i, word in enumerate(arguments):
        option, given, shell = word.partition("=")
        if option in OPTIONS:
            shell = shell if given else "".join(arguments[i + 1 : i + 2])
            if shell.startswith("-") or not (shell or given):
                return True
            if shell not in SHELLS:
                raise UsageError(
                    f"{option}: {shell!r} is no shell that is known", hint=f"use {', '.join(SHELLS)}"
                )
            os.environ[_TAKES_A_SHELL] = "1"
            return True
    return False
