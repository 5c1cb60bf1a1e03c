"""The catalogue's entries with a configuration of their own: found by name without a socket, as read, and counted as
transformers 5.24.0 counts them (`tests/families/expected.toml`)."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from atlas.analyse import parameters
from atlas.graph.binding import bind
from atlas.resolution.resolve import catalogue_entry, resolve
from atlas.spec.library import Library
from tests.families.expected import EXPECTED, config_path

NAMES = list(EXPECTED)


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any socket that is opened is an error."""

    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)


@pytest.mark.parametrize("name", NAMES)
def test_an_entry_counts_what_transformers_counts(name: str, library: Library) -> None:
    model = resolve(name, library)
    assert model.hub_id in (EXPECTED[name].published_as, None)
    if model.hub_id:
        assert resolve(model.hub_id.lower(), library).id == name
    assert parameters.total(bind(model, library)) == EXPECTED[name].parameters


@pytest.mark.parametrize("name", NAMES)
def test_an_entry_has_the_configuration_as_read(name: str, library: Library, shared: Path) -> None:
    """Every key. TOML has no null: keys at the top that are null are listed, those inside a table are left out."""
    found = catalogue_entry(name, library)
    assert found is not None
    entry = found[1]
    read = json.loads(config_path(name).read_text(encoding="utf-8"))
    assert {**dict.fromkeys(entry.null), **entry.config} == {
        key: without_nulls(value) for key, value in read.items()
    }


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return value


@pytest.mark.parametrize("name", NAMES)
def test_an_entry_says_where_its_configuration_was_read(name: str, library: Library) -> None:
    """What is not in the publisher's repository is called a copy."""
    found = catalogue_entry(name, library)
    assert found is not None
    entry = found[1]
    own = f"https://huggingface.co/{EXPECTED[name].published_as}/"
    assert entry.copy_ is not entry.source.startswith(own)
    rests_on = resolve(name, library).rests_on
    assert entry.source in rests_on
    assert ("is a copy" in rests_on) is entry.copy_


@pytest.mark.parametrize(
    "name", ["llama3.1-8b", "qwen3-0.6b", "glm-4.5-air", "THUDM/GLM-4-9B-0414", "gpt2", "deepseek-v3"]
)
def test_one_name_reads_one_file_of_models(name: str) -> None:
    library = Library()
    found = catalogue_entry(name, library)
    assert found is not None
    assert [key for key in library._loaded if key[0] == "models"] == [("models", found[0].id)]


def test_a_name_that_no_file_has_reads_none() -> None:
    library = Library()
    assert catalogue_entry("./no-such/config.json", library) is None
    assert not library._loaded


def test_a_name_in_an_escaped_string_is_found(tmp_path: Path) -> None:
    """`m\\u0069ne` is `mine`: a file with a backslash is parsed whatever its bytes are."""
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "other.toml").write_text(
        'id = "other"\nname = "Other"\npublisher = "Me"\nreleased = "2026-11"\nkind = "dense decoder"\n'
        '[[models]]\nid = "m\\u0069ne"\nname = "Other"\nkind = "base"\nundescribed = "a test"\n',
        encoding="utf-8",
    )
    found = catalogue_entry("Mine", Library(tmp_path))
    assert found is not None
    assert found[1].id == "mine"
