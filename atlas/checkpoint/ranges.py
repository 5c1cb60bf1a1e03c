"""Reads files of one repository at one commit over HTTP: small files whole, of weights the first bytes.

The headers of a range reply are checked here: a server that gets them wrong would make us download the weights, or read
other bytes than those requested.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from atlas.checkpoint.header import bytes_needed
from atlas.checkpoint.http_session import HttpSession, Reply
from atlas.checkpoint.hub_errors import HubErrors
from atlas.checkpoint.response_body import COMPRESSED, PLAIN, TEXT_WITHIN, body, decoded, rate_limited
from atlas.checkpoint.retry import with_retries
from atlas.errors import HubError

_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,19})-([0-9]{1,19})/([0-9]{1,19})")
_LENGTH = re.compile(r"[0-9]{1,19}")
MOST_HEADER_BYTES = 2**29
"""Of the headers of one repository together, beyond what is asked for at first: a hundred times any real one."""
_PART_BYTES = 2**35
"""Of one request for a file: the Hub's CDN gives no more than 50 GB at once."""


class Reader:
    """Reads files; several threads may use it."""

    def __init__(self, repo: str, commit: str, session: HttpSession) -> None:
        self.repo = repo
        self.commit = commit
        self._session = session
        self._header_bytes_left = MOST_HEADER_BYTES
        self._reserving = threading.Lock()

    def whole(self, name: str, file_bytes: int) -> bytes:
        """A small file.

        Raises:
            HubError: it could not be read, or is not as long as it should be.
        """
        with HubErrors(self.repo, name):
            return with_retries(partial(self._whole, name, file_bytes))

    def prefix(self, name: str, first: int, file_bytes: int) -> bytes:
        """The first bytes of a safetensors file, all of its header among them.

        Args:
            first: how many to ask for; if the header turns out to be longer, the rest takes a second request.
            file_bytes: the size of the whole file, which the server must confirm.

        Raises:
            HubError: they could not be read.
        """
        data = self._range(name, 0, min(first, file_bytes), file_bytes)
        needed = bytes_needed(data, file_bytes)
        if needed > len(data):
            self._reserve(needed - len(data))
            data += self._range(name, len(data), needed, file_bytes)
        return data

    def _range(self, name: str, begin: int, end: int, file_bytes: int) -> bytes:
        with HubErrors(self.repo, name):
            return with_retries(partial(self._part, name, begin, end, file_bytes))

    def read_from(self, name: str, begin: int, file_bytes: int, write: Callable[[bytes], object]) -> None:
        """A file from its byte `begin` on, handed over piece by piece; at most 32 GiB in one call.

        Raises:
            HubError: it is not as long as it should be, or arrives too slowly.
            Exception: the HTTP library's, where the connection failed; the bytes written until then are valid.
        """
        where, end = f"{self.repo}/{name}", min(begin + _PART_BYTES, file_bytes)
        part = {} if (begin, end) == (0, file_bytes) else {"range": f"bytes={begin}-{end - 1}"}
        with self._reply(name, where, {**PLAIN, **part}) as reply:
            if part:
                self._check_size(_size_stated(reply.response, begin, end, where), file_bytes, where)
            elif reply.response.headers.get("content-encoding", "identity") != "identity":
                raise _compressed(where)
            came = begin
            for piece in rate_limited(reply.response.iter_raw(), where):
                came += len(piece)
                if came > end:
                    raise _other_length(end - begin, "more", where)
                write(piece)
        if came != end:
            raise _other_length(end - begin, f"{came - begin:,}", where)

    def _reserve(self, header_bytes: int) -> None:
        with self._reserving:
            self._header_bytes_left -= header_bytes
            if self._header_bytes_left < 0:
                raise HubError(
                    f"{self.repo}: the headers of its weight files take more than {MOST_HEADER_BYTES:,} bytes,"
                    " the most that is read over the network",
                    code="transfer",
                )

    def _whole(self, name: str, file_bytes: int) -> bytes:
        where = f"{self.repo}/{name}"
        with self._reply(name, where, COMPRESSED) as reply:
            return _exactly(file_bytes, decoded(reply.response, where), where, within=TEXT_WITHIN)

    def _part(self, name: str, begin: int, end: int, file_bytes: int) -> bytes:
        where = f"{self.repo}/{name}"
        with self._reply(name, where, {"range": f"bytes={begin}-{end - 1}", **PLAIN}) as reply:
            self._check_size(_size_stated(reply.response, begin, end, where), file_bytes, where)
            return _exactly(end - begin, reply.response.iter_raw(), where)

    @staticmethod
    def _check_size(size: int, file_bytes: int, where: str) -> None:
        if size != file_bytes:
            raise HubError(
                f"{where}: the listing states {file_bytes:,} bytes, the file server {size:,}",
                hint="try again later: the two may have been asked at different times",
                code="transfer",
            )

    def _reply(self, name: str, where: str, headers: dict[str, str]) -> AbstractContextManager[Reply]:
        from huggingface_hub import hf_hub_url

        return self._session.reply(hf_hub_url(self.repo, name, revision=self.commit), where, headers)


def _exactly(wanted: int, pieces: Iterable[bytes], where: str, *, within: float | None = None) -> bytes:
    """The joined pieces, which must have exactly this length; reading stops once there are more.

    Raises:
        HubError: the length differs, or the server is too slow.
    """
    data = body(pieces, wanted, where, within=within)
    if len(data) != wanted:
        raise _other_length(wanted, "more" if len(data) > wanted else f"{len(data):,}", where)
    return data


def _other_length(wanted: int, came: str, where: str) -> HubError:
    return HubError(f"{where}: expected {wanted:,} bytes, received {came}", code="transfer")


def _compressed(where: str) -> HubError:
    return HubError(
        f"{where}: the server compresses range replies, so they are not the requested bytes", code="transfer"
    )


def _size_stated(response: Any, begin: int, end: int, where: str) -> int:
    """The size of the whole file, as the reply to `bytes=begin-end` states it.

    Raises:
        HubError: the reply is not of these bytes.
    """
    if response.headers.get("content-encoding", "identity") != "identity":
        raise _compressed(where)
    if response.status_code == 206:
        stated = response.headers.get("content-range", "")
        span = _CONTENT_RANGE.fullmatch(stated)
        if span is None or (int(span[1]), int(span[2])) != (begin, end - 1):
            # Other text of a header is not repeated: a careless server may repeat the token that it was sent.
            found = repr(stated) if span else "no range that can be read" if stated else "no stated range"
            raise HubError(
                f"{where}: bytes {begin}-{end - 1} were requested, the reply has {found}",
                hint="a proxy or a mirror in between may be at fault: check HF_ENDPOINT",
                code="transfer",
            )
        return int(span[3])
    stated = response.headers.get("content-length", "")
    length = int(stated) if _LENGTH.fullmatch(stated) else None
    if begin == 0 and length == end:
        return end  # the whole file was asked for
    raise HubError(
        f"{where}: the server ignores ranges and would send the whole file"
        f"{f', {length:,} bytes' if length is not None else ''}; stopped before its first byte",
        hint="`--download` fetches the files, then verifies them",
        code="transfer",
    )
