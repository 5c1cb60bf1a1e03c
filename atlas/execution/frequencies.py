"""How fast rotary positions turn (Su et al., 2021), and the scaling of Llama 3.1's long context.

All in float32, in the order of Meta's `precompute_freqs_cis` and `apply_scaling` (cites: rope-frequencies, rope-scaling),
with the model's own factors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from atlas.errors import SpecError
from atlas.resolution.model import Scalar


def frequencies(theta: float, planes: int, rope: Mapping[str, Scalar]) -> Tensor:
    """The angle by which each plane of a head turns from one position to the next, in radians: planes, float32.

    Args:
        rope: the parameters of scaled positions; empty where they are not scaled.
    """
    width = 2 * planes
    plain = 1.0 / theta ** (torch.arange(0, width, 2).float() / width)
    return _scaled(plain, rope) if rope else plain


def _scaled(plain: Tensor, rope: Mapping[str, Scalar]) -> Tensor:
    """Slow planes slowed by `factor`, fast ones left alone, and a blend between: the form `llama3`."""
    if rope.get("rope_type") != "llama3":
        raise SpecError(f"positions scaled in the form {rope.get('rope_type')!r} are not described")
    factor, low, high, original = (
        float(rope[name])
        for name in ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")
    )
    wavelength = 2 * math.pi / plain
    slowed = torch.where(wavelength > original / low, plain / factor, plain)
    share = (original / wavelength - low) / (high - low)
    between = (wavelength >= original / high) & (wavelength <= original / low)
    return torch.where(between, (1 - share) * plain / factor + share * plain, slowed)
