"""Bodies of answers, read within a bound: of bytes, of seconds, and of what a compressed one unpacks to."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

from atlas.errors import HubError

GRACE = 60.0
"""Seconds that a body may take however little of it comes."""
LEAST_RATE = 10_000
"""Bytes a second that must come after them: a header of 40 kB over a bad line, not a server that drips."""
COMPRESSED = {"accept-encoding": "gzip"}
"""Of a request for a text. Other methods are not asked for, because only zlib's output can be read piece by piece here."""
PLAIN = {"accept-encoding": "identity"}
"""Of a request for weights: a range of a compressed file would be another range."""
_MOST_AT_ONCE = 2**20


def body(pieces: Iterable[bytes], most: int, where: str) -> bytes:
    """The pieces together; where they come to more than `most` bytes, no more is read than shows it.

    Raises:
        HubError: they come so slowly that there is no waiting for the rest.
    """
    data = bytearray()
    for piece in rate_limited(pieces, where):
        data += piece
        if len(data) > most:
            break
    return bytes(data)


def rate_limited(pieces: Iterable[bytes], where: str) -> Iterator[bytes]:
    """The same pieces, as long as they keep coming.

    Raises:
        HubError: in a period of GRACE seconds fewer bytes came than LEAST_RATE asks for.
    """
    begin, came = time.monotonic(), 0
    for piece in pieces:
        came += len(piece)
        yield piece
        seconds = time.monotonic() - begin
        if seconds > GRACE:
            if came < GRACE * LEAST_RATE:
                raise HubError(
                    f"{where}: the server sends too slowly: {came:,} bytes came in {seconds:,.0f} s",
                    hint="check the network, or try again later",
                    code="network",
                )
            begin, came = time.monotonic(), 0


def decoded(response: Any, where: str) -> Iterator[bytes]:
    """The body of an answer to a request that allowed gzip, unpacked piece by piece.

    Raises:
        HubError: it is compressed in another way, or is not what it says.
    """
    match response.headers.get("content-encoding", "identity").strip().lower():
        case "identity" | "":
            return response.iter_raw()  # type: ignore[no-any-return]
        case "gzip" | "x-gzip":
            return _unpacked(response.iter_raw(), where)
    raise HubError(
        f"{where}: the answer is compressed by a method that was not asked for; expected gzip or none",
        hint="a proxy or a mirror in between may be at fault: check HF_ENDPOINT",
        code="transfer",
    )


def _unpacked(pieces: Iterable[bytes], where: str) -> Iterator[bytes]:
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        for piece in pieces:
            rest = piece
            while rest and not unpacker.eof:
                # A piece without output still counts as time, so that a stream of empty blocks is given up too.
                yield unpacker.decompress(rest, _MOST_AT_ONCE)
                rest = unpacker.unconsumed_tail
            if unpacker.eof:
                return
    except zlib.error:
        raise HubError(f"{where}: the answer says that it is gzip, but it is not", code="transfer") from None
