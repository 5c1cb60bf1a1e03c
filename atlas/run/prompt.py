"""The prompt as token ids: given as such, cut by a tokenizer, or its UTF-8 bytes where there is no tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from atlas.errors import UsageError
from atlas.run.options import Options
from atlas.run.tokenizer import FILE, INSTEAD, Settings, Tokenizer

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
        if self.tokenizer is None:
            return None
        return self.tokenizer.decode_after(self.ids, following, special=special)


def read(options: Options, vocab_size: int) -> Prompt:
    """The prompt of a run. Its tokenizer and what is said of special tokens may lie beside the weights.

    Args:
        vocab_size: ids are below it.

    Raises:
        UsageError: there is nothing to begin with, a tokenizer that is not read, or an id outside the vocabulary.
        CheckpointError: the tokenizer cannot be read.
    """
    folder = options.weights
    if folder is not None and not folder.is_dir():
        folder = folder.parent
    path = options.tokenizer
    if path is None and folder is not None and (folder / FILE).is_file():
        path = folder / FILE
    settings = Settings(place for place in (path.parent if path else None, folder) if place is not None)
    tokenizer = Tokenizer(path, settings) if path else None
    notes: list[str] = []
    if options.token_ids is not None:
        ids = list(options.token_ids)
    elif tokenizer is not None:
        ids, note = tokenizer.encode(options.prompt)
        notes += [note] if note else []
    else:
        if folder is not None and options.prompt and (folder / "tokenizer.model").is_file():
            raise UsageError(f"{folder} holds Meta's tokenizer.model, which is not read", hint=INSTEAD)
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
    eos = tokenizer.eos if tokenizer else settings.eos
    return Prompt(tuple(ids), tokenizer, str(path) if path else otherwise, eos, tuple(notes))


def _within(ids: Sequence[int], vocab_size: int, tokenizer: Tokenizer | None) -> None:
    outside = next((i for i in ids if not 0 <= i < vocab_size), None)
    if outside is not None:
        token = tokenizer.token(outside) if tokenizer else None
        raise UsageError(
            f"token {outside}{f' ({token!r})' if token else ''} is outside the vocabulary of {vocab_size:,}: "
            f"ids run from 0 to {vocab_size - 1:,}",
            hint="the tokenizer and the model do not belong together" if tokenizer else "",
        )
