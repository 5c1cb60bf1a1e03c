"""A parsed header: the stored tensors and where their data begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from atlas.checkpoint.faults import LENGTH_BYTES

# The safetensors library holds dimensions and offsets, and counts elements and bits, in 64 bits without a sign.
MAX_COUNT = 2**64 - 1


class Tensor(NamedTuple):  # made in a third of the time of a frozen dataclass, half the work on a header
    """One stored tensor; `begin` and `end` count bytes from the start of the file's data."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int

    @property
    def elements(self) -> int:
        """How many there are; 0 where the shape overflows, since no file holds so many."""
        count = product(self.shape)
        return 0 if count > MAX_COUNT else count


def product(shape: tuple[int, ...]) -> int:
    """The product of these dimensions, or the first partial product that overflows, even if a zero follows.

    A hostile shape may have millions of dimensions, so the full product could take quadratic time.
    """
    count = 1
    for dim in shape:
        count *= dim
        if count > MAX_COUNT:
            break
    return count


@dataclass(frozen=True, slots=True)
class Header:
    """The parsed header of a safetensors file.

    Attributes:
        tensors: by name, in the order of their data.
        metadata: the strings under `__metadata__`.
        header_bytes: length of the JSON.
        data_bytes: where the last tensor ends, counted from `data_start`.
        file_bytes: size of the file as found; of a sound file, `data_start + data_bytes`.
    """

    tensors: dict[str, Tensor]
    metadata: dict[str, str]
    header_bytes: int
    data_bytes: int
    file_bytes: int

    @property
    def data_start(self) -> int:
        """Where in the file the data starts, in bytes."""
        return LENGTH_BYTES + self.header_bytes
