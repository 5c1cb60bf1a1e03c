"""`atlas models`: which models of the catalogue are listed."""

from __future__ import annotations

import pytest

from atlas.errors import UsageError
from atlas.pages.catalogue import list_models
from atlas.spec.library import Library


def ids(library: Library, *words: str, family: str | None = None, publisher: str | None = None) -> list[str]:
    return [model.id for model in list_models(library, words, family=family, publisher=publisher).models]


def test_every_entry_by_family(library: Library) -> None:
    found = list_models(library).models
    families = list(dict.fromkeys(model.family for model in found))
    assert families[0] == "gpt2"  # of 2019, the oldest
    metas = [family for family in families if family.startswith("llama")]
    assert metas[:4] == ["llama2", "llama-guard", "llama3", "llama3.1"]
    follows = {model.family: model.follows for model in found}
    assert (follows["llama3.1"], follows["llama3"]) == ("llama3", "llama2")


def test_all_words_have_to_occur(library: Library) -> None:
    assert ids(library, "3.1", "8b") == ["llama3.1-8b", "llama3.1-8b-instruct"]
    assert ids(library, "LLAMA3.1-8B", "base") == ["llama3.1-8b"]
    assert ids(library, "Meta-Llama-3-8B-Instruct") == ["llama3-8b-instruct"]


def test_a_family_and_a_publisher(library: Library) -> None:
    assert set(ids(library, family="llama3")) == {
        "llama3-8b",
        "llama3-70b",
        "llama3-8b-instruct",
        "llama3-70b-instruct",
    }
    of_meta = ids(library, publisher="meta")
    assert {"opt-125m", "llama3.1-8b"} <= set(of_meta) < set(ids(library))


@pytest.mark.parametrize(
    ("words", "options", "message", "hint"),
    [
        (("whisper",), {}, "no model of the catalogue matches 'whisper'", "`atlas models`"),
        ((), {"family": "llama5"}, "no family is called 'llama5'", "llama3.1"),
        ((), {"publisher": "Nobody"}, "no publisher is called 'Nobody'", "Meta"),
    ],
)
def test_what_is_not_there_is_refused(
    words: tuple[str, ...], options: dict[str, str], message: str, hint: str, library: Library
) -> None:
    with pytest.raises(UsageError, match=message) as refused:
        list_models(library, words, **options)
    assert hint in refused.value.hint
