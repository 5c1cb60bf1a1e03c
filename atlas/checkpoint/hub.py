"""The Hub, through huggingface_hub: single files, and refusals told apart.

Authentication, endpoint, cache and offline mode are that library's; here its errors become sentences that say what to do.
A token is never part of one: no text of a server, a request or a response is, only what the operating system says of a
connection.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from atlas.checkpoint.client import ready
from atlas.errors import HubError

# A date may stand in its place, or anything.
_SECONDS = re.compile(r"[0-9]{1,9}")


def config_file(repo: str) -> Path:
    """A repository's config.json: from the local cache if it is there, else fetched, that one file alone.

    Raises:
        HubError: there is no such repository or file, access is refused, or the Hub cannot be reached.
    """
    return file(repo, "config.json")


def file(repo: str, path: str, *, revision: str | None = None) -> Path:
    """One file of a repository, from the local cache if it is there, else fetched.

    Raises:
        HubError: as `config_file`.
    """
    ready()
    from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url, try_to_load_from_cache

    from atlas.checkpoint.patience import patiently

    with Refusals(repo, path):
        found = try_to_load_from_cache(repo, path, revision=revision)
        if not isinstance(found, str):
            # Where the Hub is down, hf_hub_download says so after half a minute and five warnings.
            patiently(partial(get_hf_file_metadata, hf_hub_url(repo, path, revision=revision)))
            found = hf_hub_download(repo, path, revision=revision)
    return Path(found)


def http() -> Any:
    """The HTTP library under huggingface_hub: httpx in its version 1, httpx2 since 2."""
    from huggingface_hub.errors import HfHubHTTPError

    return import_module(HfHubHTTPError.__bases__[0].__module__.partition(".")[0])


def offline() -> bool:
    """Whether HF_HUB_OFFLINE forbids every request."""
    from huggingface_hub import constants

    return bool(constants.HF_HUB_OFFLINE)


def endpoint() -> str:
    """Where the Hub is, to be read: without the password that HF_ENDPOINT may carry."""
    from huggingface_hub import constants

    parts = urlsplit(constants.ENDPOINT)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def seconds_asked(headers: Mapping[str, str]) -> int | None:
    """How long a server asks to be left alone: `Retry-After: 5`, or the Hub's `ratelimit: "resolvers";r=0;t=5`."""
    after, limit = headers.get("retry-after", "").strip(), headers.get("ratelimit", "")
    if _SECONDS.fullmatch(after):
        return int(after)
    fields = dict(field.strip().partition("=")[::2] for field in limit.split(";"))
    return int(fields["t"]) if fields.get("r") == "0" and _SECONDS.fullmatch(fields.get("t", "")) else None


class Refusals:
    """Turns what huggingface_hub raises inside into a HubError: `with Refusals(repo): …`."""

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
    """What to say of a failure; None where it is not one of the Hub's.

    A gated repository without a token, one whose token has no access, and one that is not there are three different
    things to do; the Hub's error code tells them apart.
    """
    from huggingface_hub import errors

    hint = ""
    match error:
        case errors.GatedRepoError():
            return _gated(repo, _status(error))
        case errors.RepositoryNotFoundError():
            message = f"{repo}: no such repository was found on the Hub"
            code, hint = "not_found", "check the spelling; a private one needs a token (HF_TOKEN)"
        case errors.RevisionNotFoundError():
            message, code, hint = f"{repo}: no such revision", "not_found", "give a branch, a tag or a commit"
        case errors.LocalEntryNotFoundError(__cause__=Exception() as cause) if not offline():
            return _refusal(cause, repo, what)  # why the Hub did not give what the cache does not have
        case errors.OfflineModeIsEnabled() | errors.LocalEntryNotFoundError():
            return _unreachable(what, error)
        case errors.EntryNotFoundError():
            message, code = f"{what} was not found in the repository", "not_found"
        case errors.HFValidationError():
            message, code = f"{repo!r} is no Hub id; expected owner/name", "not_found"
        case errors.HfHubHTTPError():
            return _refused(what, error)
        case UnicodeEncodeError(encoding="ascii"):  # of a request's head
            message, code, hint = "the token has characters that no token has", "token", "check HF_TOKEN"
        case UnicodeEncodeError():  # of its address
            message, code = f"{what}: the revision has characters that none has", "not_found"
            hint = "give a branch, a tag or a commit"
        case _ if isinstance(error, http().HTTPError):
            return _unreachable(what, error)
        case RuntimeError() if "client has been closed" in str(error):
            # huggingface_hub 1, where a connection failed, closes its session and goes on with it.
            return _unreachable(what, error)
        case errors.FileMetadataError():
            message = f"{what}: the server's answer lacks what a Hub states of a file: its commit, its ETag or its length"
            code, hint = "transfer", "a proxy or a mirror in between may be at fault: check HF_ENDPOINT"
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
            f"{what}: the Hub asks for a token that it knows (401)",
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
            f"{what}: the Hub limits how often it may be asked (429){_notes(error)}",
            hint=f"{again}; with a token (HF_TOKEN) the limit is higher",
            code="rate_limit",
        )
    if status in (404, 410):
        return HubError(
            f"{what} was not found ({status}), and the server does not say what of it",
            hint="check the spelling, and HF_ENDPOINT",
            code="not_found",
        )
    if status is not None and 400 <= status < 500 and status != 408:
        reason = " for legal reasons" if status == 451 else ""
        return HubError(
            f"{what}: the server refuses to give it{reason} ({status})",
            hint="" if reason else "a proxy or a mirror in between may be at fault: check HF_ENDPOINT",
            code="forbidden" if reason else "refused",
        )
    return HubError(
        f"{what}: the Hub answered {status or 'with an error'}{_notes(error)}",
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
    other = _other_host(error)
    if other:
        return HubError(
            f"{what}: {endpoint()} sends on to {other}, which could not be reached: {_reason(error)}{_notes(error)}",
            hint="check the network: a firewall must let that host through too",
            code="network",
        )
    return HubError(
        f"{what}: the Hub could not be reached ({endpoint()}): {_reason(error)}{_notes(error)}",
        hint="check the network, or HF_ENDPOINT",
        code="network",
    )


def _other_host(error: Exception) -> str:
    """The host, with its scheme and port, that did not answer, where a redirect led to another than the Hub's."""
    try:
        url = error.request.url  # type: ignore[attr-defined]
        asked = urlsplit(f"{url.scheme}://{url.netloc.decode('ascii')}")
    except (AttributeError, RuntimeError, ValueError):  # sent by no request, which httpx says in this way
        return ""
    hub = urlsplit(endpoint())
    return "" if (asked.hostname, asked.port) == (hub.hostname, hub.port) else asked.geturl()


def _reason(error: Exception) -> str:
    kind = type(error).__name__
    if kind == "ConnectError":
        # In the words of the operating system or of TLS: name not known, refused, certificate.
        return str(error)
    words = {
        "ConnectTimeout": "no connection in time",
        "RuntimeError": "no connection",
        "ReadTimeout": "no answer in time",
        "ReadError": "the connection was reset",
        "WriteError": "the connection was reset",
        "RemoteProtocolError": "the connection ended before the answer did",
        "TooManyRedirects": "it redirects in circles",
    }
    return words.get(kind, kind)


def _notes(error: Exception) -> str:
    """What `patience` noted on the error."""
    notes = getattr(error, "__notes__", ())
    return f" ({'; '.join(notes)})" if notes else ""


def _status(error: Exception) -> int | None:
    response = getattr(error, "response", None)
    status: int | None = getattr(response, "status_code", None)
    return status
