"""What a MODEL on the command line means: every id, descriptor, Hub id and alias, in any case; and what is refused."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from atlas import spec
from atlas.errors import AtlasError, ConfigError, NotDescribed, UnknownModel
from atlas.resolution import catalogued
from atlas.resolution.resolve import catalogue_entry, ids, resolve
from atlas.resolution.spelling import spelled
from atlas.spec.library import Library


@pytest.fixture(scope="module")
def entries(library: Library) -> list[tuple[spec.Family, spec.Entry]]:
    families = map(library.family, library.paths("catalogue"))
    return [(family, entry) for family in families for entry in family.models]


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any socket that is opened is an error."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)


# ---------------------------------------------------------------- the catalogue


def test_every_entry_of_the_catalogue_is_one_model(
    library: Library, entries: list[tuple[spec.Family, spec.Entry]]
) -> None:
    assert len(entries) == 45
    rows = [row.descriptor for name in library.paths("catalogue") for row in library.catalogue(name).entries]
    assert len(rows) == 45
    assert sorted(entry.catalogue for _, entry in entries) == sorted(rows)
    for family, entry in entries:
        assert catalogued.catalogue_row(library.catalogue(family.id), entry).descriptor == entry.catalogue


def test_an_id_is_the_descriptor_in_lower_case(entries: list[tuple[spec.Family, spec.Entry]]) -> None:
    """And without the hyphen after `llama` where a digit follows."""
    for _, entry in entries:
        assert entry.id == re.sub(r"^llama-(?=\d)", "llama", entry.catalogue.lower())


def test_ids_of_the_contract(entries: list[tuple[spec.Family, spec.Entry]]) -> None:
    known = {entry.id for _, entry in entries}
    assert known >= {
        "llama2-7b",
        "llama3-8b",
        "llama3.1-405b:bf16-mp8",
        "llama4-scout-17b-16e",
        "llama-guard-3-8b",
        "llama3.2-1b-instruct:int4-qlora-eo8",
    }


def test_every_entry_is_described_or_says_why_not(entries: list[tuple[spec.Family, spec.Entry]]) -> None:
    described = [entry.id for _, entry in entries if entry.architecture]
    assert len(described) == 26
    for _, entry in entries:
        assert bool(entry.architecture) != bool(entry.undescribed), entry.id


@pytest.mark.parametrize("case", [str, str.upper, str.lower, str.title, str.swapcase])
def test_every_name_in_any_case(
    case: Callable[[str], str], entries: list[tuple[spec.Family, spec.Entry]], library: Library
) -> None:
    """By id and descriptor to the very entry; by Hub id and alias to it or, where two share it, to the first."""
    for _, entry in entries:
        for name in ids(entry):
            found = catalogue_entry(case(name), library)
            assert found is not None, name
            shared = [other for _, other in entries if name in ids(other)]
            assert found[1] == (entry if len(shared) == 1 else shared[0]), name
            if name in (entry.id, entry.catalogue.lower()):
                assert found[1] == entry


def test_a_name_is_shared_by_the_two_405b_alone(entries: list[tuple[spec.Family, spec.Entry]]) -> None:
    owners: dict[str, set[str]] = {}
    for _, entry in entries:
        for name in ids(entry):
            owners.setdefault(name, set()).add(entry.id)
    assert {name: ids for name, ids in owners.items() if len(ids) > 1} == {
        "meta-llama/llama-3.1-405b": {"llama3.1-405b:bf16-mp8", "llama3.1-405b:bf16-mp16"},
        "meta-llama/llama-3.1-405b-instruct": {
            "llama3.1-405b-instruct:bf16-mp8",
            "llama3.1-405b-instruct:bf16-mp16",
        },
    }


@pytest.mark.parametrize("name", ["meta-llama/Llama-3.1-405B", "meta-llama/Llama-3.1-405B-Instruct"])
def test_the_shared_hub_id_means_mp8_with_a_note(name: str, library: Library) -> None:
    model = resolve(name, library)
    assert model.id.endswith(":bf16-mp8")
    assert model.dims["n_kv_heads"] == 8
    assert any("bf16-mp16" in note for note in model.notes)


@pytest.mark.parametrize("name", ["Llama3.1-405B", "llama3.1-405b", "llama3.1-405b-instruct"])
def test_the_bare_405b_is_the_fp8_entry(name: str, library: Library) -> None:
    with pytest.raises(NotDescribed, match=r"catalogued but not described yet: .*fp8") as caught:
        resolve(name, library)
    assert "\n" not in caught.value.message
    assert f"{name.lower()}:bf16-mp8" in caught.value.hint
    assert f"{name.lower()}:bf16-mp16" in caught.value.hint


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Llama3.1-8B", "llama3.1-8b"),
        ("Llama3.1-405B:bf16-mp16", "llama3.1-405b:bf16-mp16"),
        ("Llama-2-7b-chat", "llama2-7b-chat"),
        ("meta-llama/Llama-3.1-8B", "llama3.1-8b"),
        ("meta-llama/Meta-Llama-3.1-8B", "llama3.1-8b"),
        ("meta-llama/Meta-Llama-3-8B", "llama3-8b"),
        ("meta-llama/Llama-3-8B", "llama3-8b"),
        ("meta-llama/Meta-Llama-3-70B-Instruct", "llama3-70b-instruct"),
        ("meta-llama/Llama-2-7b-hf", "llama2-7b"),
        ("meta-llama/Llama-2-7b", "llama2-7b"),
        ("meta-llama/Llama-2-70b-chat-hf", "llama2-70b-chat"),
        ("meta-llama/Meta-Llama-Guard-2-8B", "llama-guard-2-8b"),
        ("META-LLAMA/llama-3.2-1b", "llama3.2-1b"),
        (" llama3-8b ", "llama3-8b"),
    ],
)
def test_names_people_use(name: str, expected: str, library: Library, offline: None) -> None:
    assert resolve(name, library).id == expected


def test_a_catalogued_model_says_what_it_is(library: Library) -> None:
    model = resolve("llama3.1-8b", library)
    assert (model.name, model.family, model.kind) == ("Llama 3.1 8B", "llama3.1", "base")
    assert (model.hub_id, model.context_length, model.dtype) == ("meta-llama/Llama-3.1-8B", 131_072, "BF16")
    assert "Llama3.1-8B" in model.rests_on
    assert model.cites[0] == "catalogue/Llama3.1-8B"
    assert "catalogue/arch_args_1b" in resolve("llama3.2-1b-instruct", library).cites
    assert "corrected" in resolve("llama2-7b", library).rests_on


def test_what_is_not_described_is_refused_in_one_line(
    entries: list[tuple[spec.Family, spec.Entry]], library: Library, offline: None
) -> None:
    refused = 0
    for _, entry in entries:
        if not entry.architecture:
            for name in (entry.id, entry.catalogue, entry.hub_id or entry.id):
                with pytest.raises(NotDescribed, match="is catalogued but not described yet: ") as caught:
                    resolve(name, library)
                assert "\n" not in caught.value.message
                assert caught.value.exit_code == 2
                assert caught.value.message.startswith(entry.id)
                assert caught.value.hint
            refused += 1
    assert refused == 19


# ---------------------------------------------------------------- what nothing goes by


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("llama3.1-9b", "llama3.1-8b"),
        ("llama3.3-70b", "llama3.3-70b-instruct"),
        ("lama3.1-8b", "llama3.1-8b"),
        ("llama3-8b-instuct", "llama3-8b-instruct"),
        ("llama-guard-3-2b", "llama-guard-3-1b"),
        ("LLAMA2-7B-CHATT", "llama2-7b-chat"),
    ],
)
def test_the_nearest_names(name: str, nearest: str, library: Library, offline: None) -> None:
    with pytest.raises(UnknownModel, match=f"no model is called '{name}'") as caught:
        resolve(name, library)
    assert caught.value.hint.startswith("did you mean ")
    assert nearest in caught.value.hint
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("name", ["xyzzy", "", "  ", "42", "§", "a\0b"])
def test_with_nothing_near_the_list_is_named(name: str, library: Library, offline: None) -> None:
    with pytest.raises(UnknownModel) as caught:
        resolve(name, library)
    assert "atlas models" in caught.value.hint


def test_a_long_name_is_not_echoed_whole(library: Library) -> None:
    with pytest.raises(AtlasError) as caught:
        resolve("x" * 10_000, library)
    assert len(caught.value.message) < 200


# ---------------------------------------------------------------- paths


@pytest.mark.parametrize(
    "name",
    [
        "./nowhere",
        "/nowhere/config.json",
        "~/nowhere/params.json",
        "~nobody-here/config.json",
        "a/b/c",
        "folder/",
        "thing.json",
    ],
)
def test_what_looks_like_a_path_is_one(name: str, library: Library, offline: None) -> None:
    with pytest.raises(ConfigError, match="no such file or folder"):
        resolve(name, library)


def test_a_path_that_is_there(
    write_config: Callable[..., Path], small: dict[str, Any], library: Library, offline: None
) -> None:
    path = write_config(small)
    assert resolve(str(path), library).id == str(path)
    assert resolve(str(path.parent), library).dims["dim"] == 48


def test_a_folder_of_two_names_is_no_hub_id(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    write_config: Callable[..., Path],
    small: dict[str, Any],
    library: Library,
    offline: None,
) -> None:
    """`someone/model` is a folder where there is one of that name."""
    folder = tmp_path / "someone" / "model"
    folder.mkdir(parents=True)
    write_config(small, "someone/model/config.json")
    monkeypatch.chdir(tmp_path)
    assert resolve("someone/model", library).dims["dim"] == 48


def test_a_catalogued_name_comes_before_a_folder_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: Library
) -> None:
    (tmp_path / "llama3-8b").mkdir()
    monkeypatch.chdir(tmp_path)
    assert resolve("llama3-8b", library).family == "llama3"
    with pytest.raises(ConfigError, match="contains neither"):
        resolve("./llama3-8b", library)


# ---------------------------------------------------------------- spellings, URLs, other files


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("llama-3.1-8b", "llama3.1-8b"),
        ("Llama-3.1-8B-Instruct", "llama3.1-8b-instruct"),
        ("llama3.1:8b", "llama3.1-8b"),
        ("llama3.2:1b", "llama3.2-1b"),
        ("Llama-2-7b-hf", "llama2-7b"),
        ("Llama-2-13b-chat-hf", "llama2-13b-chat"),
        ("llama2:7b-chat", "llama2-7b-chat"),
        ("Meta-Llama-3-8B", "llama3-8b"),
        ("llama_3_8b", "llama3-8b"),
        ("Llama 3.3 70B Instruct", "llama3.3-70b-instruct"),
        ("meta-llama/Llama3.1-8B", "llama3.1-8b"),
        ("https://huggingface.co/meta-llama/Llama-3.1-8B", "llama3.1-8b"),
        ("http://huggingface.co/meta-llama/Llama-3.1-8B/", "llama3.1-8b"),
        ("https://hf.co/meta-llama/Llama-3.1-8B", "llama3.1-8b"),
        ("huggingface.co/meta-llama/Llama-3.1-8B", "llama3.1-8b"),
        ("https://huggingface.co/meta-llama/Llama-3.1-8B?library=transformers#files", "llama3.1-8b"),
        ("https://huggingface.co/meta-llama/Llama-3.1-8B/tree/main", "llama3.1-8b"),
        ("https://huggingface.co/meta-llama/Llama-2-7b-hf/blob/main/config.json", "llama2-7b"),
        (
            "https://huggingface.co/meta-llama/Llama-2-7b-hf/resolve/main/config.json?download=true",
            "llama2-7b",
        ),
        ("hf://meta-llama/Llama-3.1-8B", "llama3.1-8b"),
    ],
)
def test_what_people_write(name: str, expected: str, library: Library, offline: None) -> None:
    assert resolve(name, library).id == expected


def test_every_entry_by_its_descriptor_written_otherwise(
    entries: list[tuple[spec.Family, spec.Entry]], library: Library
) -> None:
    """With underscores, and with a colon in place of the last hyphen: always that entry, or several that are named."""
    for _, entry in entries:
        for name in (entry.id.replace("-", "_"), entry.id.replace(":", "-")):
            found = [other.id for _, other in spelled(name, library)]
            assert entry.id in found, name
            assert len(found) == 1 or entry.id.startswith("llama3.1-405b"), name


def test_a_spelling_that_means_several_is_refused_with_all(library: Library, offline: None) -> None:
    with pytest.raises(UnknownModel, match="may mean several models") as caught:
        resolve("Llama-3.1-405B", library)
    for name in ("llama3.1-405b", "llama3.1-405b:bf16-mp8", "llama3.1-405b:bf16-mp16"):
        assert name in caught.value.hint


def test_another_revision_of_a_catalogued_repository_is_noted(library: Library, offline: None) -> None:
    model = resolve("https://huggingface.co/meta-llama/Llama-3.1-8B/tree/abc123", library)
    assert model.id == "llama3.1-8b"
    assert "revision abc123 was not read" in model.notes[-1]


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("https://github.com/meta-llama/llama3", "is not a URL of the Hugging Face Hub"),
        ("https://huggingface.co.evil.com/a/b", "is not a URL of the Hugging Face Hub"),
        ("https://huggingface.co/datasets/a/b", "is the URL of a dataset"),
        ("https://huggingface.co/spaces/a/b", "is the URL of a Space"),
        ("https://huggingface.co/", "does not name a repository"),
        ("https://huggingface.co/a/../b", "does not name a repository"),
        ("http://[::1", "is not a valid URL"),
    ],
)
def test_urls_that_are_no_model(url: str, words: str, library: Library, offline: None) -> None:
    with pytest.raises(AtlasError) as caught:
        resolve(url, library)
    assert words in caught.value.message
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("name", ["bert-base", "t5-small", "rwkv", "whisper-large-v3", "stablelm-zephyr"])
def test_nothing_is_suggested_where_nothing_is_near(name: str, library: Library, offline: None) -> None:
    with pytest.raises(UnknownModel) as caught:
        resolve(name, library)
    assert "did you mean" not in caught.value.hint


@pytest.mark.parametrize(
    ("name", "content", "words", "hint"),
    [
        ("model.gguf", b"GGUF\x03\0\0\0", "is a GGUF file", "config.json"),
        ("weights", b"GGUF\x03\0\0\0", "is a GGUF file", "config.json"),
        ("empty.gguf", b"", "its first bytes are not GGUF", "config.json"),
        ("model.safetensors", b"\x02\0\0\0\0\0\0\0{}", "is a safetensors file", "atlas verify"),
        ("weights", b"\x10\0\0\0\0\0\0\0" + b'{"a":{}}', "is a safetensors file", "atlas verify"),
        ("pytorch_model.bin", b"PK\x03\x04", "is a PyTorch checkpoint", "folder"),
        ("consolidated.00.pth", b"\x80\x02", "is a PyTorch checkpoint", "folder"),
        ("m.safetensors.index.json", b'{"weight_map": {}}', "is an index of weights", "atlas verify"),
        ("tokenizer.json", b'{"added_tokens": [], "model": {}}', "is a tokenizer", "--tokenizer"),
        ("tokenizer_config.json", b"{}", "is a tokenizer's configuration", "folder"),
        ("generation_config.json", b"{}", "is generation settings", "folder"),
        (
            "adapter_config.json",
            b'{"peft_type": "LORA", "base_model_name_or_path": "a/b"}',
            "is the configuration of an adapter",
            "'a/b'",
        ),
        ("config.json", b"<!DOCTYPE html>\n<html>", "is a web page", "/resolve/"),
    ],
)
def test_other_files_are_named_as_what_they_are(
    name: str, content: bytes, words: str, hint: str, tmp_path: Path, library: Library, offline: None
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        resolve(str(path), library)
    assert words in caught.value.message
    assert hint in caught.value.hint
    assert "model_type" not in caught.value.hint
