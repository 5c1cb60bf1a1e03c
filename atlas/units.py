"""Sizes, rates and counts as people write them: `80GB` is 80 × 10⁹ bytes, `80GiB` 80 × 2³⁰, `989T` 989 × 10¹² per second, `32k` 32,768."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

from atlas.errors import UsageError, shown

_POWERS = {"K": 1, "M": 2, "G": 3, "T": 4, "P": 5}
MOST_COUNT = 2**40
"""Largest count an option accepts: beyond any machine, and small enough that every result stays readable."""

MOST_BYTES = 2**80
MOST_RATE = 1e30
"""Largest size in bytes and largest rate per second that are accepted: beyond any machine."""

_LONGEST = 60
"""Most characters a number may have."""

_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_SIZE = re.compile(rf"({_NUMBER})\s*(?:([KMGTP])(i?)B?|B|bytes?)", re.IGNORECASE)
_PLAIN = re.compile(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+")
_RATE = re.compile(
    rf"({_NUMBER}[eE][+-]?[0-9]{{1,3}}|(?:{_NUMBER}|\.[0-9]+)(?=\s*[KMGTPkmgtp]))\s*([KMGTPkmgtp]?)(i?)",
    re.ASCII,
)
_COUNT = re.compile(r"([+-]?[0-9]+)([kKmM]?)")


def whole_number(text: str, what: str) -> int:
    """The value of an option that counts: `8192`, or `8k` (8 × 1,024) and `1M` (1,024²). The caller checks its lower bound.

    Args:
        what: the option, for messages.

    Raises:
        UsageError: not an integer, or more than `MOST_COUNT`.
    """
    found = _COUNT.fullmatch(text.strip()) if text.isascii() else None
    if found is None:
        raise UsageError(
            f"{what} is {_short(text)}, expected an integer of at most {MOST_COUNT:,}, such as 8192 or 8k"
        )
    unit = 1024 ** _POWERS[found[2].upper()] if found[2] else 1
    if len(found[1]) > 21 or abs(int(found[1]) * unit) > MOST_COUNT:
        raise UsageError(f"{what} is {_short(text.strip())}, expected at most {MOST_COUNT:,} in magnitude")
    return int(found[1]) * unit


def require_integer(value: object, what: str) -> None:
    """Refuse a value from Python that is not an integer: calculations would go on with a fraction or NaN.

    Args:
        what: the option, for messages.

    Raises:
        UsageError: it is not one; `True` and `False` are not.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise UsageError(f"{what} is {shown(value)}, expected an integer")


def require_count(value: int, what: str, *, least: int = 1, most: int = MOST_COUNT) -> None:
    """Refuse a value that is not an integer from `least` to `most`.

    Args:
        what: the option, for messages.

    Raises:
        UsageError: it is not.
    """
    require_integer(value, what)
    if value < least:
        raise UsageError(f"{what} is {shown(value)}, expected {least} or more")
    if value > most:
        raise UsageError(f"{what} is {shown(value)}, expected at most {most:,}")


def size_bytes(text: str, what: str = "") -> int:
    """`80GB`, `80GiB`, `1.5TB` or `1024B` -> bytes, exactly.

    Args:
        what: the option, for messages.

    Raises:
        UsageError: not of that form, without a unit, not a whole number of bytes, or more than `MOST_BYTES`.
    """
    given = f"{what} {_short(text)!r}".strip()
    hint = "write 80GB (80 × 10⁹ bytes) or 80GiB (80 × 2³⁰)"
    if _PLAIN.fullmatch(text.strip()):
        raise UsageError(f"{given} has no unit", hint=hint)
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{given} is not a size", hint=hint)
    unit = (1024 if found[3] else 1000) ** _POWERS[found[2].upper()] if found[2] else 1
    amount = Fraction(found[1]) * unit if len(found[1]) <= _LONGEST else None
    if amount is None or amount > MOST_BYTES:
        raise UsageError(f"{given} is too large, expected at most {MOST_BYTES:,} bytes")
    if amount != int(amount) or amount < 1:
        raise UsageError(f"{given} is not a whole, positive number of bytes")
    return int(amount)


def per_second(text: str, what: str = "", unit: str = "") -> float:
    """`989T`, `989TFLOPS`, `3.35TB/s` or `9.89e14` -> a number per second.

    Args:
        what: the option, for messages.
        unit: the unit that may follow, `FLOPS` or `B`; any of them if empty.

    Raises:
        UsageError: not of that form, without a prefix or exponent, below 1, or more than `MOST_RATE`.
    """
    given = f"{what} {_short(text)!r}".strip()
    hint = {
        "FLOPS": "write 989T, 989TFLOPS or 9.89e14",
        "B": "write 3.35T, 3.35TB/s or 3.35e12",
    }.get(unit, "write 989T, 3.35TB or 9.89e14")
    plain = text.strip()
    if _PLAIN.fullmatch(plain):
        raise UsageError(f"{given} is not a rate: it has no unit", hint=hint)
    suffixes = {"FLOPS": ("FLOPS", "FLOP/S", "FLOP"), "B": ("B/S", "BYTES/S", "B")}
    for suffix in suffixes.get(unit, (*suffixes["FLOPS"], *suffixes["B"], "/S")):
        if plain.upper().endswith(suffix):
            plain = plain[: -len(suffix)].rstrip()
            break
    found = _RATE.fullmatch(plain[: _LONGEST + 20])
    if found is None or len(found[1]) > _LONGEST or (found[3] and not found[2]):
        raise UsageError(f"{given} is not a rate", hint=hint)
    base = Decimal(1024 if found[3] else 1000)
    amount = Decimal(found[1]) * (base ** _POWERS[found[2].upper()] if found[2] else 1)
    if not 1 <= amount <= Decimal(MOST_RATE):
        raise UsageError(f"{given} is not a rate of a machine, expected 1 to {MOST_RATE:g} per second")
    return float(amount)


def _short(text: str) -> str:
    """A value shortened for a message."""
    return text if len(text) <= _LONGEST else f"{text[:30]}…{text[-10:]} ({len(text):,} characters)"
