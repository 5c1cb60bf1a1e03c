"""Files of one repository at one commit, read over HTTP: small ones whole, of weights the first bytes.

What a range reply promises is checked here, because a
server that is wrong about it would have us download the weights, or judge the bytes of another place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from atlas.checkpoint.header import bytes_needed
from atlas.checkpoint.patience import patiently
from atlas.checkpoint.refusals import Refusals
from atlas.checkpoint.wire import Wire, body
from atlas.errors import HubError

_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,19})-([0-9]{1,19})/([0-9]{1,19})")
_LENGTH = re.compile(r"[0-9]{1,19}")


class Reader:
    """Reads files; several threads may use it."""

    def __init__(self, repo: str, commit: str, wire: Wire) -> None:
        self.repo = repo
        self.commit = commit
        self._wire = wire

    def whole(self, name: str, file_bytes: int) -> bytes:
        """A small file.

        Raises:
            HubError: it could not be read, or is not as long as it should be.
        """
        with Refusals(self.repo, name):
            return patiently(partial(self._whole, name, file_bytes))

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
            data += self._range(name, len(data), needed, file_bytes)
        return data

    def _range(self, name: str, begin: int, end: int, file_bytes: int) -> bytes:
        with Refusals(self.repo, name):
            return patiently(partial(self._part, name, begin, end, file_bytes))

    def _whole(self, name: str, file_bytes: int) -> bytes:
        with self._reply(name) as response:
            return _exactly(file_bytes, response.iter_bytes(), f"{self.repo}/{name}")

    def _part(self, name: str, begin: int, end: int, file_bytes: int) -> bytes:
        where = f"{self.repo}/{name}"
        # Compressed on the way, a range would be one of the compressed file.
        asked = {"range": f"bytes={begin}-{end - 1}", "accept-encoding": "identity"}
        with self._reply(name, asked) as response:
            size = _size_stated(response, begin, end, where)
            if size != file_bytes:
                raise HubError(
                    f"{where}: the listing says {file_bytes:,} bytes, but the server that has the file {size:,}",
                    hint="try again later: the two may have been asked at different times",
                    code="transfer",
                )
            return _exactly(end - begin, response.iter_raw(), where)

    def _reply(self, name: str, headers: dict[str, str] | None = None) -> AbstractContextManager[Any]:
        from huggingface_hub import hf_hub_url

        return self._wire.reply(hf_hub_url(self.repo, name, revision=self.commit), headers)


def _exactly(wanted: int, pieces: Iterable[bytes], where: str) -> bytes:
    """The pieces together, which must come to so many bytes; of more, no more is read than shows it.

    Raises:
        HubError: they do not, or not in a reasonable time.
    """
    data = body(pieces, wanted, where)
    if len(data) != wanted:
        came = "more" if len(data) > wanted else f"{len(data):,}"
        raise HubError(f"{where}: {wanted:,} bytes were expected, {came} came", code="transfer")
    return data


def _size_stated(response: Any, begin: int, end: int, where: str) -> int:
    """The size of the whole file, as the reply to `bytes=begin-end` states it.

    Raises:
        HubError: the reply is not of these bytes.
    """
    if response.headers.get("content-encoding", "identity") != "identity":
        raise HubError(
            f"{where}: the server compresses ranges, which makes them ranges of something else",
            code="transfer",
        )
    if response.status_code == 206:
        stated = response.headers.get("content-range", "")
        span = _CONTENT_RANGE.fullmatch(stated)
        if span is None or (int(span[1]), int(span[2])) != (begin, end - 1):
            raise HubError(
                f"{where}: bytes {begin}-{end - 1} were asked for, the reply is of {stated or 'no stated range'!r}",
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
