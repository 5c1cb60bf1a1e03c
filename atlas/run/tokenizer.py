"""Text to token ids and back, by a `tokenizer.json`; and what the files beside it say of the special tokens.

One BOS begins a prompt. The tokenizer's own post-processor adds it; where it has none the configuration's id is put in
front, unless that says not to. A prompt whose text already begins with BOS keeps that one alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as Backend

from atlas.errors import CheckpointError, UsageError
from atlas.importers.settings import read_json

FILE = "tokenizer.json"
INSTEAD = f"give --tokenizer a {FILE}, as the model's repository on the Hub holds one, or give --token-ids"


class Settings:
    """What config.json, generation_config.json and tokenizer_config.json of some folders say of special tokens."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self._found: dict[str, Any] = {}
        for folder in folders:
            for name in ("generation_config.json", "config.json", "tokenizer_config.json"):
                if (folder / name).is_file():
                    for key, value in read_json(folder / name).items():
                        if value is not None:
                            self._found.setdefault(key, value)

    @property
    def bos(self) -> int | None:
        """The id a prompt begins with."""
        value = self._found.get("bos_token_id")
        return value if isinstance(value, int) else None

    @property
    def eos(self) -> frozenset[int]:
        """The ids after which a text ends."""
        value = self._found.get("eos_token_id")
        return frozenset(v for v in (value if isinstance(value, list) else [value]) if isinstance(v, int))

    def text(self, token: str) -> str | None:
        """The text of `bos_token` or `eos_token`."""
        value = self._found.get(token)
        value = value.get("content") if isinstance(value, dict) else value
        return value if isinstance(value, str) else None

    @property
    def adds_bos(self) -> bool:
        """Whether a prompt begins with BOS where the tokenizer itself adds none."""
        return self._found.get("add_bos_token") is not False


class Tokenizer:
    """A `tokenizer.json`.

    Raises:
        UsageError: Meta's `tokenizer.model`, which is not read.
        CheckpointError: the file is not there, or is no tokenizer.
    """

    def __init__(self, path: Path, settings: Settings) -> None:
        if path.suffix == ".model":
            raise UsageError(f"{path}: Meta's tokenizer.model is not read", hint=INSTEAD)
        try:
            self._backend = Backend.from_file(str(path))
        except Exception as error:  # the library raises Exception itself
            raise CheckpointError(f"{path} cannot be read as a tokenizer: {error}", hint=INSTEAD) from None
        self._settings = settings
        self.bos = self._special("bos_token", settings.bos)
        eos = self._special("eos_token", None)
        self.eos = settings.eos | ({eos} if eos is not None else set())

    def _special(self, token: str, otherwise: int | None) -> int | None:
        text = self._settings.text(token)
        found = None if text is None else self._backend.token_to_id(text)
        return otherwise if found is None else found

    def token(self, id: int) -> str | None:
        """A token as the vocabulary has it; None where no token has that id."""
        found: str | None = self._backend.id_to_token(id) if 0 <= id < 2**32 else None
        return found

    def encode(self, prompt: str) -> tuple[list[int], str]:
        """The prompt's ids, and a note where its BOS was not added a second time."""
        ids: list[int] = self._backend.encode(prompt).ids
        added: list[int] = self._backend.encode("").ids
        bos = self.bos if self.bos is not None else next(iter(added), None)
        if bos is None:
            return ids, ""
        if bos in added and ids[:2] == [bos, bos]:
            return ids[1:], f"the prompt already begins with BOS (token {bos}): a second one was not added"
        if bos not in added and ids[:1] != [bos] and self._settings.adds_bos:
            return [bos, *ids], ""
        return ids, ""

    def decode(self, ids: Sequence[int], *, special: bool) -> str:
        """The text of some ids, special tokens in it only if asked for."""
        text: str = self._backend.decode(list(ids), skip_special_tokens=not special)
        return text

    def decode_after(self, before: Sequence[int], ids: Sequence[int], *, special: bool) -> str:
        """The text that ids add to those before them: many decoders drop a space at the very beginning of a text."""
        start = self.decode(before, special=special)
        whole = self.decode([*before, *ids], special=special)
        return whole[len(start) :] if whole.startswith(start) else self.decode(ids, special=special)
