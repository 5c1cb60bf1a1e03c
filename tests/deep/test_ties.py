"""A stored copy of a tied matrix: equal, unequal, of another dtype, in another file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from atlas.checkpoint.findings import Finding
from tests.deep.files import Stored, ones, write
from tests.verify.checkpoints import CONFIG, hub
from tests.verify.conftest import Check, check

__all__ = ["check"]

TIED = CONFIG | {"tie_word_embeddings": True}
HEAD, EMBEDDING = "lm_head.weight", "model.embed_tokens.weight"


def checkpoint(folder: Path, head: Stored | None, *, apart: bool = False, prefix: str = "") -> None:
    """A tied model with this head, in a file of its own where `apart`."""
    tensors = ones(hub(TIED))
    if head is not None:
        tensors[HEAD] = head
    tensors = {prefix + name: tensor for name, tensor in tensors.items()}
    files = {"model.safetensors": tensors}
    if apart:
        copy = {prefix + HEAD: tensors.pop(prefix + HEAD)}
        files = {"model-00001-of-00002.safetensors": tensors, "model-00002-of-00002.safetensors": copy}
    for name, held in files.items():
        write(folder / name, held)
    places = {name: file for file, held in files.items() for name in held}
    if apart:
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    (folder / "config.json").write_text(json.dumps(TIED))


def copy(*planted: int, dtype: str = "BF16") -> Stored:
    """The head, 100 × 48 ones as the embedding, with two in these places."""
    one, two = {"BF16": (b"\x80\x3f", b"\x00\x40"), "F16": (b"\x00\x3c", b"\x00\x40")}[dtype]
    data = bytearray(one * 4800)
    for at in planted:
        data[2 * at : 2 * at + 2] = two
    return Stored(dtype, (100, 48), bytes(data))


def about_ties(findings: tuple[Finding, ...]) -> list[Finding]:
    return [finding for finding in findings if finding.code in {"tied", "redundant"}]


@pytest.mark.parametrize("apart", [False, True])
def test_an_equal_copy_is_a_note(apart: bool, tmp_path: Path, check: Check) -> None:
    checkpoint(tmp_path, copy(), apart=apart)
    (before,) = about_ties(check(tmp_path).findings)
    (after,) = about_ties(check(tmp_path, deep=True).findings)
    assert (before.code, after.code, after.severity, after.exit_code) == ("redundant", "redundant", "note", 0)
    assert "only --deep shows whether the copy is equal" in before.message
    assert (
        after.message
        == f"{HEAD} is stored, 9,600 bytes, although it is tied to {EMBEDDING}: an equal copy, not counted"
    )


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("prefix", ["", "module."])
def test_an_unequal_copy_is_an_error(apart: bool, prefix: str, tmp_path: Path, check: Check) -> None:
    checkpoint(tmp_path, copy(100, 4799), apart=apart, prefix=prefix)
    (finding,) = about_ties(check(tmp_path, deep=True).findings)
    assert (finding.code, finding.tensor, finding.severity, finding.exit_code) == (
        "tied",
        HEAD,
        "error",
        1,
    )
    assert finding.file == ("model-00002-of-00002.safetensors" if apart else "model.safetensors")
    # Element 100 of rows of 48 is row 2, column 4.
    assert f"other values than {EMBEDDING}" in finding.message
    assert "2 of 4,800 differ, the first at [2, 4]" in finding.message


def test_a_copy_of_another_dtype_is_not_equal(tmp_path: Path, check: Check) -> None:
    checkpoint(tmp_path, copy(dtype="F16"))
    (finding,) = about_ties(check(tmp_path, deep=True).findings)
    assert (finding.code, finding.exit_code) == ("tied", 1)
    assert "it is F16, the other BF16" in finding.message


def test_no_copy_and_nothing_to_say(tmp_path: Path, check: Check) -> None:
    checkpoint(tmp_path, None)
    result = check(tmp_path, deep=True)
    assert result.findings == ()
    assert result.verdict == "verified"


def test_a_head_that_is_not_tied_may_have_its_own_values(tmp_path: Path, check: Check) -> None:
    checkpoint(tmp_path, copy(3))
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    assert check(tmp_path, deep=True).findings == ()


@pytest.mark.parametrize("deep", [False, True])
def test_the_copy_alone_counts_as_the_original(deep: bool, tmp_path: Path, check: Check) -> None:
    """As safetensors' `save_model` leaves a tied model: one of the two names, here the head's. transformers loads it."""
    tensors = ones(hub(TIED))
    tensors[HEAD] = tensors.pop(EMBEDDING)
    write(tmp_path / "model.safetensors", tensors)
    (tmp_path / "config.json").write_text(json.dumps(TIED))
    result = check(tmp_path, deep=deep)
    [finding] = result.findings
    assert (finding.code, finding.severity, finding.exit_code, finding.tensor) == (
        "tied",
        "warning",
        0,
        EMBEDDING,
    )
    assert f"{HEAD} is stored instead of {EMBEDDING}" in finding.message
    assert (result.tensors.found, result.parameters.found) == (
        result.tensors.expected,
        result.parameters.expected,
    )
    assert all(component.difference == 0 for component in result.components)
    copy = dict(tensors)
    copy[HEAD] = copy[HEAD]._replace(shape=(99, 48), data=copy[HEAD].data[:-96])
    write(tmp_path / "model.safetensors", copy)
    assert check(tmp_path).exit_code == 1


@pytest.mark.parametrize("lost", ["asked for alone", "not there", "a pointer"])
def test_a_copy_does_not_stand_for_what_another_file_holds(lost: str, tmp_path: Path, check: Check) -> None:
    """The embedding lies in the first file, by the index; only the head's file is looked at, or can be."""
    checkpoint(tmp_path, copy(), apart=True)
    first = tmp_path / "model-00001-of-00002.safetensors"
    if lost == "not there":
        first.unlink()
    elif lost == "a pointer":
        first.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 207840\n")
    only = tmp_path / "model-00002-of-00002.safetensors" if lost == "asked for alone" else tmp_path
    codes = [finding.code for finding in check(only).findings]
    assert "tied" not in codes
    assert ("missing" in codes) == (lost == "not there")
