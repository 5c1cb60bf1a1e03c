"""Turns the errors of huggingface_hub and its HTTP client into messages with a hint.

A message never contains a token: no text from a server, a request or a response is used, only the operating system's error
text of a connection.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from atlas.checkpoint.settings import endpoint, http, offline, seconds_asked
from atlas.errors import HubError
from atlas.text import public_url


class HubErrors:
    """Turns what huggingface_hub raises inside into a HubError: `with HubErrors(repo): …`."""

    def __init__(self, repo: str, path: str = "") -> None:
        self.repo = repo
        self.path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            refusal = _refusal(error, self.repo, f"{self.repo}/{self.path}" if self.path else self.repo)
            if refusal is not None:
                raise refusal from None


def _refusal(error: BaseException, repo: str, what: str) -> HubError | None:
    """The HubError for a failure; None where it is not one of the Hub's.

    A gated repository without a token, one whose token has no access, and one that does not exist need different actions;
    the Hub's error code distinguishes them.
    """
    from huggingface_hub import errors

    hint = ""
    match error:
        case errors.GatedRepoError():
            return _gated(repo, _status(error))
        case errors.DisabledRepoError():
            message = f"{repo} is disabled on the Hub: nobody can read it at present"
            code, hint = "forbidden", f"its page may give the reason: {endpoint()}/{repo}"
        case errors.RepositoryNotFoundError():
            message = f"{repo}: no such repository was found on the Hub"
            code, hint = "not_found", "check the spelling; a private one needs a token (HF_TOKEN)"
        case errors.RevisionNotFoundError():
            message, code, hint = f"{repo}: no such revision", "not_found", "give a branch, a tag or a commit"
        case errors.OfflineModeIsEnabled():
            return _unreachable(what, error)
        case errors.EntryNotFoundError():
            message, code = f"{what} was not found in the repository", "not_found"
        case errors.HFValidationError():
            message, code = f"{repo!r} is not a Hub id; expected owner/name", "not_found"
        case errors.HfHubHTTPError():
            return _refused(what, error)
        case UnicodeEncodeError(encoding="ascii"):  # of a request's head
            message, code, hint = (
                "the token contains characters that are not ASCII",
                "token",
                "check HF_TOKEN",
            )
        case UnicodeEncodeError():  # of its address
            message, code = f"{what}: the revision contains characters that are not allowed", "not_found"
            hint = "give a branch, a tag or a commit"
        case _ if isinstance(error, http().HTTPError):
            return _unreachable(what, error)
        case RuntimeError() if "client has been closed" in str(error):
            # huggingface_hub 1, where a connection failed, closes its session and goes on with it.
            return _unreachable(what, error)
        case FileNotFoundError(filename=None):  # httpx, of certificates
            message = f"{what}: a certificate file named in the environment does not exist"
            code, hint = "settings", "check SSL_CERT_FILE and SSL_CERT_DIR"
        case OSError():
            problem = f"{error.strerror or type(error).__name__}: {error.filename}"
            message, code = f"{what}: the local Hub cache failed: {problem}", "cache"
            hint = "check the folder and the space on its disk, or set HF_HOME to another"
        case _:
            return None
    return HubError(message, hint=hint, code=code)


def _gated(repo: str, status: int | None) -> HubError:
    page = f"{endpoint()}/{repo}"
    if status == 403:
        return HubError(
            f"{repo} is gated, and the token in use has no access to it",
            hint=f"ask for access on {page}; a fine-grained token must also allow gated repositories",
            code="forbidden",
        )
    return HubError(
        f"{repo} is gated, and no token with access to it was given",
        hint=f"accept its terms on {page}, then set HF_TOKEN or log in with `hf auth login`",
        code="gated",
    )


def _refused(what: str, error: Any) -> HubError:
    status = _status(error)
    if status == 401:
        return HubError(
            f"{what}: the Hub requires a valid token (401)",
            hint="check HF_TOKEN, or log in with `hf auth login`",
            code="token",
        )
    if status == 403:
        return HubError(
            f"{what}: the token in use may not read it (403)", hint="check its permissions", code="forbidden"
        )
    if status == 429:
        wait = seconds_asked(error.response.headers)
        again = f"try again in {wait:,} s" if wait else "try again later"
        return HubError(
            f"{what}: the Hub limits the rate of requests (429){_notes(error)}",
            hint=f"{again}; with a token (HF_TOKEN) the limit is higher",
            code="rate_limit",
        )
    if status in (404, 410):
        return HubError(
            f"{what} was not found ({status})",
            hint="check the spelling, and HF_ENDPOINT",
            code="not_found",
        )
    if status is not None and 400 <= status < 500 and status != 408:
        reason = " for legal reasons" if status == 451 else ""
        return HubError(
            f"{what}: the server refuses the request{reason} ({status})",
            hint="" if reason else "a proxy or a mirror in between may be at fault: check HF_ENDPOINT",
            code="forbidden" if reason else "refused",
        )
    return HubError(
        f"{what}: the Hub returned {status or 'with an error'}{_notes(error)}",
        hint="try again later",
        code="network",
    )


def _unreachable(what: str, error: Exception) -> HubError:
    if offline():
        return HubError(
            f"{what} is not in the local cache, and HF_HUB_OFFLINE is set",
            hint="unset it to ask the Hub",
            code="offline",
        )
    other, reason = _other_host(error), f"{_reason(error)}{_notes(error)}"
    if other and type(error).__name__ in ("ConnectError", "ConnectTimeout"):
        return HubError(
            f"{what}: {endpoint()} redirects to {other}, which could not be reached: {reason}",
            hint="check the network: a firewall must allow that host too",
            code="network",
        )
    if other:
        return HubError(
            f"{what}: {endpoint()} redirects to {other}, where the request failed: {reason}",
            hint="check the network, or try again later",
            code="network",
        )
    return HubError(
        f"{what}: the Hub could not be reached ({endpoint()}): {reason}",
        hint="check the network, or HF_ENDPOINT",
        code="network",
    )


def _other_host(error: Exception) -> str:
    """The host (with scheme and port) that did not respond, where a redirect led away from the Hub."""
    try:
        url = error.request.url  # type: ignore[attr-defined]
        asked = urlsplit(f"{url.scheme}://{url.netloc.decode('ascii')}")
        other = (asked.hostname, asked.port)
    except (AttributeError, RuntimeError, ValueError):  # sent by no request, as httpx reports it
        return ""
    hub = urlsplit(endpoint())
    return "" if other == (hub.hostname, hub.port) else public_url(asked.geturl())[:100]


def _reason(error: Exception) -> str:
    kind = type(error).__name__
    if kind == "ConnectError":
        # The text of the operating system or of TLS: unknown name, refused, certificate.
        return str(error)[:200]
    words = {
        "ConnectTimeout": "no connection in time",
        "RuntimeError": "no connection",
        "ReadTimeout": "no response in time",
        "ReadError": "the connection was reset",
        "WriteError": "the connection was reset",
        "ProxyError": "the proxy refused the connection",
        "RemoteProtocolError": "the connection ended before the response did",
        "TooManyRedirects": "too many redirects",
    }
    return words.get(kind, kind)


def _notes(error: Exception) -> str:
    """The notes that `retry` added to the error."""
    notes = getattr(error, "__notes__", ())
    return f" ({'; '.join(notes)})" if notes else ""


def _status(error: Exception) -> int | None:
    response = getattr(error, "response", None)
    status: int | None = getattr(response, "status_code", None)
    return status
