"""The prompt as token ids, and generated ids as text."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from atlas.errors import CheckpointError, UsageError
from atlas.execution.options import Options
from atlas.execution.special_tokens import SpecialTokens
from atlas.execution.tokenizer import FILE, HINT, HINT_WITH_IDS, Tokenizer, other_formats

BYTES = "UTF-8 bytes"

_CONTEXT = 5
"""Tokens of the prompt that the first generated token is decoded with."""

_MOST_PENDING = 8
"""Tokens that may wait for the end of a character, which has at most four bytes; more are no valid UTF-8."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the model is given.

    Attributes:
        ids: at least one.
        tokenizer: decodes what follows; None where there is none.
        tokenized_by: the tokenizer's path; without one `UTF-8 bytes`, or None where ids were given.
        eos: the ids after which a text ends.
        notes: what a reader needs to know about the ids.
    """

    ids: tuple[int, ...]
    tokenizer: Tokenizer | None
    tokenized_by: str | None
    eos: frozenset[int]
    notes: tuple[str, ...]

    def texts(self, following: Sequence[Sequence[int]], *, special: bool) -> Sequence[str | None]:
        """What each list of ids adds to the prompt's text; None without a tokenizer."""
        if self.tokenizer is None:
            return [None] * len(following)
        return self.tokenizer.decode_after(self.ids, following, special=special)

    def tokens(self) -> Sequence[str | None]:
        """The prompt's tokens as the vocabulary spells them."""
        return [None] * len(self.ids) if self.tokenizer is None else self.tokenizer.tokens(self.ids)


class TextStream:
    """Generated ids decoded one by one. The pieces joined are the text; a piece never ends inside a character.

    A token is decoded together with the few tokens before it, so that spaces are kept and a long text costs no more
    per token than a short one.
    """

    def __init__(self, prompt: Prompt, *, special: bool) -> None:
        self._tokenizer, self._special = prompt.tokenizer, special
        self._before, self._pending = list(prompt.ids[-_CONTEXT:]), list[int]()
        self._pieces: list[str] = []

    @property
    def text(self) -> str | None:
        """What has been decoded so far; None without a tokenizer."""
        return None if self._tokenizer is None else "".join(self._pieces)

    def push(self, id: int) -> str:
        """The text that this id completes; empty where it ends inside a character, or without a tokenizer."""
        self._pending.append(id)
        text = self._decode()
        incomplete = text.endswith("\ufffd") and len(self._pending) < _MOST_PENDING
        return "" if incomplete else self._take(text)

    def end(self) -> str:
        """The text of ids that complete no character."""
        return self._take(self._decode()) if self._pending else ""

    def _decode(self) -> str:
        if self._tokenizer is None:
            return ""
        return self._tokenizer.decode_after(self._before, [self._pending], special=self._special)[0]

    def _take(self, text: str) -> str:
        if text:
            self._before, self._pending = self._pending, []
            self._pieces.append(text)
        return text


class PromptReader:
    """The tokenizer of a run, and the settings of special tokens; to be closed.

    Both may be next to the weights. The tokenizer is loaded by another process, so that weights can be opened meanwhile.

    Raises:
        UsageError: a tokenizer in a format that is not read.
        CheckpointError, ConfigError: a file cannot be read.
    """

    def __init__(self, options: Options) -> None:
        folder = options.weights
        if folder is not None and not os.path.isdir(folder):
            folder = folder.parent
        path = options.tokenizer
        if path is None and folder is not None and os.path.exists(folder / FILE):
            path = folder / FILE
        self._options, self._folder, self._path = options, folder, path
        places: list[Path | None] = [path.parent if path else None, folder]
        self._settings = SpecialTokens(place for place in places if place is not None)
        hint = HINT if options.token_ids is None else HINT_WITH_IDS
        self._tokenizer = Tokenizer(path, self._settings, hint=hint) if path else None

    def close(self) -> None:
        if self._tokenizer is not None:
            self._tokenizer.close()

    def read(self, text: str, vocab_size: int) -> Prompt:
        """A prompt of this text, or of the ids of the options.

        Args:
            vocab_size: ids are below it.

        Raises:
            UsageError: there is no token to begin with, no tokenizer for real weights, or an id is outside the vocabulary.
            CheckpointError: the tokenizer cannot be used.
            ConfigError: the stated id of a special token is not an id.
        """
        options, tokenizer, settings = self._options, self._tokenizer, self._settings
        notes: list[str] = []
        tokenized_by: str | None = str(self._path) if self._path else BYTES
        if options.token_ids is not None:
            ids, tokenized_by = list(options.token_ids), None
            tokenizer, problem = _if_usable(tokenizer)
            notes += [f"{problem}; no text is shown"] if problem else []
        elif tokenizer is not None:
            ids, note = tokenizer.encode(text, options.bos)
            notes += [*tokenizer.notes, *([note] if note else [])]
        else:
            ids = self._bytes(text)
            if text:
                notes.append("no tokenizer: the prompt's UTF-8 bytes are used as token ids")
        if not ids:
            raise UsageError(
                "an empty prompt is the BOS token alone, and no file here states its id"
                if options.bos is not False
                else "an empty prompt without BOS has no tokens",
                hint="give a --prompt, --token-ids or a --tokenizer",
            )
        _require_within(ids, vocab_size, tokenizer)
        eos = tokenizer.eos if tokenizer else settings.eos
        return Prompt(tuple(ids), tokenizer, tokenized_by, eos, tuple(notes))

    def _bytes(self, text: str) -> list[int]:
        """A text's UTF-8 bytes, for random weights only: real weights know no such ids."""
        bos = self._settings.bos
        if self._folder is not None and text:
            there = other_formats(self._folder)
            found = (
                f"only {', '.join(there)}, which cannot be read yet" if there else "which has no tokenizer"
            )
            raise UsageError(
                f"the prompt cannot be tokenized: {FILE} is not in {self._folder}, {found}", hint=HINT
            )
        if self._options.bos and bos is None:
            raise UsageError(
                "--bos: there is no tokenizer, and no configuration states the id of BOS", hint=HINT
            )
        wanted = not text if self._options.bos is None else self._options.bos
        return [*([bos] if wanted and bos is not None else []), *text.encode()]


def _if_usable(tokenizer: Tokenizer | None) -> tuple[Tokenizer | None, str]:
    """The tokenizer, if it can decode at all, else what is wrong with it: a prompt of ids does not need it."""
    if tokenizer is None:
        return None, ""
    try:
        tokenizer.decode_after([], [[]], special=True)
    except CheckpointError as error:
        return None, error.message
    return tokenizer, ""


def _require_within(ids: Sequence[int], vocab_size: int, tokenizer: Tokenizer | None) -> None:
    outside = next((i for i in ids if not 0 <= i < vocab_size), None)
    if outside is not None:
        token = tokenizer.tokens([outside])[0] if tokenizer and 0 <= outside < 2**32 else None
        raise UsageError(
            f"token {outside}{f' ({token!r})' if token else ''} is outside the vocabulary of {vocab_size:,}: "
            f"ids run from 0 to {vocab_size - 1:,}",
            hint="the tokenizer and the model do not belong together" if tokenizer else "",
        )
