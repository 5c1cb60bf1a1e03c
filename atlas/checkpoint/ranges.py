"""Files of one repository at one commit, read over HTTP: small ones whole, of weights the first bytes.

The session is huggingface_hub's, and with it proxies, certificates, offline mode and connections kept alive; it follows
redirects and drops the token where they lead to another host. What a range reply promises is checked here, because a
server that is wrong about it would have us download the weights, or judge the bytes of another place.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from atlas.checkpoint.header import bytes_needed
from atlas.checkpoint.hub import Refusals
from atlas.checkpoint.patience import patiently
from atlas.errors import HubError
from atlas.version import __version__

_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")


class Reader:
    """Reads files, and counts what that took; several threads may use it.

    Attributes:
        requests: sent, redirects and repeated ones included.
        bytes_read: of bodies, as they came over the wire.
    """

    def __init__(self, repo: str, commit: str) -> None:
        from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]

        self.repo = repo
        self.commit = commit
        self.requests = 0
        self.bytes_read = 0
        self._counting = threading.Lock()
        self._headers = build_hf_headers(library_name="open-model-atlas", library_version=__version__)

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

    @contextmanager
    def _reply(self, name: str, headers: dict[str, str] | None = None) -> Iterator[Any]:
        """The response to one request, its body still to be read; left early, the connection is closed."""
        from huggingface_hub import constants, get_session, hf_hub_url
        from huggingface_hub.utils import hf_raise_for_status  # type: ignore[attr-defined]

        url = hf_hub_url(self.repo, name, revision=self.commit)
        requests, bytes_read = 1, 0
        try:
            with get_session().stream(
                "GET", url, headers=self._headers | (headers or {}), timeout=constants.HF_HUB_DOWNLOAD_TIMEOUT
            ) as response:
                requests += len(response.history)
                try:
                    hf_raise_for_status(response)
                    yield response
                finally:
                    bytes_read = response.num_bytes_downloaded
        finally:
            with self._counting:
                self.requests += requests
                self.bytes_read += bytes_read


def _exactly(wanted: int, pieces: Iterable[bytes], where: str) -> bytes:
    """The pieces together, which must come to so many bytes; of more, no more is read than shows it.

    Raises:
        HubError: they do not.
    """
    data = bytearray()
    for piece in pieces:
        data += piece
        if len(data) > wanted:
            break
    if len(data) != wanted:
        came = "more" if len(data) > wanted else f"{len(data):,}"
        raise HubError(f"{where}: {wanted:,} bytes were expected, {came} came", code="transfer")
    return bytes(data)


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
    length = response.headers.get("content-length", "")
    if begin == 0 and length.isdigit() and int(length) == end:
        return end  # the whole file was asked for
    raise HubError(
        f"{where}: the server ignores ranges and would send the whole file"
        f"{f', {int(length):,} bytes' if length.isdigit() else ''}; stopped before its first byte",
        hint="`--download` fetches the files, then verifies them",
        code="transfer",
    )
