"""Whether a context fits into a device's memory, what is short, the longest context that fits, and the number of devices it takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from atlas.errors import UsageError, shown
from atlas.units import MOST_COUNT

Needed = Callable[[int, int, int], int]
"""(context, sequences, devices) -> the bytes needed on each device. It never falls as the context or the sequences grow."""


@dataclass(frozen=True, slots=True)
class Fit:
    """What fits into the memory of one device, or of each of several.

    Attributes:
        size_bytes: of the device.
        reserved_bytes: the part of it that is not used: the reserve, and what the utilization leaves.
        context: the longest context, with as many sequences as asked; 0 if one position does not fit; None if not known.
        limited_by: what ends that context: `memory`; `model`, the model's own context length; `asked`, a longer one that
            was asked for; `window`, a sliding window that is not described.
        sequences: the most sequences of the context asked for.
        devices: the smallest number of devices, from the one asked for, over which the context asked for fits; None if none.
        fits: whether the context asked for fits.
        short_bytes: what each device lacks for it.
    """

    size_bytes: int
    reserved_bytes: int
    context: int | None
    limited_by: str | None
    sequences: int | None
    devices: int | None
    fits: bool | None
    short_bytes: int | None


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked to fit, and the limits of the search.

    Attributes:
        own: the model's context length, if it states one.
        window: the longest context whose size is known, where that is limited.
        more: larger numbers of devices that divide every matrix, in order.
    """

    context: int
    batch: int
    devices: int
    own: int | None
    window: int | None
    more: Sequence[int]


def usable(size: int, reserve: int, utilization: Fraction) -> int:
    """The bytes of a device that may be filled: its size times the utilization, less the reserve.

    Raises:
        UsageError: nothing is left.
    """
    left = int(size * utilization) - reserve
    if left < 1:
        raise UsageError(
            f"--fit of {size:,} bytes: --utilization {float(utilization):g} and --reserve of {reserve:,} bytes leave nothing"
        )
    return left


def utilization(value: float | str) -> Fraction:
    """A share of a device's memory, exactly as written: more than 0 and at most 1.

    Raises:
        UsageError: it is not.
    """
    try:
        share = Fraction(str(value)[:60])
    except (ValueError, ZeroDivisionError):
        share = Fraction(0)
    if not 0 < share <= 1:
        raise UsageError(f"--utilization is {shown(value)}, expected a number above 0 and at most 1")
    return share


def unknown(size: int, reserve: int, share: Fraction) -> Fit:
    """The entry of a size where the weights' bytes are not known."""
    return Fit(size, size - usable(size, reserve, share), None, None, None, None, None, None)


def fit(size: int, reserve: int, share: Fraction, needed: Needed, request: Request) -> Fit:
    """What fits into a device of that size."""
    available = usable(size, reserve, share)
    asked = needed(request.context, request.batch, request.devices)
    own = request.own
    limit = max(own, request.context) if own is not None else MOST_COUNT
    if request.window is not None:
        limit = min(limit, request.window)
    longest = _most(limit, lambda context: needed(context, request.batch, request.devices) <= available)
    over = request.devices if asked <= available else None
    for devices in request.more if over is None else ():
        if needed(request.context, request.batch, devices) <= available:
            over = devices
            break
    return Fit(
        size_bytes=size,
        reserved_bytes=size - available,
        context=longest,
        limited_by=_limit(longest, request),
        sequences=_most(MOST_COUNT, lambda many: needed(request.context, many, request.devices) <= available),
        devices=over,
        fits=asked <= available,
        short_bytes=max(0, asked - available),
    )


def _limit(longest: int, request: Request) -> str:
    if longest == request.window:
        return "window"
    if longest == request.own:
        return "model"
    return "asked" if request.own is not None and longest == request.context > request.own else "memory"


def _most(limit: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to `limit` that fits, where all smaller ones fit too; 0 if none does."""
    if not fits(1):
        return 0
    low, high = 1, limit
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low
