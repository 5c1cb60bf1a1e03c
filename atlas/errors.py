"""The errors of the atlas, and the exit code of each.

    AtlasError              2   the input cannot be read, or the command is misused
    ├── UsageError          2   options that contradict each other, or a value out of range
    ├── UnknownModel        2   no such model; the nearest names are the hint
    ├── NotDescribed        2   in the catalogue, or of a known family, but not described yet
    ├── ConfigError         2   a config.json or params.json that cannot be understood
    │   └── UndescribedConfigError   of an architecture that is not described
    ├── SpecError           2   a description file (specs/) that contradicts itself or another
    ├── SourceError         2   a cited source that was read but does not have the cited lines
    ├── CheckpointError     2   not a checkpoint, or bytes that are not a safetensors file
    ├── HubError            2   the Hub refused, or could not be reached
    ├── RunError            2   a step of a real forward pass failed
    └── MissingExtra        2   a command needs packages that are not installed

An error is one sentence with an address: what, where, what was expected, what was found. What to try
goes into `hint`. `atlas.cli` prints it and exits with the class's exit code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


def shown(value: object) -> str:
    """A value read from JSON as a message shows it: written as JSON, and clipped."""
    import json

    if isinstance(value, str):
        value = value[:100]
    elif isinstance(value, list | tuple | dict) and len(value) > 100:
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value):,} values"
    elif isinstance(value, int) and value.bit_length() > 4096:
        return "a number too long to print"
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):  # a longer integer somewhere inside, or nested too deeply
        return "a value too long to print"
    return text if len(text) <= 80 else text[:77] + "..."


def clipped(text: str, most: int = 2000) -> str:
    """A message with long words shortened, and shortened itself if it is long: input may be of any length."""
    text = re.sub(r"\S{401,}", lambda word: f"{word[0][:300]}…{word[0][-60:]}", text)
    return text if len(text) <= most else f"{text[: most - 300]}…{text[-300:]}"


class AtlasError(Exception):
    """An error that a user can act on.

    Args:
        message: one sentence: what is wrong, where, what was expected and what was found.
        hint: what to try, as a second sentence; empty if there is nothing to try.
    """

    code = "error"
    exit_code = 2

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(AtlasError):
    code = "usage"


class UnknownModel(AtlasError):
    code = "unknown_model"


class NotDescribed(AtlasError):
    code = "not_described"


class ConfigError(AtlasError):
    code = "config"


class UndescribedConfigError(ConfigError):
    """A configuration that can be read, of an architecture that is not described."""


class SpecError(AtlasError):
    code = "spec"


class SourceError(AtlasError):
    code = "source"


class CheckpointError(AtlasError):
    """A checkpoint file that cannot be read.

    Args:
        code: the finding's code as `atlas verify` reports it: `header`, `pointer`, `truncated`, ...
    """

    code = "checkpoint"

    def __init__(self, message: str, *, hint: str = "", code: str = "checkpoint") -> None:
        super().__init__(message, hint=hint)
        self.code = code


class HubError(AtlasError):
    """The Hub refused or could not be reached.

    Args:
        code: `gated`, `forbidden`, `not_found`, `offline`, `network`, ...
    """

    code = "hub"

    def __init__(self, message: str, *, hint: str = "", code: str = "hub") -> None:
        super().__init__(message, hint=hint)
        self.code = code


class RunError(AtlasError):
    """A step of a real forward pass failed.

    Args:
        code: `run`, or `out_of_memory`.
    """

    code = "run"

    def __init__(self, message: str, *, hint: str = "", code: str = "run") -> None:
        super().__init__(message, hint=hint)
        self.code = code


class MissingExtra(AtlasError):
    code = "missing_extra"


@dataclass(frozen=True, slots=True)
class Refusal:
    """An `AtlasError` as JSON."""

    code: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class Failure:
    """What a command prints with `--json` if it fails."""

    error: Refusal
