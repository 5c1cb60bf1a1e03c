"""Text to token ids and back, by a `tokenizer.json`.

One BOS begins a prompt. The tokenizer's own post-processor adds it; where it has none the configuration's id is put in
front, unless that says not to. A prompt whose text already begins with BOS keeps that one alone.

A prompt is read whole: truncation and padding that were saved with the file are not applied, and a note says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from atlas.errors import CheckpointError, UsageError, shown
from atlas.execution.special_tokens import SpecialTokens
from atlas.execution.tokenizer_process import TokenizerProcess
from atlas.files import read_regular

FILE = "tokenizer.json"
INSTEAD = f"give --tokenizer a {FILE}, as the model's repository on the Hub holds one, or give --token-ids"
MOST_BYTES = 256 * 2**20
"""Of a tokenizer.json. Those of the largest vocabularies have some 35 million."""

DECODED_AT_ONCE = 256
"""Texts in one request, so that none takes long."""


class Tokenizer:
    """A `tokenizer.json`, loaded in a process of its own; to be closed.

    Raises:
        UsageError: Meta's `tokenizer.model`, which is not read.
        CheckpointError: the file is not there, or, at the first use, is no tokenizer.
    """

    def __init__(self, path: Path, settings: SpecialTokens) -> None:
        if path.suffix == ".model":
            raise UsageError(f"{path}: Meta's tokenizer.model is not read", hint=INSTEAD)
        try:
            file = read_regular(path, most=MOST_BYTES, error=CheckpointError)
        except CheckpointError as error:
            raise CheckpointError(error.message, hint=INSTEAD) from None
        self._path, self._settings = path, settings
        self._process = TokenizerProcess(str(path), file, hint=INSTEAD)
        self._before: tuple[int, ...] = ()

    def close(self) -> None:
        """End the process; nothing can be asked after it."""
        self._process.close()

    @property
    def notes(self) -> tuple[str, ...]:
        """What the file asks for that is not applied."""
        found = []
        for what, details in self._process.saved_settings.items():
            if details is not None:
                length = details.get("max_length" if what == "truncation" else "length")
                amount = f" to {shown(length)} tokens" if length is not None else ""
                found.append(f"{self._path} asks for {what}{amount}, which was not applied")
        return tuple(found)

    @property
    def eos(self) -> frozenset[int]:
        """The ids after which a text ends."""
        eos = self._special("eos_token")
        return self._settings.eos | ({eos} if eos is not None else set())

    def _special(self, token: str) -> int | None:
        text = self._settings.text(token)
        found: int | None = None if text is None else self._process.ask("ids", tokens=[text])[0]
        return found

    def token(self, id: int) -> str | None:
        """A token as the vocabulary has it; None where no token has that id."""
        found: str | None = self._process.ask("token", id=id) if 0 <= id < 2**32 else None
        return found

    def encode(self, prompt: str) -> tuple[list[int], str]:
        """The prompt's ids, and a note where its BOS was not added a second time."""
        found: dict[str, Any] = self._process.ask("encode", text=prompt)
        ids, added = found["ids"], found["added"]
        bos = self._special("bos_token")
        if bos is None:
            bos = self._settings.bos
        if bos is None:
            bos = next(iter(added), None)
        if bos is None:
            return ids, ""
        if bos in added and ids[:2] == [bos, bos]:
            return ids[1:], f"the prompt already begins with BOS (token {bos}): a second one was not added"
        if bos not in added and ids[:1] != [bos] and self._settings.adds_bos:
            return [bos, *ids], ""
        return ids, ""

    def decode_after(
        self, before: tuple[int, ...], following: Sequence[Sequence[int]], *, special: bool
    ) -> list[str]:
        """The text that each of some lists of ids adds to those before it, special tokens in it only if asked for.

        The ids before are sent once, so that asking again costs no more than what follows them.
        """
        if before != self._before:
            self._process.ask("context", ids=before)
            self._before = before
        texts: list[str] = []
        for at in range(0, len(following), DECODED_AT_ONCE):
            part = [list(ids) for ids in following[at : at + DECODED_AT_ONCE]]
            texts += self._process.ask("decode", texts=part, special=special)
        return texts
