"""A configuration's file, or its bytes -> its settings: one JSON object, in which no key stands twice.

What the keys mean is not known here: `config` reads them by an architecture's tables.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from atlas.errors import ConfigError, shown
from atlas.files import read_regular
from atlas.text import KeyTwice, beyond_limits, no_key_twice

MOST_BYTES = 16 * 2**20
"""Of a configuration: the longest known ones have some hundred kilobytes."""


def read_json(path: Path) -> dict[str, Any]:
    """A configuration file's top-level object.

    Raises:
        ConfigError: it cannot be read, is no regular file, is longer than `MOST_BYTES`, is not JSON, says a key twice, or
            is no object.
    """
    return decode(read_regular(path, most=MOST_BYTES, error=ConfigError), str(path))


def decode(data: bytes, where: str) -> dict[str, Any]:
    """A configuration's top-level object, from its bytes; `where` is their path or address.

    Raises:
        ConfigError: they are not JSON, say a key twice, or are no object.
    """
    import json

    if len(data) > MOST_BYTES:
        raise ConfigError(
            f"{where}: larger than {MOST_BYTES:,} bytes, the most that is read of a configuration"
        )
    if data.startswith(b"\xef\xbb\xbf"):
        raise ConfigError(
            f"{where}: not JSON: it begins with a byte order mark", hint="save the file as UTF-8 without one"
        )
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
        raise ConfigError(f"{where}: the key {error.key[:80]!r} stands twice in one object") from None
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"{where}: not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{where}: not JSON that can be read: {beyond_limits(error)}") from None
    if not isinstance(config, dict):
        raise ConfigError(f"{where}: expected a JSON object of settings, found {shown(config)}")
    return config
