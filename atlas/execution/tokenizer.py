"""Text to token ids and back with a `tokenizer.json`.

A prompt begins with BOS where the tokenizer itself adds it: in its post-processor, or by `add_bos_token` in
tokenizer_config.json. That config.json has a `bos_token_id` is no reason to add it. A prompt whose text already begins
with BOS gets no second one.

A prompt is tokenized whole: truncation and padding that are saved in the file are not applied, and a note reports them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from atlas.errors import CheckpointError, UsageError, shown
from atlas.execution.special_tokens import SpecialTokens
from atlas.execution.tokenizer_process import TokenizerProcess
from atlas.files import read_regular

FILE = "tokenizer.json"
HINT = f"give --tokenizer a {FILE}, such as the one in the model's repository on the Hub, or give --token-ids"
HINT_WITH_IDS = (
    f"token ids need no tokenizer: remove this file, or give --tokenizer a {FILE} that can be read"
)
MOST_BYTES = 256 * 2**20
"""Of a tokenizer.json. The largest vocabularies take about 35 million bytes."""

MOST_IDS_PER_BYTE = 16
"""Of a prompt. A byte-level tokenizer makes one id of a byte, and the longest Unicode decomposition makes 33 bytes of 3."""

MOST_ADDED_IDS = 4096
"""Further ids, such as those that a template puts around the prompt."""

DECODED_AT_ONCE = 256
"""Texts in one request, so that no request takes long."""

_OTHER_FORMATS = (
    "tekken.json",
    "tokenizer.model*",
    "spiece.model",
    "sentencepiece*.model",
    "*.tiktoken",
    "vocab.json",
    "merges.txt",
    "vocab.txt",
)


def other_formats(folder: Path) -> list[str]:
    """The files of a folder that hold a tokenizer in a format that is not read."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    return [name for name in names if any(fnmatch(name, pattern) for pattern in _OTHER_FORMATS)]


class Tokenizer:
    """A `tokenizer.json`, loaded in a process of its own; to be closed.

    Raises:
        UsageError: the file is a tokenizer in a format that is not read.
        CheckpointError: the file does not exist or, at the first use, is not a tokenizer.
    """

    def __init__(self, path: Path, settings: SpecialTokens, *, hint: str = HINT) -> None:
        if any(fnmatch(path.name, pattern) for pattern in _OTHER_FORMATS) or path.suffix == ".model":
            raise UsageError(f"{path}: tokenizers in this format cannot be read yet", hint=hint)
        try:
            file = read_regular(path, most=MOST_BYTES, error=CheckpointError)
        except CheckpointError as error:
            raise CheckpointError(error.message, hint=hint) from None
        self._path, self._settings = path, settings
        self._process = TokenizerProcess(str(path), file, hint=hint)
        self._before: tuple[int, ...] = ()

    def close(self) -> None:
        """End the process. The tokenizer cannot be used afterwards."""
        self._process.close()

    @property
    def notes(self) -> tuple[str, ...]:
        """What is saved in the file and not applied."""
        found = []
        for what, details in self._process.saved_settings.items():
            if details is not None:
                length = details.get("max_length" if what == "truncation" else "length")
                amount = f" to {shown(length)} tokens" if length is not None else ""
                found.append(f"{self._path} has {what}{amount} saved, which was not applied")
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

    def tokens(self, ids: Sequence[int]) -> list[str | None]:
        """Each token as the vocabulary spells it; None where no token has that id."""
        found: list[str | None] = self._process.ask("tokens", ids=list(ids))
        return found

    def encode(self, prompt: str, bos: bool | None = None) -> tuple[list[int], str]:
        """The prompt's ids, and a note if its BOS was not added a second time.

        Args:
            bos: whether the ids begin with BOS; None for what the tokenizer itself does. The empty prompt is BOS alone.

        Raises:
            UsageError: BOS was asked for, and its id is unknown.
            CheckpointError: the library refuses, or makes far more tokens than the prompt has bytes.
        """
        length = len(prompt.encode("utf-8", "surrogatepass"))
        most = MOST_ADDED_IDS + MOST_IDS_PER_BYTE * length
        found: dict[str, Any] = self._process.ask("encode", text=prompt, most=most)
        ids, added, count = found["ids"], found["added"], found["count"]
        if count > most:  # each token costs time and memory in the forward pass
            raise CheckpointError(
                f"{self._path} makes {count:,} tokens of a prompt of {length:,} bytes, expected at most {most:,}",
                hint=HINT,
            )
        known = self._special("bos_token")
        known = self._settings.bos if known is None else known
        first = next(iter(added), None) if known is None else known
        if first is None:
            if bos:
                raise UsageError(
                    f"--bos: neither {self._path} nor a configuration next to it states the BOS token"
                )
            return ids, ""
        by_post_processor = added[:1] == [first] and ids[:1] == [first]
        text_ids = ids[1:] if by_post_processor else ids
        wanted = by_post_processor or self._settings.adds_bos or not prompt if bos is None else bos
        if not wanted:
            return text_ids, ""
        if text_ids[:1] == [first]:
            return text_ids, f"the prompt already begins with BOS (token {first}): a second one was not added"
        return [first, *text_ids], ""

    def decode_after(
        self, before: Sequence[int], following: Sequence[Sequence[int]], *, special: bool
    ) -> list[str]:
        """The text that each list of ids adds to the text of the ids before it, special tokens in it only if asked for.

        The ids before are sent once, so that a further call costs no more than what follows them.
        """
        if tuple(before) != self._before:
            self._process.ask("context", ids=list(before))
            self._before = tuple(before)
        texts: list[str] = []
        for at in range(0, len(following), DECODED_AT_ONCE):
            part = [list(ids) for ids in following[at : at + DECODED_AT_ONCE]]
            texts += self._process.ask("decode", texts=part, special=special)
        return texts
