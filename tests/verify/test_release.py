"""What a release needs besides weights, and what the verdict is about."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import run
from tests.verify.checkpoints import CONFIG, TOKENIZER, dump, hub, pointer, save, shards
from tests.verify.conftest import Check

IDS = CONFIG | {"bos_token_id": 1, "eos_token_id": 2}


def tokenizer(vocab: Any, *added: int) -> dict[str, Any]:
    return {"model": {"vocab": vocab}, "added_tokens": [{"id": id, "content": f"<{id}>"} for id in added]}


def generation(settings: Any) -> Callable[[Path], None]:
    return lambda folder: dump(folder / "generation_config.json", settings)


BROKEN: dict[str, tuple[Callable[[Path], object], tuple[str, ...]]] = {
    "no tokenizer": (lambda folder: (folder / "tokenizer.json").unlink(), ("no tokenizer",)),
    "a token beyond the last row": (
        lambda folder: dump(folder / "tokenizer.json", tokenizer({"a": 0, "b": 100})),
        ("tokenizer.json", '"b" the id 100', "only 100 rows"),
    ),
    "an added token beyond the last row": (
        lambda folder: dump(folder / "tokenizer.json", tokenizer({"a": 0}, 99, 100)),
        ('"<100>" the id 100', "only 100 rows"),
    ),
    "a list of more tokens than rows": (
        lambda folder: dump(folder / "tokenizer.json", tokenizer([[f"t{i}", 0.0] for i in range(101)])),
        ('"t100" the id 100',),
    ),
    "a tokenizer that is no JSON": (
        lambda folder: (folder / "tokenizer.json").write_text("{"),
        ("tokenizer.json", "not JSON"),
    ),
    "a special id beyond the last row": (
        lambda folder: dump(folder / "config.json", IDS | {"pad_token_id": 100}),
        ("config.json: pad_token_id is 100", "rows 0 to 99"),
    ),
    "a negative special id": (
        lambda folder: dump(folder / "config.json", IDS | {"pad_token_id": -1}),
        ("pad_token_id is -1",),
    ),
    "one of several": (generation({"eos_token_id": [2, 100]}), ("generation_config.json: eos_token_id is 100",)),
    "another end": (
        generation({"bos_token_id": 1, "eos_token_id": [3, 4]}),
        ("generation_config.json states eos_token_id [3, 4], but config.json states 2",),
    ),
    "a generation_config.json that is a list": (generation([]), ("generation_config.json", "object")),
    "a pointer": (
        lambda folder: (folder / "tokenizer.json").write_bytes(pointer()),
        ("tokenizer.json is a Git LFS pointer",),
    ),
    "a pointer of no consequence": (
        lambda folder: (folder / "notes.txt").write_bytes(pointer()),
        ("notes.txt is a Git LFS pointer",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("required", [False, True])
@pytest.mark.parametrize("name", BROKEN)
def test_each_is_one_note_or_one_error(name: str, required: bool, tmp_path: Path, check: Check) -> None:
    folder = save(tmp_path / "c", hub(), config=IDS)
    (folder / "README.md").write_text("# tiny\n")
    assert check(folder, release=required).findings == ()
    make, words = BROKEN[name]
    make(folder)
    [finding] = check(folder, release=required).findings
    assert (finding.code, finding.severity) == ("release", "error" if required else "note")
    assert finding.exit_code == (1 if required else 0)
    for word in words:
        assert word in finding.message


@pytest.mark.parametrize(
    "settings", [{}, {"eos_token_id": 2}, {"eos_token_id": [2, 3]}, {"bos_token_id": None, "pad_token_id": 99}], ids=str
)  # fmt: skip
def test_what_agrees_is_no_finding(settings: dict[str, Any], tmp_path: Path, check: Check) -> None:
    folder = save(tmp_path / "c", hub(), config=IDS)
    generation(settings)(folder)
    assert check(folder, release=False).findings == ()


def test_the_rows_are_those_that_are_stored(tmp_path: Path, check: Check) -> None:
    """100 are configured, 128 stored: a token of the id 120 has a row."""
    folder = save(tmp_path / "c", hub(CONFIG | {"vocab_size": 128}), config=CONFIG)
    dump(folder / "tokenizer.json", tokenizer({"a": 120}))
    assert [
        finding.code for finding in check(folder, release=True).findings if finding.severity == "error"
    ] == ["shape"]


def test_a_file_alone_is_no_release(tmp_path: Path, check: Check) -> None:
    folder = save(tmp_path / "c", hub())
    (folder / "tokenizer.json").unlink()
    result = check(folder / "model.safetensors", release=True)
    assert (result.findings, result.checked) == ((), ("headers",))


@pytest.mark.parametrize(
    ("options", "checked"),
    [
        ((), ["headers"]),
        (("--release",), ["headers", "release"]),
        (("--deep",), ["headers", "data"]),
        (("--deep", "--release"), ["headers", "data", "hashes", "release"]),
    ],
)
def test_the_verdict_says_what_it_is_about(
    options: tuple[str, ...], checked: list[str], tmp_path: Path
) -> None:
    """`hashes` where the hash of every weight file is recorded."""
    if "--deep" in options:
        pytest.importorskip("numpy")
    folder = save(tmp_path / "c", hub())
    if "hashes" in checked:
        import hashlib

        digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
        (folder / "checklist.chk").write_text(f"{digest}  model.safetensors\n")
    ran = run("verify", str(folder), *options, "--ignore", "zero")
    assert ran.code == 0
    assert ran.out.startswith(f"verified ({', '.join(checked)}): ")
    document = run("verify", str(folder), *options, "--json", "--ignore", "zero").json
    assert (document["verdict"], document["checked"]) == ("verified", checked)


def test_a_model_that_is_not_described(tmp_path: Path) -> None:
    folder = save(tmp_path / "c", shards(hub(), 2), listed=True, config=CONFIG | {"model_type": "mamba"})
    ran = run("verify", str(folder))
    assert ran.code == 2
    assert ran.out.startswith("not described: files and index are sound: ")
    assert "unreadable" not in ran.out
    assert run("verify", str(folder), "--json").json["verdict"] == "not described"
    with (folder / "model-00002-of-00002.safetensors").open("ab") as file:
        file.write(b"x")
    assert "sound" not in run("verify", str(folder)).out


def test_a_configuration_that_cannot_be_read_is_unreadable(tmp_path: Path) -> None:
    folder = save(tmp_path / "c", hub())
    (folder / "config.json").write_text("{")
    ran = run("verify", str(folder), "--json")
    assert (ran.code, ran.json["verdict"]) == (2, "unreadable")


def test_tensors_beyond_the_end_of_the_file_are_not_found(tmp_path: Path, check: Check) -> None:
    """The last tensor, 100 × 48 numbers of the output, is cut."""
    folder = save(tmp_path / "c", hub())
    path = folder / "model.safetensors"
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 1)
    result = check(folder)
    assert (result.tensors.expected, result.tensors.found) == (30, 29)
    assert (result.parameters.expected, result.parameters.found) == (65_232, 65_232 - 100 * 48)


def test_the_tokenizer_of_the_tests_is_sound() -> None:
    assert max(TOKENIZER["model"]["vocab"].values()) < CONFIG["vocab_size"]
