"""huggingface_hub: whether it can be loaded, and what it is set to. Authentication, endpoint, cache and offline mode are its own.

It reads its settings from the environment as it is imported, and is not careful: where HF_ENDPOINT is no address, or a
number none, it prints a line on stdout, which is not its own, and raises ValueError.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from atlas.errors import HubError, shown

# A date may stand in its place, or anything.
_SECONDS = re.compile(r"[0-9]{1,9}")


def ready() -> None:
    """To be called before anything is asked of huggingface_hub.

    Raises:
        HubError: a setting in the environment cannot be read.
    """
    address = os.environ.get("HF_ENDPOINT")
    problem = _problem(address) if address is not None else ""
    if address is not None and problem:
        # What stands before an @ may be a password.
        found = shown(address.rpartition("@")[2])
        raise HubError(
            f"HF_ENDPOINT is {found}: {problem}; expected an address such as https://huggingface.co",
            hint="correct it or unset it",
            code="settings",
        )
    try:
        import huggingface_hub.constants  # noqa: F401
    except ValueError as error:
        raise HubError(
            f"a setting of huggingface_hub in the environment cannot be read: {error}",
            hint="look among the variables whose names begin with HF_",
            code="settings",
        ) from None


def _problem(address: str) -> str:
    """What is wrong with the address of a Hub; nothing where it may be one."""
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
