"""Reads response bodies within limits: of size, of time, and of the size after decompression."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

from atlas.errors import HubError

GRACE = 60.0
"""Seconds before the minimum rate applies."""
LEAST_RATE = 10_000
"""Bytes per second required after that: enough for a header of 40 kB over a slow connection, too much for a server that drips."""
COMPRESSED = {"accept-encoding": "gzip"}
"""For requests of text files. Other compressions are not requested, because only zlib's output can be read piece by piece here."""
PLAIN = {"accept-encoding": "identity"}
"""For requests of weights: a range of a compressed file would be other bytes."""
TEXT_WITHIN = 120.0
"""Seconds for the whole body of a text (a listing, a configuration, an index), however fast its pieces arrive."""
_MOST_AT_ONCE = 2**20


def body(pieces: Iterable[bytes], most: int, where: str, *, within: float | None = None) -> bytes:
    """The joined pieces; reading stops once there are more than `most` bytes.

    Raises:
        HubError: the server sends too slowly, or not within the deadline.
    """
    data = bytearray()
    begin = time.monotonic()
    for piece in rate_limited(pieces, where):
        data += piece
        if within is not None and time.monotonic() - begin > within:
            raise HubError(
                f"{where}: the server sends too slowly: {len(data):,} bytes in {within:,.0f} s, and more to come",
                hint="check the network, or try again later",
                code="network",
            )
        if len(data) > most:
            break
    return bytes(data)


def rate_limited(pieces: Iterable[bytes], where: str) -> Iterator[bytes]:
    """The same pieces, with a minimum transfer rate.

    Raises:
        HubError: fewer bytes than LEAST_RATE requires arrived in a period of GRACE seconds.
    """
    begin, came = time.monotonic(), 0
    for piece in pieces:
        came += len(piece)
        yield piece
        seconds = time.monotonic() - begin
        if seconds > GRACE:
            if came < GRACE * LEAST_RATE:
                raise HubError(
                    f"{where}: the server sends too slowly: {came:,} bytes in {seconds:,.0f} s",
                    hint="check the network, or try again later",
                    code="network",
                )
            begin, came = time.monotonic(), 0


def decoded(response: Any, where: str) -> Iterator[bytes]:
    """The body of a response to a request that allowed gzip, decompressed piece by piece.

    Raises:
        HubError: it uses another compression, or is not valid gzip.
    """
    match response.headers.get("content-encoding", "identity").strip().lower():
        case "identity" | "":
            return response.iter_raw()  # type: ignore[no-any-return]
        case "gzip" | "x-gzip":
            return _unpacked(response.iter_raw(), where)
    raise HubError(
        f"{where}: the response uses a compression that was not requested; expected gzip or none",
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
        raise HubError(
            f"{where}: the response is marked as gzip, but is not valid gzip", code="transfer"
        ) from None
