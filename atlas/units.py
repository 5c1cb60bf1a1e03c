"""Sizes and rates as people write them: `80GB` is 80 × 10⁹ bytes, `80GiB` is 80 × 2³⁰; `989T` is 989 × 10¹² a second."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

from atlas.errors import UsageError

_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}
MOST_COUNT = 2**40
"""Largest count an option accepts: beyond any machine, and small enough that every result stays readable."""

MOST_BYTES = 2**80
MOST_RATE = 1e30
"""Largest size in bytes and largest rate per second that are accepted: beyond any machine."""

_LONGEST = 60
"""Most characters a number may have."""

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGTP]?)(i?)B?", re.IGNORECASE)
_RATE = re.compile(r"((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?)([KMGTPkmgtp]?)")
_INTEGER = re.compile(r"[+-]?[0-9]{1,20}")


def whole_number(text: str, what: str) -> int:
    """The value of an option that counts; the caller checks its lower bound.

    Args:
        what: the option, for messages.

    Raises:
        UsageError: not an integer, or more than `MOST_COUNT`.
    """
    plain = text.strip()
    if re.fullmatch(r"[+-]?[0-9]+", plain) is None:
        raise UsageError(f"{what} is {_short(text)}, expected an integer of at most {MOST_COUNT:,}")
    if _INTEGER.fullmatch(plain) is None or abs(int(plain)) > MOST_COUNT:
        raise UsageError(f"{what} is {_short(plain)}, expected at most {MOST_COUNT:,} in magnitude")
    return int(plain)


def size_bytes(text: str, what: str = "") -> int:
    """`80GB`, `80GiB`, `1.5TB` or a plain number -> bytes, exactly.

    Args:
        what: the option, for messages.

    Raises:
        UsageError: not of that form, not a whole number of bytes, or more than `MOST_BYTES`.
    """
    said = f"{what} {_short(text)!r}".strip()
    found = _SIZE.fullmatch(text.strip())
    if found is None or (found[3] and not found[2]):
        raise UsageError(f"{said} is not a size", hint="write 80GB (80 × 10⁹ bytes) or 80GiB (80 × 2³⁰)")
    unit = (1024 if found[3] else 1000) ** _POWERS[found[2].upper()]
    amount = Fraction(found[1]) * unit if len(found[1]) <= _LONGEST else None
    if amount is None or amount > MOST_BYTES:
        raise UsageError(f"{said} is too large, expected at most {MOST_BYTES:,} bytes")
    if amount != int(amount) or amount < 1:
        raise UsageError(f"{said} is not a whole, positive number of bytes")
    return int(amount)


def per_second(text: str, what: str = "") -> float:
    """`989T`, `3.35TB` or `9.89e14` -> a number a second.

    Args:
        what: the option, for messages.

    Raises:
        UsageError: not of that form, below 1, or more than `MOST_RATE`.
    """
    said = f"{what} {_short(text)!r}".strip()
    plain = text.strip()[: _LONGEST + 20]
    for unit in ("/s", "B", "FLOPS", "FLOP"):
        plain = plain.removesuffix(unit)
    found = _RATE.fullmatch(plain)
    if found is None or len(found[1]) > _LONGEST:
        raise UsageError(f"{said} is not a rate", hint="write 989T, 3.35TB or 9.89e14")
    amount = Decimal(found[1]) * Decimal(1000) ** _POWERS[found[2].upper()]
    if not 1 <= amount <= Decimal(MOST_RATE):
        raise UsageError(f"{said} is not a rate of a machine, expected 1 to {MOST_RATE:g} a second")
    return float(amount)


def _short(text: str) -> str:
    """A value shortened for a message."""
    return text if len(text) <= _LONGEST else f"{text[:30]}…{text[-10:]} ({len(text):,} characters)"
