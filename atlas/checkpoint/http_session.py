"""One request to the Hub: sent, redirected, counted, and judged by its head; its body is for `bodies`.

The session is huggingface_hub's, and with it proxies, certificates, offline mode and connections kept alive. Nothing
that a server sends reaches huggingface_hub itself: it would print warnings that a header holds, wait as long as another
says, and put a third into the path of a file.
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
    """An answer whose body is still to be read.

    Attributes:
        response: the HTTP library's.
        heads: the headers of the redirects on the way, and of the answer itself.
    """

    response: Any
    heads: tuple[Mapping[str, str], ...]

    def first(self, name: str) -> str | None:
        """A header, from the first answer on the way that has it."""
        return next((head[name] for head in self.heads if name in head), None)


class HttpSession:
    """Sends requests, and counts them; several threads may use it.

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
        """The answer to one request; left early, the connection is closed.

        Args:
            what: the file or the repository that is asked for, for messages.
            headers: `response_body.COMPRESSED` or `response_body.PLAIN` among them.
            counted: whether `bytes_read` is to include the body.

        Raises:
            HubError: the answer is none to such a request, leads nowhere, or does not come.
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
        f"{what}: the server sends the head of its answer too slowly",
        hint="check the network, or try again later",
        code="network",
    )


def _bad_redirect(what: str) -> HubError:
    return HubError(
        f"{what}: the server redirects to an address that cannot be used", hint=_ELSEWHERE, code="transfer"
    )


def _sendable(error: Exception, what: str) -> Exception:
    """The failure itself where it is one of the network; what an address or a header makes the HTTP library raise is our error."""
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
    """An error for a refusal, by its head alone: the body of one may be anything, and never end.

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
    if response.has_redirect_location:
        raise _bad_redirect(what)
    if response.status_code not in (200, 206):
        raise HubError(
            f"{what}: expected status 200 or 206, the server answered {response.status_code}",
            hint=_ELSEWHERE,
            code="transfer",
        )
