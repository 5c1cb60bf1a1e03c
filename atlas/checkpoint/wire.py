"""One request to the Hub: sent, counted, judged by its head, and its body read as long as it keeps coming.

The session is huggingface_hub's, and with it proxies, certificates, offline mode and connections kept alive; it follows
redirects and drops the token where they lead to another host.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from atlas.checkpoint.client import http, ready
from atlas.errors import HubError
from atlas.version import __version__

GRACE = 60.0
"""Seconds that a body may take however little of it comes."""
LEAST_RATE = 10_000
"""Bytes a second that must come after them: a header of 40 kB over a bad line, not a server that drips."""
_TOLD = ("x-error-code", "x-error-message", "retry-after", "ratelimit")
_LONGEST_TOLD = 200


class Wire:
    """Sends requests, and counts them; several threads may use it.

    Attributes:
        requests: sent, redirects and repeated ones included.
        bytes_read: of bodies, as they came over the wire.
    """

    def __init__(self) -> None:
        ready()
        from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]

        self.requests = 0
        self.bytes_read = 0
        self._counting = threading.Lock()
        self._headers = build_hf_headers(library_name="open-model-atlas", library_version=__version__)

    def count(self, requests: int = 1, bytes_read: int = 0) -> None:
        """Add what was sent and read; by `reply` itself, or by huggingface_hub."""
        with self._counting:
            self.requests += requests
            self.bytes_read += bytes_read

    @contextmanager
    def reply(self, url: str, headers: Mapping[str, str] | None = None) -> Iterator[Any]:
        """The response to one request, its body still to be read; left early, the connection is closed."""
        from huggingface_hub import constants, get_session

        requests, bytes_read = 1, 0
        try:
            with get_session().stream(
                "GET",
                url,
                headers={**self._headers, **(headers or {})},
                timeout=constants.HF_HUB_DOWNLOAD_TIMEOUT,
            ) as response:
                requests += len(response.history)
                try:
                    _raise_for_status(response)
                    yield response
                finally:
                    bytes_read = response.num_bytes_downloaded
        finally:
            self.count(requests, bytes_read)


def body(pieces: Iterable[bytes], most: int, where: str) -> bytes:
    """The pieces together; where they come to more than `most` bytes, no more is read than shows it.

    Raises:
        HubError: they come so slowly that there is no waiting for the rest.
    """
    data, begin = bytearray(), time.monotonic()
    for piece in pieces:
        data += piece
        if len(data) > most:
            break
        seconds = time.monotonic() - begin
        if seconds > GRACE + len(data) / LEAST_RATE:
            raise HubError(
                f"{where}: the server sends too slowly: {len(data):,} bytes came in {seconds:,.0f} s",
                hint="check the network, or try again later",
                code="network",
            )
    return bytes(data)


def _raise_for_status(response: Any) -> None:
    """huggingface_hub's error for a refusal, by its head alone: the body of one may be anything, and never end."""
    from huggingface_hub.utils import hf_raise_for_status  # type: ignore[attr-defined]

    if response.status_code >= 400:
        head = {name: response.headers[name] for name in _TOLD if name in response.headers}
        told = {
            name: value for name, value in head.items() if value.isascii() and len(value) <= _LONGEST_TOLD
        }
        response = http().Response(response.status_code, headers=told, request=response.request)
    hf_raise_for_status(response)
