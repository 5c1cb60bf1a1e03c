"""What torch raises, as an error with an address."""

from __future__ import annotations

import torch

from atlas.errors import RunError

CAUSES = (RuntimeError, IndexError, MemoryError)
"""The classes torch raises when it cannot do what it is asked."""


def failed(where: str, error: Exception) -> RunError:
    """The error for something that failed at that place: a step of a layer, or the making of its weights."""
    said = str(error).strip().partition("\n")[0]
    if isinstance(error, MemoryError | torch.OutOfMemoryError) or "allocate memory" in said:
        return RunError(
            f"{where}: out of memory",
            hint="shorten the prompt, or choose a narrower --dtype or another --device",
            code="out_of_memory",
        )
    return RunError(f"{where}: {said or type(error).__name__}")
