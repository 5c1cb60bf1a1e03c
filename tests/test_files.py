"""Files that strangers wrote are read within a bound, and only if they are regular files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from atlas.errors import ConfigError, UsageError
from atlas.files import read_regular


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
