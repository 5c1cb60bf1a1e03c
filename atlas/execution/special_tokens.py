"""BOS and EOS as the configuration files next to a checkpoint and its tokenizer state them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from atlas.errors import ConfigError, shown
from atlas.files import read_regular
from atlas.resolution.settings import decode

FILES = ("generation_config.json", "config.json", "tokenizer_config.json")
MOST_BYTES = 16 * 2**20
"""Of one of these files. A tokenizer_config.json that lists every added token has about one million bytes."""


class SpecialTokens:
    """The settings of some folders. The first file that states a key decides.

    Raises:
        ConfigError: a file is not a regular file, too large, or not JSON; from a property, a value has the wrong type.
    """

    def __init__(self, folders: Iterable[Path]) -> None:
        self._found: dict[str, tuple[Any, Path]] = {}
        for file in dict.fromkeys(folder / name for folder in folders for name in FILES):
            if os.path.exists(file):
                data = read_regular(file, most=MOST_BYTES, error=ConfigError)
                for key, value in decode(data, str(file)).items():
                    if value is not None:
                        self._found.setdefault(key, (value, file))

    @property
    def bos(self) -> int | None:
        """The BOS id that a configuration states."""
        value, file = self._found.get("bos_token_id", (None, None))
        if value is not None and not _is_id(value):
            raise ConfigError(f"{file}: bos_token_id is {shown(value)}, expected a token id")
        return value

    @property
    def eos(self) -> frozenset[int]:
        """The ids after which a text ends."""
        value, file = self._found.get("eos_token_id", (None, None))
        ids = [] if value is None else value if isinstance(value, list) else [value]
        if not all(map(_is_id, ids)):
            raise ConfigError(
                f"{file}: eos_token_id is {shown(value)}, expected a token id or a list of them"
            )
        return frozenset(ids)

    def text(self, token: str) -> str | None:
        """The text of `bos_token` or `eos_token`."""
        value, file = self._found.get(token, (None, None))
        content = value.get("content") if isinstance(value, dict) else value
        if isinstance(content, str) and any("\ud800" <= char <= "\udfff" for char in content):
            raise ConfigError(
                f"{file}: {token} is {json.dumps(content)[:80]}: half of a surrogate pair is not a character"
            )
        return content if isinstance(content, str) else None

    @property
    def adds_bos(self) -> bool:
        """Whether `add_bos_token` asks for a BOS that the post-processor does not add."""
        return self._found.get("add_bos_token", (None, None))[0] is True


def _is_id(value: object) -> bool:
    return type(value) is int and value >= 0
