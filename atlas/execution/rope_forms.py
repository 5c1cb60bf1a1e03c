"""The frequencies of rotary positions in each form of scaling, in float32.

    default       f(j) = θ^(−2j/h)
    linear        f / factor                                               (Chen et al., 2023)
    dynamic       θ grows with the length beyond the trained one           (bloc97, 2023: NTK-aware)
    yarn          slow planes by f / factor, fast ones by f, a ramp between (Peng et al., 2023)
    longrope      f / one factor for each plane, of two lists by length    (Ding et al., 2024)
    llama3        long wavelengths by f / factor, short ones by f          (cite: rope-scaling)
    proportional  a share of the planes turns with f of the whole head, the others do not turn

The order of operations is that of the published implementations, so that the numbers agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from atlas.errors import SpecError
from atlas.resolution.model import Scalar
from atlas.resolution.rope import LONGEST, ORIGINAL

Settings = Mapping[str, Scalar]


def frequencies(theta: float, width: int, rope: Settings, length: int = 0) -> tuple[Tensor, float]:
    """The angle in radians by which each plane turns from one position to the next, and a factor for cosine and sine.

    Args:
        theta: the base.
        width: entries that rotate: two for each plane.
        rope: the scaling parameters; empty where RoPE is not scaled.
        length: positions so far, this pass's included, for forms that depend on it.

    Returns:
        width / 2 frequencies, float32; and the factor, 1 in most forms.

    Raises:
        SpecError: the form is unknown, or lacks a parameter.
    """
    form = str(rope.get("rope_type", "default"))
    if form not in _FORMS:
        raise SpecError(f"the RoPE scaling {form!r} is not described")
    try:
        return _FORMS[form](theta, width, rope, length)
    except (KeyError, ValueError, ZeroDivisionError, OverflowError) as error:
        raise SpecError(f"the RoPE scaling {form!r} with {dict(rope)!r:.200}: {error}") from None


def depends_on_length(rope: Settings) -> bool:
    """Whether the frequencies change with the length of the text."""
    return rope.get("rope_type") in ("dynamic", "longrope")


def _powers(theta: float, width: int) -> Tensor:
    return theta ** (torch.arange(0, width, 2).float() / width)


def _default(theta: float, width: int, rope: Settings, length: int) -> tuple[Tensor, float]:
    return 1.0 / _powers(theta, width), 1.0


def _linear(theta: float, width: int, rope: Settings, length: int) -> tuple[Tensor, float]:
    return 1.0 / _powers(theta, width) / float(rope["factor"]), 1.0


def _dynamic(theta: float, width: int, rope: Settings, length: int) -> tuple[Tensor, float]:
    factor, longest = float(rope["factor"]), float(rope[LONGEST])
    grown = factor * max(length, longest) / longest - (factor - 1)
    return 1.0 / _powers(theta * grown ** (width / (width - 2)), width), 1.0


def _yarn(theta: float, width: int, rope: Settings, length: int) -> tuple[Tensor, float]:
    original = float(rope[ORIGINAL])
    factor = float(rope["factor"]) if "factor" in rope else float(rope[LONGEST]) / original
    attention = (
        float(rope["attention_factor"]) if "attention_factor" in rope else _yarn_attention(factor, rope)
    )

    def plane(turns: float) -> float:
        """The plane that makes so many turns over the original context."""
        return width * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(theta))

    low, high = plane(float(rope.get("beta_fast", 32))), plane(float(rope.get("beta_slow", 1)))
    if rope.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, width - 1)
    high += 0.001 * (low == high)
    kept = 1 - torch.clamp((torch.arange(width // 2, dtype=torch.float32) - low) / (high - low), 0, 1)
    powers = _powers(theta, width)
    return 1.0 / (factor * powers) * (1 - kept) + 1.0 / powers * kept, attention


def _yarn_attention(factor: float, rope: Settings) -> float:
    def scale(share: float) -> float:
        return 0.1 * share * math.log(factor) + 1.0 if factor > 1 else 1.0

    if rope.get("mscale") and rope.get("mscale_all_dim"):
        return scale(float(rope["mscale"])) / scale(float(rope["mscale_all_dim"]))
    return scale(1.0)


def _longrope(theta: float, width: int, rope: Settings, length: int) -> tuple[Tensor, float]:
    original = float(rope[ORIGINAL])
    factor = float(rope["factor"]) if "factor" in rope else float(rope[LONGEST]) / original
    if "attention_factor" in rope:
        attention = float(rope["attention_factor"])
    else:
        attention = math.sqrt(1 + math.log(factor) / math.log(original)) if factor > 1 else 1.0
    listed = str(rope["long_factor" if length > original else "short_factor"]).split()
    if len(listed) != width // 2:
        raise ValueError(
            f"its lists have {len(listed)} factors, expected one for each of {width // 2} planes"
        )
    return 1.0 / (torch.tensor([float(each) for each in listed]) * _powers(theta, width)), attention


def _llama3(theta: float, width: int, rope: Settings, length: int) -> tuple[Tensor, float]:
    """Long wavelengths are divided by `factor`, short ones kept, those between interpolated."""
    unscaled = 1.0 / _powers(theta, width)
    factor, low, high, original = (
        float(rope[name]) for name in ("factor", "low_freq_factor", "high_freq_factor", ORIGINAL)
    )
    wavelength = 2 * math.pi / unscaled
    slowed = torch.where(wavelength > original / low, unscaled / factor, unscaled)
    share = (original / wavelength - low) / (high - low)
    between = (wavelength >= original / high) & (wavelength <= original / low)
    return torch.where(between, (1 - share) * unscaled / factor + share * unscaled, slowed), 1.0


def _proportional(theta: float, width: int, rope: Settings, length: int) -> tuple[Tensor, float]:
    turning = int(float(rope.get("partial_rotary_factor", 1.0)) * width // 2)
    found = 1.0 / _powers(theta, width)
    found[turning:] = 0
    return found / float(rope.get("factor", 1.0)), 1.0


_FORMS: dict[str, Callable[[float, int, Settings, int], tuple[Tensor, float]]] = {
    "default": _default,
    "linear": _linear,
    "dynamic": _dynamic,
    "yarn": _yarn,
    "longrope": _longrope,
    "llama3": _llama3,
    "proportional": _proportional,
}
