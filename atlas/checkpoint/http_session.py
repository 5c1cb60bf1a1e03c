"""Sends requests to the Hub: follows redirects, counts, and checks the response headers; `response_body` reads the body.

The underlying client is huggingface_hub's, with its proxies, certificates, offline mode and keep-alive. Server headers
are not passed on to huggingface_hub: it would print warnings from them, wait as long as they ask, and use them in file
paths.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from atlas.checkpoint.deadline import response_deadline
from atlas.checkpoint.settings import authorization, http, ready, session
from atlas.errors import HubError
from atlas.version import __version__

MOST_REDIRECTS = 10
_ERROR_HEADERS = ("x-error-code", "x-error-message", "retry-after", "ratelimit")
_LONGEST_ERROR_HEADER = 200
_MOST_DRAINED_BYTES = 8_192
_MOST_DRAINING_SECONDS = 2.0
_ELSEWHERE = "a proxy or a mirror in between may be at fault: check HF_ENDPOINT"


@dataclass(frozen=True, slots=True)
class Reply:
    """A response whose body has not been read.

    Attributes:
        response: the HTTP library's.
        heads: the headers of the redirects and of the response itself.
    """

    response: Any
    heads: tuple[Mapping[str, str], ...]

    def first(self, name: str) -> str | None:
        """A header, from the first of these responses that has it."""
        return next((head[name] for head in self.heads if name in head), None)


class HttpSession:
    """Sends and counts requests; thread-safe.

    Attributes:
        requests: sent, redirects and repeated ones included.
        bytes_read: of bodies, as they came over the network.
    """

    def __init__(self) -> None:
        ready()
        self.requests = 0
        self.bytes_read = 0
        self._counting = threading.Lock()
        self._headers = {"user-agent": f"open-model-atlas/{__version__}", **authorization()}

    def _count(self, requests: int = 0, bytes_read: int = 0) -> None:
        with self._counting:
            self.requests += requests
            self.bytes_read += bytes_read

    @contextmanager
    def reply(
        self, url: str, what: str, headers: Mapping[str, str], *, counted: bool = True
    ) -> Iterator[Reply]:
        """The response to one request; the connection is closed if the body is not read to its end.

        Args:
            what: the requested file or repository, for messages.
            headers: `response_body.COMPRESSED` or `response_body.PLAIN` among them.
            counted: whether `bytes_read` is to include the body.

        Raises:
            HubError: the response is invalid, redirects to an unusable URL, or does not arrive in time.
        """
        response = None
        try:
            reply = self._answer(url, what, {**self._headers, **headers})
            response = reply.response
            _raise_for_status(response, what)
            yield reply
        finally:
            if response is not None:
                self._count(bytes_read=response.num_bytes_downloaded if counted else 0)
                response.close()

    def _answer(self, url: str, what: str, headers: Mapping[str, str]) -> Reply:
        from huggingface_hub import constants

        client = session()
        request = client.build_request("GET", url, headers=headers, timeout=constants.HF_HUB_DOWNLOAD_TIMEOUT)
        heads: list[Mapping[str, str]] = []
        with response_deadline() as deadline:
            while len(heads) <= MOST_REDIRECTS:
                self._count(requests=1)
                try:
                    response = client.send(request, stream=True, follow_redirects=False)
                except Exception as error:
                    if deadline.missed:
                        raise _late(what) from None
                    raise _sendable(error, what) from None
                heads.append(response.headers)
                if response.next_request is None:
                    return Reply(response, tuple(heads))
                _drain(response)
                if deadline.missed:
                    raise _late(what)
                request = response.next_request
                if request.url.scheme not in ("http", "https") or (request.url.port or 0) > 65535:
                    raise _bad_redirect(what)
        raise http().TooManyRedirects("too many redirects", request=request)


def _late(what: str) -> HubError:
    return HubError(
        f"{what}: the server sends its response headers too slowly",
        hint="check the network, or try again later",
        code="network",
    )


def _bad_redirect(what: str) -> HubError:
    return HubError(
        f"{what}: the server redirects to a URL that cannot be used", hint=_ELSEWHERE, code="transfer"
    )


def _sendable(error: Exception, what: str) -> Exception:
    """Network failures unchanged; what a bad URL or header makes the HTTP library raise becomes a HubError."""
    if isinstance(error, http().RemoteProtocolError) and "location header" in str(error):
        return _bad_redirect(what)
    if isinstance(error, (http().HTTPError, OSError, RuntimeError)):
        return error
    return _bad_redirect(what)  # a host that is no name, a port that is none, an address that is too long


def _drain(response: Any) -> None:
    """Read the short body of a redirect, so that its connection can be used again; a long one is not worth it."""
    stated = response.headers.get("content-length", "")
    begin = time.monotonic()
    try:
        if stated.isascii() and stated.isdigit() and len(stated) < 5 and int(stated) <= _MOST_DRAINED_BYTES:
            with suppress(http().HTTPError):
                for _ in response.iter_raw():
                    if time.monotonic() - begin > _MOST_DRAINING_SECONDS:
                        break
    finally:
        response.close()


def _raise_for_status(response: Any, what: str) -> None:
    """Raise for an error status by the headers alone: the body may be anything, and never end.

    Raises:
        Exception: huggingface_hub's, for 400 and above.
        HubError: the status is another than that of a whole file or of a range.
    """
    if response.status_code >= 400:
        from huggingface_hub.utils import hf_raise_for_status  # type: ignore[attr-defined]

        head = {name: response.headers[name] for name in _ERROR_HEADERS if name in response.headers}
        repeated = {
            name: value
            for name, value in head.items()
            if value.isascii() and value.isprintable() and len(value) <= _LONGEST_ERROR_HEADER
        }
        hf_raise_for_status(http().Response(response.status_code, headers=repeated, request=response.request))
    if "content-length" in response.headers and "transfer-encoding" in response.headers:
        raise HubError(
            f"{what}: the response has both a Content-Length and a Transfer-Encoding, so its length is ambiguous",
            hint=_ELSEWHERE,
            code="transfer",
        )
    if response.has_redirect_location:
        raise _bad_redirect(what)
    if response.status_code not in (200, 206):
        raise HubError(
            f"{what}: expected status 200 or 206, received {response.status_code}",
            hint=_ELSEWHERE,
            code="transfer",
        )
