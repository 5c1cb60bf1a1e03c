"""The prompt as token ids: given as such, cut by a tokenizer, or its UTF-8 bytes where there is no tokenizer."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from atlas.errors import UsageError
from atlas.execution.options import Options
from atlas.execution.special_tokens import SpecialTokens
from atlas.execution.tokenizer import FILE, INSTEAD, Tokenizer

BYTES = "UTF-8 bytes"


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the model is given.

    Attributes:
        ids: at least one.
        tokenizer: for the text of what follows; None where there is none.
        by: the tokenizer's path; without one `UTF-8 bytes`, or None where ids were given.
        eos: the ids after which a text ends.
        notes: what a reader has to know of the ids.
    """

    ids: tuple[int, ...]
    tokenizer: Tokenizer | None
    by: str | None
    eos: frozenset[int]
    notes: tuple[str, ...]

    def text(self, following: Sequence[int], *, special: bool) -> str | None:
        """What ids that follow the prompt add to its text; None without a tokenizer."""
        return self.texts([following], special=special)[0]

    def texts(self, following: Sequence[Sequence[int]], *, special: bool) -> Sequence[str | None]:
        """The same for each of some lists of ids: one of them costs little more than none."""
        if self.tokenizer is None:
            return [None] * len(following)
        return self.tokenizer.decode_after(self.ids, following, special=special)


class Reader:
    """The tokenizer of a run, being loaded, and what is said of special tokens; to be closed.

    Either may lie beside the weights. Loading goes on in another process, so that weights can be opened meanwhile.

    Raises:
        UsageError: a tokenizer that is not read.
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
        self._tokenizer = Tokenizer(path, self._settings) if path else None

    def close(self) -> None:
        if self._tokenizer is not None:
            self._tokenizer.close()

    def read(self, vocab_size: int) -> Prompt:
        """The prompt.

        Args:
            vocab_size: ids are below it.

        Raises:
            UsageError: there is nothing to begin with, or an id is outside the vocabulary.
            CheckpointError: the tokenizer cannot be used.
            ConfigError: the id of a special token is none.
        """
        options, tokenizer, settings = self._options, self._tokenizer, self._settings
        notes: list[str] = []
        if options.token_ids is not None:
            ids = list(options.token_ids)
        elif tokenizer is not None:
            ids, note = tokenizer.encode(options.prompt)
            notes += [*tokenizer.notes, *([note] if note else [])]
        else:
            model = self._folder / "tokenizer.model" if self._folder is not None else None
            if model is not None and options.prompt and os.path.isfile(model):
                raise UsageError(
                    f"{self._folder} holds Meta's tokenizer.model, which is not read", hint=INSTEAD
                )
            ids = list(options.prompt.encode()) or ([settings.bos] if settings.bos is not None else [])
            if options.prompt:
                notes.append("there is no tokenizer: the prompt's UTF-8 bytes serve as token ids")
        if not ids:
            raise UsageError(
                "an empty prompt is the BOS token alone, and nothing here says which id that is",
                hint="give a --prompt, --token-ids or a --tokenizer",
            )
        _within(ids, vocab_size, tokenizer)
        otherwise = BYTES if options.token_ids is None else None
        by = str(self._path) if self._path else otherwise
        eos = tokenizer.eos if tokenizer else settings.eos
        return Prompt(tuple(ids), tokenizer, by, eos, tuple(notes))


def _within(ids: Sequence[int], vocab_size: int, tokenizer: Tokenizer | None) -> None:
    outside = next((i for i in ids if not 0 <= i < vocab_size), None)
    if outside is not None:
        token = tokenizer.token(outside) if tokenizer else None
        raise UsageError(
            f"token {outside}{f' ({token!r})' if token else ''} is outside the vocabulary of {vocab_size:,}: "
            f"ids run from 0 to {vocab_size - 1:,}",
            hint="the tokenizer and the model do not belong together" if tokenizer else "",
        )
