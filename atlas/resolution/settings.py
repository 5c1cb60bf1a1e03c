"""Reads a configuration file, or its bytes, as one JSON object without duplicate keys.

`config` interprets the keys with an architecture's tables.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from atlas.errors import ConfigError, shown
from atlas.files import read_regular
from atlas.text import KeyTwice, beyond_limits, no_key_twice

MOST_BYTES = 16 * 2**20
"""Largest configuration that is read. The largest known ones have a few hundred kilobytes."""


def read_json(path: Path) -> dict[str, Any]:
    """A configuration file's top-level object.

    Raises:
        ConfigError: it cannot be read, is not a regular file, is longer than `MOST_BYTES`, is not JSON, has a duplicate
            key, or is not an object.
    """
    return decode(read_regular(path, most=MOST_BYTES, error=ConfigError), str(path))


def decode(data: bytes, where: str) -> dict[str, Any]:
    """A configuration's top-level object, from its bytes; `where` is their path or address.

    Raises:
        ConfigError: they are not JSON, have a duplicate key, or are not an object.
    """
    import json

    if len(data) > MOST_BYTES:
        raise ConfigError(f"{where}: larger than {MOST_BYTES:,} bytes, the limit for a configuration")
    if data.startswith(b"\xef\xbb\xbf"):
        raise ConfigError(
            f"{where}: not JSON: the file begins with a byte order mark",
            hint="save the file as UTF-8 without one",
        )
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{where}: not JSON: byte {error.start} is not UTF-8") from None
    if text.startswith("version https://git-lfs"):
        raise ConfigError(
            f"{where} is a Git LFS pointer, not the file itself", hint="fetch it with `git lfs pull`"
        )
    if text.lstrip()[:15].lower().startswith(("<!doctype html", "<html")):
        raise ConfigError(
            f"{where} is a web page, not JSON",
            hint="a Hub URL with /blob/ is a page about the file; download the one with /resolve/",
        )
    try:
        config = json.loads(text, object_pairs_hook=no_key_twice)
    except KeyTwice as error:
        raise ConfigError(f"{where}: duplicate key {error.key[:80]!r} in one object") from None
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"{where}: not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{where}: JSON beyond the reader's limits: {beyond_limits(error)}") from None
    if not isinstance(config, dict):
        raise ConfigError(f"{where}: expected a JSON object of settings, found {shown(config)}")
    return config
