"""What torch raises, as an error with an address."""

from __future__ import annotations

import torch

from atlas.errors import RunError

CAUSES = (RuntimeError, IndexError, MemoryError, OverflowError)
"""The classes torch raises when it cannot do what it is asked."""


def failed(where: str, error: Exception) -> RunError:
    """The error for something that failed at that place: a step of a layer, or the making of its weights."""
    if is_out_of_memory(error):
        return RunError(
            f"{where}: out of memory",
            hint="shorten the prompt or --max-new-tokens, or choose a narrower --dtype or another --device",
            code="out_of_memory",
        )
    return RunError(f"{where}: {_said(error) or type(error).__name__}")


def is_out_of_memory(error: Exception) -> bool:
    """Whether memory is what was lacking: the CPU's allocator says so in words only."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return any(
        words in _said(error)
        for words in ("allocate memory", "can't start new thread", "calculation overflowed")
    )


def _said(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
