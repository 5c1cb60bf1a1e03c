"""Whether huggingface_hub can be loaded: it reads its settings from the environment as it is imported, and is not careful.

Where HF_ENDPOINT is no address, or a number none, it prints a line on stdout, which is not its own, and raises ValueError.
"""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from atlas.errors import HubError, shown


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
