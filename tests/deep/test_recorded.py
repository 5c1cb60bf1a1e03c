"""Records of hashes as anybody may write them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atlas.checkpoint.store import Folder
from atlas.verification.deep.recorded import DOWNLOADS, recorded
from tests.checkpoint.test_header_fuzz import CHOICES, EXAMPLES, fuzz
from tests.verify.test_hostile import Choices, mutated

CHECKLIST = f"{'0' * 32}  a\nMD5 (b) = {'1' * 32}\n\\{'2' * 64} *./a\\nb\n{'3' * 64}  a\n".encode()


def test_of_two_hashes_of_a_file_the_longer_counts(tmp_path: Path) -> None:
    (tmp_path / "checklist.chk").write_text(f"{'3' * 64}  a\n{'0' * 32}  a\n")
    known, findings = recorded(Folder(tmp_path), ["checklist.chk", "a"])
    assert known["a"].digest == "3" * 64
    assert findings == []


def test_entries_of_files_that_are_not_there_are_passed_over(tmp_path: Path) -> None:
    lines = [f"{i:032x}  file{i}" for i in range(50_000)]
    (tmp_path / "checklist.chk").write_text("\n".join([*lines, f"{'0' * 32}  a", f"{'1' * 32}  a"]))
    known, (finding,) = recorded(Folder(tmp_path), ["checklist.chk", "a"])
    assert list(known) == ["a"]
    assert "line 50,002 is not" in finding.message


@pytest.mark.parametrize("name", ["./a", "././a", ".//a", "b/../a", "*a"])
def test_names_in_a_checklist_are_normalised(tmp_path: Path, name: str) -> None:
    (tmp_path / "checklist.chk").write_text(f"{'5' * 32}  {name}\n")
    known, findings = recorded(Folder(tmp_path), ["a"])
    assert (known["a"].digest, findings) == ("5" * 32, [])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("SHA256SUMS", f"{'6' * 64}  a\n{'7' * 64}  other\n"),
        ("sha256sums.txt", f"{'6' * 64} *./a\n"),
        ("a.sha256", f"{'6' * 64}\n"),
        ("a.sha256", f"{'6' * 64}  a\n"),
        ("weights.sha256", f"SHA256 (a) = {'6' * 64}\n"),
        ("MD5SUMS", f"{'6' * 32}  a\n"),
    ],
)
def test_checksum_files(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    known, findings = recorded(Folder(tmp_path), ["a"])
    assert findings == []
    assert (set(known["a"].digest), known["a"].where) == ({"6"}, name)


def test_checksum_files_that_contradict_each_other(tmp_path: Path) -> None:
    (tmp_path / "SHA256SUMS").write_text(f"{'6' * 64}  a\n")
    (tmp_path / "a.sha256").write_text(f"{'7' * 64}\n")
    (tmp_path / "MD5SUMS").write_text(f"{'8' * 32}  a\n")
    known, (finding,) = recorded(Folder(tmp_path), ["a"])
    assert known["a"].digest == "6" * 64
    assert "contradicts" in finding.message


def test_a_checksum_file_of_another_file_may_be_anything(tmp_path: Path) -> None:
    (tmp_path / "archive.zip.sha256").write_text("{}")
    assert recorded(Folder(tmp_path), ["a"]) == ({}, [])


def test_a_checklist_that_does_not_end(tmp_path: Path) -> None:
    with (tmp_path / "checklist.chk").open("wb") as file:
        file.truncate(2**40)
    known, (finding,) = recorded(Folder(tmp_path), ["checklist.chk"])
    assert not known
    assert "larger than" in finding.message


def test_a_link_to_something_with_a_hash_for_a_name_is_no_record(tmp_path: Path) -> None:
    """Only what lies in a cache's `blobs` is called by its hash."""
    (tmp_path / "m").mkdir()
    (tmp_path / "m/a").symlink_to(f"../elsewhere/{'0' * 64}")
    assert recorded(Folder(tmp_path / "m"), ["a"]) == ({}, [])


def test_a_checklist_and_metadata_of_anything(tmp_path: Path) -> None:
    metadata = tmp_path / DOWNLOADS / "b.metadata"
    metadata.parent.mkdir(parents=True)

    @settings(fuzz, max_examples=max(EXAMPLES // 5, 1))
    @given(st.binary(min_size=CHOICES, max_size=CHOICES))
    def run(raw: bytes) -> None:
        choices = Choices(raw)
        (tmp_path / "checklist.chk").write_bytes(mutated(choices, CHECKLIST))
        metadata.write_bytes(mutated(choices, f"{'c' * 40}\n{'4' * 64}\n1.0\n".encode()))
        known, findings = recorded(Folder(tmp_path), ["checklist.chk", "a", "b"])
        assert known.keys() <= {"checklist.chk", "a", "b"}
        assert all(len(found.digest) in (32, 64) for found in known.values())
        assert len(findings) <= 2

    run()
