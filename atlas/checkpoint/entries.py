"""A safetensors header that is not as `atlas.checkpoint.scan` expects: JSON decoded, each value of the right kind, or what is wrong.

Python's JSON decoder differs from the safetensors library's: Python accepts NaN, half a surrogate pair and the
integer -0, and silently keeps the last of two equal keys. Each is caught here.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from atlas.checkpoint.faults import Malformed, show
from atlas.checkpoint.tensor import MAX_COUNT, Tensor
from atlas.dtypes import BITS, find

MOST_DECODED_BYTES = 4 * 2**20
"""Of a header that is decoded as a whole where `atlas.checkpoint.scan` does not get through: twenty times the memory."""
_FIELDS = {"dtype", "shape", "data_offsets"}


def _integer(digits: str) -> int | float:
    return float(digits) if digits == "-0" else int(digits)


# An object becomes a tuple of its pairs, in which a repeated key is still to be seen; an array is a list.
_DECODER = json.JSONDecoder(object_pairs_hook=tuple)
# For headers with a "-" anywhere, be it in a name: a call for each number costs as much as the decoding.
_DECODER_MINUS_ZERO = json.JSONDecoder(object_pairs_hook=tuple, parse_int=_integer)


def decode(raw: bytes) -> dict[str, Any]:
    """The header's JSON object, unchecked.

    Raises:
        Malformed: where the JSON goes wrong.
    """
    decoder = _DECODER_MINUS_ZERO if b"-" in raw else _DECODER
    try:
        entries = decoder.decode(raw.decode("utf-8"))
        # JSON's \ud800 spells half of a surrogate pair, which is no character and so in no name.
        if b"\\" in raw:
            json.dumps(entries, ensure_ascii=False).encode("utf-8")
    except UnicodeDecodeError as error:
        raise Malformed(
            f"the header is not UTF-8: byte {error.start:,} is 0x{raw[error.start]:02x}"
        ) from None
    except UnicodeEncodeError as error:
        near = error.object[max(0, error.start - 20) : error.start + 20]
        raise Malformed(f"the header has half of a surrogate pair near {show(near)}") from None
    except json.JSONDecodeError as error:
        near = error.doc[max(0, error.pos - 20) : error.pos + 20]
        at = len(error.doc[: error.pos].encode("utf-8"))
        raise Malformed(f"the header is not JSON: {error.msg} at byte {at:,}, near {show(near)}") from None
    except ValueError as error:
        # Python's limit on the digits of an integer, which has no class of its own.
        raise Malformed(f"the header has a number out of range: {error}") from None
    except RecursionError:
        raise Malformed("the header is nested too deeply; expected three levels") from None
    except MemoryError:
        raise Malformed(f"the header of {len(raw):,} bytes does not fit in memory") from None
    return _unique(entries, "the header has the name")


_FIRST_WINDOW_BYTES, _LAST_WINDOW_BYTES = 2**9, 2**16


def member(data: bytes, at: int, end: int) -> tuple[str, Any, int]:
    """The name and value at a byte of the header, if they are short, and the byte where they end.

    Raises:
        Malformed: it is not JSON, or too long to look at.
    """
    window = _FIRST_WINDOW_BYTES
    while True:
        # A character split by the window comes after all that is decoded.
        text = data[at : min(end, at + window)].decode("utf-8", "replace")
        try:
            name, stop = _DECODER.raw_decode(text, _skipped(text, 0))
            colon = _skipped(text, stop)
            if isinstance(name, str) and text.startswith(":", colon):
                value, stop = _DECODER_MINUS_ZERO.raw_decode(text, _skipped(text, colon + 1))
                if stop < len(text):  # else digits may follow
                    return name, value, at + len(text[:stop].encode("utf-8", "surrogatepass"))
        except (ValueError, RecursionError):
            pass
        if window >= min(_LAST_WINDOW_BYTES, end - at):
            raise Malformed(
                f"the header is not JSON, or has no name and entry at byte {at:,}, near {show(text[:40])}"
            )
        window *= 2


def _skipped(text: str, at: int) -> int:
    while text[at : at + 1] in (" ", "\t", "\n", "\r"):
        at += 1
    return at


def _unique(pairs: tuple[tuple[str, Any], ...], has: str) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        key, times = Counter(key for key, _ in pairs).most_common(1)[0]
        raise Malformed(f"{has} {show(key)} {times} times; expected once")
    return found


def metadata(found: Any) -> dict[str, str]:
    """The value of `__metadata__`, which must be an object of strings.

    Raises:
        Malformed: it is not.
    """
    if found is None:  # null is absent, to the library too
        return {}
    if type(found) is not tuple:
        raise Malformed(f"__metadata__ is {show(found)}; expected an object of strings")
    strings = _unique(found, "__metadata__ has the key")
    for key, value in strings.items():
        if not isinstance(value, str):
            raise Malformed(f"__metadata__ has {show(value)} under {show(key)}; expected a string")
    return strings


def tensor(name: str, entry: Any) -> Tensor:
    """One entry's tensor; whether shape and offsets agree is not asked here.

    Raises:
        Malformed: a field is missing, unknown or not of its kind.
    """
    if type(entry) is not tuple or len(entry) != 3:
        raise _not_an_entry(entry)
    fields = dict(entry)
    try:
        dtype, shape, offsets = fields["dtype"], fields["shape"], fields["data_offsets"]
    except KeyError:
        raise _not_an_entry(entry) from None
    if type(dtype) is not str or dtype not in BITS:
        known = find(dtype) if type(dtype) is str else None
        hint = f"safetensors writes {known}" if known else f"known are {', '.join(BITS)}"
        raise Malformed(f"has dtype {show(dtype)}, which safetensors does not know", hint)
    if type(shape) is not list:
        raise Malformed(f"has shape {show(shape)}; expected a list of dimensions")
    for dim in shape:
        if type(dim) is not int or not 0 <= dim <= MAX_COUNT:  # `type`, because True is an instance of int
            raise Malformed(f"has dimension {show(dim)} in shape {show(shape)}; {_INTEGERS}")
    if type(offsets) is not list or len(offsets) != 2:
        raise Malformed(f"has data_offsets {show(offsets)}; expected a begin and an end")
    begin, end = offsets
    if (
        type(begin) is not int
        or type(end) is not int
        or not (0 <= begin <= MAX_COUNT and 0 <= end <= MAX_COUNT)
    ):
        raise Malformed(f"has data_offsets {show(offsets)}; {_INTEGERS}")
    return Tensor(name, dtype, tuple(shape), begin, end)


_INTEGERS = "expected integers from 0 to 2**64 - 1"


def _not_an_entry(entry: Any) -> Malformed:
    if type(entry) is not tuple:
        return Malformed(f"is {show(entry)}; expected an object with dtype, shape and data_offsets")
    try:
        fields = _unique(entry, "has the field").keys()
    except Malformed as wrong:
        return wrong
    wrong_fields = [f"no {field}" for field in sorted(_FIELDS - fields)]
    wrong_fields += [f"an unknown field {show(field)}" for field in sorted(fields - _FIELDS)[:3]]
    return Malformed(f"has {' and '.join(wrong_fields)}; expected dtype, shape and data_offsets")
