"""A configuration's file, or its bytes -> its settings: one JSON object, in which no key stands twice.

What the keys mean is not known here: `config` reads them by an architecture's tables.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from atlas.errors import ConfigError, shown
from atlas.json_text import KeyTwice, beyond_limits, no_key_twice


def read_json(path: Path) -> dict[str, Any]:
    """A configuration file's top-level object.

    Raises:
        ConfigError: it cannot be read, is not JSON, says a key twice, or is no object.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    return decode(data, str(path))


def decode(data: bytes, where: str) -> dict[str, Any]:
    """A configuration's top-level object, from its bytes; `where` is their path or address.

    Raises:
        ConfigError: they are not JSON, say a key twice, or are no object.
    """
    import json

    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{where}: not JSON: byte {error.start} is not UTF-8") from None
    if text.startswith("version https://git-lfs"):
        raise ConfigError(
            f"{where} is a Git LFS pointer, not the file itself", hint="fetch it with `git lfs pull`"
        )
    try:
        config = json.loads(text, object_pairs_hook=no_key_twice)
    except KeyTwice as error:
        raise ConfigError(f"{where}: the key {error.key!r} stands twice in one object") from None
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"{where}: not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{where}: not JSON that can be read: {beyond_limits(error)}") from None
    if not isinstance(config, dict):
        raise ConfigError(f"{where}: expected a JSON object of settings, found {shown(config)}")
    return config
