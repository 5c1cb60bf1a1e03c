"""Sizes and rates as people write them: `80GB` is 80 × 10⁹ bytes, `80GiB` is 80 × 2³⁰; `989T` is 989 × 10¹² a second."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

from atlas.errors import UsageError

_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGTP]?)(i?)B?", re.IGNORECASE)


def size_bytes(text: str) -> int:
    """`80GB`, `80GiB`, `1.5TB` or a plain number -> bytes, exactly.

    Raises:
        UsageError: not of that form, or not a whole number of bytes.
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None or (found[3] and not found[2]):
        raise UsageError(f"{text!r} is no size", hint="write 80GB (80 × 10⁹ bytes) or 80GiB (80 × 2³⁰)")
    unit = (1024 if found[3] else 1000) ** _POWERS[found[2].upper()]
    amount = Decimal(found[1]) * unit
    if amount != int(amount) or amount < 1:
        raise UsageError(f"{text!r} is not a whole, positive number of bytes")
    return int(amount)


def per_second(text: str) -> float:
    """`989T`, `3.35TB` or `9.89e14` -> a number a second.

    Raises:
        UsageError: not of that form, or not positive.
    """
    plain = text.strip().removesuffix("/s").removesuffix("B").removesuffix("FLOPS").removesuffix("FLOP")
    power = _POWERS.get(plain[-1:].upper() if plain[-1:].isalpha() else "", 0)
    try:
        amount = Decimal(plain[:-1] if power else plain) * Decimal(1000) ** power
    except InvalidOperation:
        amount = Decimal(0)
    if not amount.is_finite() or amount <= 0:
        raise UsageError(f"{text!r} is no rate", hint="write 989T, 3.35TB or 9.89e14")
    return float(amount)
