"""One file from the web: within a time, within a size, and without what a host may do to a patient client."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

if TYPE_CHECKING:
    from http.client import HTTPMessage
    from urllib.request import OpenerDirector, Request

MOST_SILENT_SECONDS = 10
"""Without a byte from the host."""


@dataclass(frozen=True, slots=True)
class Unread:
    """Why a file was not read.

    Attributes:
        status: of the host's answer; None where there was none that could be used.
        reason: in words.
    """

    reason: str
    status: int | None = None


def fetch(url: str, *, most: int, seconds: float) -> bytes | Unread:
    """The bytes at an http or https URL; or why not.

    A user and a password in the URL are sent to its host, and to no other that it may redirect to.

    Args:
        most: bytes; a longer body is not read to its end.
        seconds: for everything together, resolving the host's name and all redirects included.
    """
    found: list[bytes | Unread] = []
    # A thread, because no timeout of a socket bounds the whole: a host may send a byte now and then, for ever.
    thread = threading.Thread(target=lambda: found.append(_fetch(url, most)), daemon=True)
    try:
        thread.start()
    except RuntimeError:
        return Unread("no thread can be started")
    thread.join(max(0.0, seconds))
    return found[0] if found else Unread(f"it has not answered in full within {seconds:.0f} seconds")


def _fetch(url: str, most: int) -> bytes | Unread:
    from http.client import HTTPException
    from urllib.error import HTTPError, URLError

    try:
        with _opener().open(_request(url), timeout=MOST_SILENT_SECONDS) as reply:
            data: bytes = reply.read(most + 1)
            announced = reply.headers.get("Content-Length", "")
    except HTTPError as error:
        error.close()
        return Unread(f"it answered {error.code}", error.code)
    except URLError as error:
        return Unread(_in_words(error.reason))
    except OSError as error:
        return Unread(_in_words(error))
    except (ValueError, HTTPException):  # their texts quote what the host sent, or the URL
        return Unread("the URL is not valid, or the answer is not HTTP")
    if len(data) > most:
        return Unread(f"the file is larger than {most:,} bytes, the most that is read of a source", 200)
    if announced.isdecimal() and len(announced) < 19 and int(announced) > len(data):
        return Unread("the connection was closed before the end of the file")
    return data


def _request(url: str) -> Request:
    from base64 import b64encode
    from urllib.parse import unquote_to_bytes
    from urllib.request import Request

    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        raise ValueError("neither http nor https")
    user, _, host = parts.netloc.rpartition("@")
    request = Request(urlunsplit(parts._replace(netloc=host)), headers={"Accept-Encoding": "identity"})
    if user:
        request.add_unredirected_header(
            "Authorization", f"Basic {b64encode(unquote_to_bytes(user)).decode('ascii')}"
        )
    return request


def _opener() -> OpenerDirector:
    """As `urllib.request.urlopen`, for http and https alone and with redirects that are bounded too."""
    from urllib import request

    class Redirects(request.HTTPRedirectHandler):
        def http_error_302(
            self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage
        ) -> request._UrlopenRet | None:
            fp.close()  # the base class reads the body, which may have no end
            return super().http_error_302(req, fp, code, msg, headers)

        http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302

        def redirect_request(
            self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
        ) -> Request | None:
            scheme = urlsplit(newurl).scheme
            if scheme not in ("http", "https") or (req.type == "https" and scheme == "http"):
                return None
            return super().redirect_request(req, fp, code, msg, headers, newurl)

    opener = request.OpenerDirector()
    for handler in (
        request.ProxyHandler(),
        request.UnknownHandler(),
        request.HTTPHandler(),
        request.HTTPSHandler(),
        request.HTTPDefaultErrorHandler(),
        request.HTTPErrorProcessor(),
        Redirects(),
    ):
        opener.add_handler(handler)
    return opener


def _in_words(reason: object) -> str:
    """The system's words for a failure; others may quote a host, or a proxy's password."""
    if isinstance(reason, TimeoutError):
        return "timed out"
    if isinstance(reason, OSError) and reason.errno is not None and reason.strerror:
        return str(reason.strerror)
    return "the connection failed"
