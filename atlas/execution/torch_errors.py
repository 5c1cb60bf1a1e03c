"""torch's exceptions as errors that name the layer and step that failed."""

from __future__ import annotations

import torch

from atlas.errors import RunError

TORCH_ERRORS = (RuntimeError, IndexError, MemoryError, OverflowError)
"""The exception classes that torch raises when an operation fails."""


def run_error(where: str, error: Exception) -> RunError:
    """The error to raise for a failure at that place, such as a step of a layer."""
    if is_out_of_memory(error):
        return RunError(
            f"{where}: out of memory",
            hint="shorten the prompt or --max-new-tokens, or choose a narrower --dtype or another --device",
            code="out_of_memory",
        )
    return RunError(f"{where}: {_first_line(error) or type(error).__name__}")


def is_out_of_memory(error: Exception) -> bool:
    """Whether memory ran out. The CPU allocator raises a plain RuntimeError, known only by its text."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return any(
        words in _first_line(error)
        for words in ("allocate memory", "can't start new thread", "calculation overflowed")
    )


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
