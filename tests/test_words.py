"""The words that design reviews have thrown out: nothing in `atlas/` reads as if translated, or needs to be guessed."""

from __future__ import annotations

import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "atlas").rglob("*.py"))

SENTENCES = {
    "cut by": "tokenized with",
    "rests on the configured": "dimensions from",
    "were nothing lost": "at 100 % of peak",
    "used is": "the released model has",
    "is told": "is reported",
    "are told": "are reported",
    "a hole": "unused bytes between tensors",
    "astray": "misplaced, or in another shard than the index says",
    "crew": "thread pool",
    "lanes": "work items",
    "patience": "retry policy",
    "patiently": "with retries",
}
"""Phrases of prose, and what to write instead."""

NAMES = {
    "astray": "misplaced, or the place where it is",
    "crew": "a thread pool",
    "lanes": "work items",
    "moment": "execution state",
    "patience": "a retry policy",
    "beside": "the configuration next to the weights",
    "held": "resident weights",
    "told": "on_progress",
    "says": "findings, or a message",
    "wire": "an HTTP session",
}
"""Names of files, classes, functions, parameters and variables, and the term a search would find."""


def names_of(file: Path) -> set[str]:
    """The parts of every name in a file: `_Held`, `on_held` and `held_bytes` have `held`; and of its own path."""
    with tokenize.open(file) as source:
        words = {
            token.string for token in tokenize.generate_tokens(source.readline) if token.type == tokenize.NAME
        }
    words |= set(file.relative_to(ROOT).with_suffix("").parts)
    return {part.lower() for word in words for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", word)}


def places(phrase: str, text: str) -> list[int]:
    """The lines of a text that have a phrase, also where it goes on in the next line of a comment."""
    pattern = r"\s+(?:#\s+)?".join(map(re.escape, phrase.split()))
    return [
        text.count("\n", 0, found.start()) + 1
        for found in re.finditer(rf"\b{pattern}\b", text, re.IGNORECASE)
    ]


@pytest.mark.parametrize("phrase", SENTENCES)
def test_no_sentence_has_a_phrase_of_the_list(phrase: str) -> None:
    found = [
        f"{file.relative_to(ROOT)}:{line}"
        for file in FILES
        for line in places(phrase, file.read_text(encoding="utf-8"))
    ]
    assert not found, f"{phrase!r}; write {SENTENCES[phrase]!r}: {', '.join(found)}"


@pytest.mark.parametrize("name", NAMES)
def test_no_name_has_a_word_of_the_list(name: str) -> None:
    found = [str(file.relative_to(ROOT)) for file in FILES if name in names_of(file)]
    assert not found, f"{name!r}; use {NAMES[name]}: {', '.join(found)}"


def test_a_phrase_and_a_name_are_found(tmp_path: Path) -> None:
    assert places("is told", "a = 1\n# The user is\n# told what is told\n") == [2, 3]
    assert places("a hole", "a whole file") == []
    assert names_of(Path(__file__)) >= {"names", "phrase", "root", "words"}
    assert "moment" not in names_of(Path(__file__)), "a string is no name"
