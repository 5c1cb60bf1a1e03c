"""The weights of routed experts, of which only those that a pass chooses are read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from atlas.execution import memory_map
from atlas.execution.devices import FLOATS
from atlas.execution.named_axes import View
from atlas.execution.weight_files import Piece


class LazyExperts:
    """Replaces a tensor of all experts wherever that is only indexed by the number of one.

    Args:
        pieces: for each expert, its bytes in a file.
        view: turns the stored numbers of one expert into its weight.

    Attributes:
        read: the experts that were read so far.
    """

    def __init__(self, pieces: Sequence[Piece], view: View, device: torch.device, dtype: torch.dtype) -> None:
        self._pieces, self._view, self._device, self.dtype = pieces, view, device, dtype
        self.read: set[int] = set()

    def __getitem__(self, expert: int) -> Tensor:
        """One expert's weight, without the axis of experts.

        Raises:
            IndexError: there is no such expert.
            CheckpointError: the file cannot be read, or has changed.
        """
        if not 0 <= expert < len(self._pieces):
            raise IndexError(f"expert {expert:,} of {len(self._pieces):,}")
        self.read.add(expert)
        piece = self._pieces[expert]
        maps = (
            self._device.type == "cpu" and memory_map.is_possible() and piece.bytes >= memory_map.LEAST_BYTES
        )
        if maps:
            data = memory_map.view(piece)
        else:
            data = np.empty(piece.bytes, np.uint8)
            piece.file.read(piece.begin, data.data)
        stored = torch.from_numpy(data).view(FLOATS[piece.dtype]).view(piece.shape)
        return self._view(stored).to(self._device, self.dtype)
