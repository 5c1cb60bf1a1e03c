"""Files that strangers wrote are read within a bound, and only if they are regular files."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from atlas.errors import ConfigError, UsageError
from atlas.files import read_regular, write_whole
from atlas.text import KeyTwice, no_key_twice


def test_a_regular_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    assert read_regular(tmp_path / "a", most=3) == b"abc"


def test_a_longer_file_is_refused_without_being_read_whole(tmp_path: Path) -> None:
    with (tmp_path / "a").open("wb") as file:
        file.truncate(2**40)  # a sparse terabyte
    with pytest.raises(UsageError, match="larger than 1,000 bytes"):
        read_regular(tmp_path / "a", most=1_000)


@pytest.mark.parametrize("kind", ["fifo", "folder", "device", "loop", "absent", "long", "null", "surrogate"])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path = Path("/dev/zero")
    elif kind == "loop":
        path.symlink_to(path)
    elif kind != "absent":
        path = tmp_path / {"long": "a" * 300, "null": "a\0b", "surrogate": "\ud800"}[kind]
    with pytest.raises(ConfigError, match="a"):
        read_regular(path, what="--x", error=ConfigError)


def test_a_file_that_is_replaced_keeps_its_mode_and_a_new_one_follows_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    before = os.umask(0o027)
    try:
        write_whole(path, "1")
        assert stat.S_IMODE(path.stat().st_mode) == 0o640  # 0o666 without 0o027
    finally:
        os.umask(before)
    path.chmod(0o604)
    write_whole(path, "2")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("2", 0o604)
    assert os.listdir(tmp_path) == ["r.json"]


def test_a_link_is_followed_and_stays(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    target, link = tmp_path / "far" / "r.json", tmp_path / "latest.json"
    target.write_text("old")
    link.symlink_to(target)
    write_whole(link, "new")
    assert (link.is_symlink(), target.read_text()) == (True, "new")
    target.unlink()
    with pytest.raises(UsageError, match="a link to a file that does not exist"):
        write_whole(link, "new")
    assert os.listdir(tmp_path / "far") == []
    link.unlink()
    link.symlink_to(link)
    with pytest.raises(UsageError, match="cannot be written"):
        write_whole(link, "new")


def test_a_name_as_long_as_the_system_takes(tmp_path: Path) -> None:
    name = "r" * 255
    write_whole(tmp_path / name, "x")
    assert os.listdir(tmp_path) == [name]
    with pytest.raises(UsageError, match="cannot be written"):
        write_whole(tmp_path / (name + "r"), "x")
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("fails", ["fsync", "replace"])
def test_what_cannot_be_written_leaves_nothing(
    fails: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "r").write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, fails, full)
    with pytest.raises(UsageError, match="No space left"):
        write_whole(tmp_path / "r", "new")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"r": "old"}


def test_the_file_and_its_folder_are_synchronised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = []
    monkeypatch.setattr(os, "fsync", lambda handle: kinds.append(stat.S_ISDIR(os.fstat(handle).st_mode)))
    write_whole(tmp_path / "r", "x")
    assert kinds == [False, True]


def test_text_that_is_no_unicode_and_a_path_that_is_none(tmp_path: Path) -> None:
    for path, text in ((tmp_path / "r", "\ud800"), (tmp_path / "a\0b", "x")):
        with pytest.raises(UsageError):
            write_whole(path, text)
    assert os.listdir(tmp_path) == []


def test_a_key_twice_after_a_million_others_is_found_in_one_pass() -> None:
    pairs = [(str(i), None) for i in range(200_000)]
    pairs.append(("199999", None))
    with pytest.raises(KeyTwice) as caught:  # a comparison of each with all would take minutes
        no_key_twice(pairs)
    assert caught.value.key == "199999"
