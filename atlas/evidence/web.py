"""Downloads one file within limits of time and size, and follows only safe redirects."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

if TYPE_CHECKING:
    from http.client import HTTPMessage
    from urllib.request import OpenerDirector, Request

MOST_SILENT_SECONDS = 10
"""Longest wait for the next byte."""


@dataclass(frozen=True, slots=True)
class Unread:
    """Why a file was not read.

    Attributes:
        status: HTTP status; None if there was no usable response.
        reason: a clause for a message.
    """

    reason: str
    status: int | None = None


def fetch(url: str, *, most: int, seconds: float) -> bytes | Unread:
    """The bytes at an http or https URL, or the reason they could not be read.

    Credentials in the URL are sent to its host, but not to the target of a redirect.

    Args:
        most: limit in bytes; a longer body is not read to its end.
        seconds: limit for the whole download, including name resolution and redirects.
    """
    found: list[bytes | Unread] = []
    # A socket timeout does not limit the total time: a host may send a byte now and then. A thread does.
    thread = threading.Thread(target=lambda: found.append(_fetch(url, most)), daemon=True)
    thread.start()
    thread.join(max(0.0, seconds))
    return found[0] if found else Unread(f"no complete response within {seconds:.0f} seconds")


def _fetch(url: str, most: int) -> bytes | Unread:
    from http.client import HTTPException
    from urllib.error import HTTPError, URLError

    try:
        with _opener().open(_request(url), timeout=MOST_SILENT_SECONDS) as reply:
            data: bytes = reply.read(most + 1)
            announced = reply.headers.get("Content-Length", "")
    except HTTPError as error:
        error.close()
        return Unread(f"HTTP status {error.code}", error.code)
    except URLError as error:
        return Unread(_in_words(error.reason))
    except OSError as error:
        return Unread(_in_words(error))
    except (ValueError, HTTPException):  # their messages quote the response or the URL
        return Unread("the URL is not valid, or the response is not HTTP")
    if len(data) > most:
        return Unread(f"the file is larger than {most:,} bytes, the limit for a source", 200)
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
    """Like `urllib.request.urlopen`, restricted to http and https, and without reading the body of a redirect."""
    from urllib import request

    class Redirects(request.HTTPRedirectHandler):
        def http_error_302(
            self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage
        ) -> request._UrlopenRet | None:
            fp.close()  # the base class reads the body, which may be endless
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
    """The system's message for a failure. Other messages may quote a host or a proxy's password."""
    if isinstance(reason, TimeoutError):
        return "timed out"
    if isinstance(reason, OSError) and reason.errno is not None and reason.strerror:
        return str(reason.strerror)
    return "the connection failed"
