"""Where a receipt can be written and from what it is read: told before anything is verified, and never waited for."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from atlas.cli.verify import _write_receipt
from tests.cli.conftest import run
from tests.verify.checkpoints import CONFIG, hub, save
from tests.verify.conftest import Check


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return save(tmp_path / "c", hub(), config=CONFIG)


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("no/such/folder/r.json", "there is no folder"),
        ("c", "is a folder"),
        ("c/config.json/r.json", "there is no folder"),
        ("r" * 300, "File name too long"),
        ("c/model.safetensors", "is not a receipt, so it is not replaced"),
    ],
    ids=lambda value: value[:20],
)
def test_where_none_can_be_written_is_told_first(
    place: str, words: str, folder: Path, tmp_path: Path
) -> None:
    ran = run("verify", str(folder), "--receipt", str(tmp_path / place))
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert words in ran.err


def test_a_folder_that_takes_none(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "shut").mkdir(mode=0o500)
    if os.access(tmp_path / "shut", os.W_OK):
        pytest.skip("this user may write anywhere")
    ran = run("verify", str(folder), "--receipt", str(tmp_path / "shut" / "r.json"))
    assert (ran.code, ran.out) == (2, "")
    assert "nothing can be written in the folder" in ran.err


def test_a_receipt_that_cannot_be_written_at_last(
    folder: Path, tmp_path: Path, check: Check, capsys: pytest.CaptureFixture[str]
) -> None:
    """The folder is taken away meanwhile: the verdict has been shown, and stderr says the rest."""
    assert not _write_receipt(check(folder), tmp_path / "gone" / "r.json")
    assert "r.json: cannot be written: No such file or directory" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["a pipe", "what never ends", "text", "nothing"])
def test_what_is_no_receipt_is_not_waited_for(kind: str, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    if kind == "a pipe":
        os.mkfifo(path)
    elif kind == "what never ends":
        path.symlink_to("/dev/zero")
    elif kind == "text":
        path.write_text("{")
    ran = run("explain", str(folder), "--receipt", str(path))
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "--receipt" in ran.err


def test_json_of_a_checkpoint_and_its_receipt_are_the_same(folder: Path, tmp_path: Path) -> None:
    receipt = tmp_path / "r.json"
    printed = run("verify", str(folder), "--json", "--receipt", str(receipt)).json
    assert json.loads(receipt.read_text())["checkpoint"] == printed
