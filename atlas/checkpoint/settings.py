"""The settings of huggingface_hub: authentication, endpoint, cache and offline mode are taken from it.

It reads the environment when it is imported. Where HF_ENDPOINT is not a URL or a number is not one, it prints a line on
stdout and raises ValueError, so the settings are checked first.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from http.cookiejar import DefaultCookiePolicy
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from atlas.errors import HubError, shown
from atlas.text import public_url

# A date may stand in its place, or anything.
_SECONDS = re.compile(r"[0-9]{1,9}")
# A longer timeout than this, eleven days, is none that a socket takes on every system.
_LONGEST_TIMEOUT = 10**6


def ready() -> None:
    """Check the settings; call this before using huggingface_hub.

    Raises:
        HubError: a setting in the environment cannot be read.
    """
    address = os.environ.get("HF_ENDPOINT")
    if address is not None and (problem := _problem(address)):
        raise _no_endpoint(address, problem)
    try:
        from huggingface_hub import constants
    except ValueError as error:
        raise HubError(
            f"a setting of huggingface_hub in the environment cannot be read: {error}",
            hint="look among the variables whose names begin with HF_",
            code="settings",
        ) from None
    if address is not None and not _usable(address):
        raise _no_endpoint(address, "its host name cannot be looked up")
    if not 0 < constants.HF_HUB_DOWNLOAD_TIMEOUT <= _LONGEST_TIMEOUT:
        raise HubError(
            f"HF_HUB_DOWNLOAD_TIMEOUT is {shown(constants.HF_HUB_DOWNLOAD_TIMEOUT)}; expected seconds, 1 to "
            f"{_LONGEST_TIMEOUT:,}",
            hint="correct it or unset it",
            code="settings",
        )
    _silence()


def _no_endpoint(address: str, problem: str) -> HubError:
    # The part before an @ may be a password.
    found = shown(address.rpartition("@")[2])
    return HubError(
        f"HF_ENDPOINT is {found}: {problem}; expected an address such as https://huggingface.co",
        hint="correct it or unset it",
        code="settings",
    )


def _usable(address: str) -> bool:
    """Whether the HTTP library and the resolver take the host of an address that can be read."""
    try:
        http().URL(address)
        (urlsplit(address).hostname or "").encode("idna")
    except (http().InvalidURL, UnicodeError):
        return False
    return True


def _silence() -> None:
    """Silence huggingface_hub's log: it prints server text and signed URLs."""
    # Imported first, because this module adds the handler that prints as it is loaded.
    import huggingface_hub.utils.logging  # noqa: F401

    log = logging.getLogger("huggingface_hub")
    if not (len(log.handlers) == 1 and isinstance(log.handlers[0], logging.NullHandler)):
        log.handlers[:] = [logging.NullHandler()]
    log.propagate = False


def _problem(address: str) -> str:
    """What is wrong with the URL of a Hub; empty if nothing."""
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "its host or its port cannot be read"
    if not address.isprintable() or " " in address:
        return "it has characters that no address has"
    if parts.scheme not in ("http", "https"):
        return "it does not begin with https:// or http://"
    return "" if host else "it names no host"


def http() -> Any:
    """The HTTP library under huggingface_hub: httpx in its version 1, httpx2 since 2."""
    from huggingface_hub.errors import HfHubHTTPError

    return import_module(HfHubHTTPError.__bases__[0].__module__.partition(".")[0])


def offline() -> bool:
    """Whether HF_HUB_OFFLINE forbids every request."""
    from huggingface_hub import constants

    return bool(constants.HF_HUB_OFFLINE)


def endpoint() -> str:
    """The URL of the Hub for messages, without the password that HF_ENDPOINT may contain."""
    from huggingface_hub import constants

    return public_url(constants.ENDPOINT)


def session() -> Any:
    """huggingface_hub's HTTP client, which all threads share.

    Raises:
        HubError: a proxy or certificates that the environment names cannot be used.
        FileNotFoundError: the certificates are not there.
    """
    from huggingface_hub import get_session

    try:
        client = get_session()
        # A cookie that cannot be sent back would make every later request fail; the Hub needs none.
        client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        return client
    except FileNotFoundError:
        raise
    except OSError:
        raise HubError(
            "the certificates that the environment names cannot be read",
            hint="check SSL_CERT_FILE and SSL_CERT_DIR",
            code="settings",
        ) from None
    except ImportError:
        raise HubError(
            "the environment names a SOCKS proxy, which the HTTP library cannot use as it is installed",
            hint="install socksio, or check ALL_PROXY, HTTP_PROXY and HTTPS_PROXY",
            code="settings",
        ) from None
    except (ValueError, http().InvalidURL):
        raise HubError(
            "the environment names a proxy whose address cannot be used",
            hint="check ALL_PROXY, HTTP_PROXY and HTTPS_PROXY",
            code="settings",
        ) from None


def authorization() -> dict[str, str]:
    """The header with the user's token, where there is one.

    huggingface_hub's own builder of headers would ask the server for a list to put into them, without a bound.
    """
    from huggingface_hub import constants, get_token

    try:
        token = None if constants.HF_HUB_DISABLE_IMPLICIT_TOKEN else get_token()
    except (OSError, ValueError):
        raise HubError(
            "the token stored by huggingface_hub cannot be read",
            hint="log in again: `hf auth login`",
            code="token",
        ) from None
    return {"authorization": f"Bearer {token}"} if token else {}


def seconds_asked(headers: Mapping[str, str]) -> int | None:
    """The wait that a server requests in seconds: `Retry-After: 5`, or the Hub's `ratelimit: "resolvers";r=0;t=5`."""
    after, limit = headers.get("retry-after", "").strip(), headers.get("ratelimit", "")
    if _SECONDS.fullmatch(after):
        return int(after)
    fields = dict(field.strip().partition("=")[::2] for field in limit.split(";"))
    return int(fields["t"]) if fields.get("r") == "0" and _SECONDS.fullmatch(fields.get("t", "")) else None
