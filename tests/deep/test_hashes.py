"""Hashes against what is recorded: a checklist beside, the Hub's cache, a download into a folder."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from atlas.verification.deep import check
from tests.deep.conftest import Read
from tests.deep.files import Stored, words, write

FILE = "consolidated.00.safetensors"
TENSORS = {"w": Stored("BF16", (3, 4), words(12, 2, {}, 0x3F80))}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / FILE, TENSORS, start=3)
    (tmp_path / "params.json").write_text("{}")
    return tmp_path


def digest(path: Path, algorithm: str) -> str:
    return hashlib.new(algorithm, path.read_bytes()).hexdigest()


@pytest.mark.parametrize("algorithm", ["md5", "sha256"])
def test_a_checklist_that_holds(algorithm: str, folder: Path, read: Read) -> None:
    lines = [
        f"{digest(folder / FILE, algorithm)}  {FILE}",
        f"{digest(folder / 'params.json', algorithm).upper()} *./params.json",
        f"{'0' * 32}  tokenizer.model",  # not there
        "",
    ]
    (folder / "checklist.chk").write_text("\r\n".join(lines))
    found = read(folder)
    assert found.findings == ()
    assert found.checked == dict.fromkeys([FILE, "params.json"], "checklist.chk")
    assert found.hashes.keys() == (found.checked.keys() if algorithm == "sha256" else set())
    assert found.bytes_read == (folder / FILE).stat().st_size + 2


@pytest.mark.parametrize(("algorithm", "title"), [("md5", "MD5"), ("sha256", "SHA-256")])
@pytest.mark.parametrize("name", [FILE, "params.json"])
def test_other_bytes_than_the_checklist_has(
    algorithm: str, title: str, name: str, folder: Path, read: Read
) -> None:
    """One bit of a value, or a space behind the configuration."""
    recorded = digest(folder / name, algorithm)
    (folder / "checklist.chk").write_text(f"{recorded}  {name}\n")
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    (finding,) = read(folder).findings
    assert (finding.code, finding.severity, finding.exit_code, finding.file) == ("hash", "error", 1, name)
    assert (finding.expected, finding.found) == (recorded, digest(folder / name, algorithm))
    assert f"the {title} of the file" in finding.message
    assert "as recorded in checklist.chk" in finding.message


def test_a_checklist_with_odd_lines(folder: Path, read: Read) -> None:
    good = f"{digest(folder / FILE, 'md5')}  {FILE}"
    (folder / "checklist.chk").write_bytes(f"{good}\n# a comment\nabc  {FILE}\n".encode() + b"\xff\xfe\n")
    found = read(folder)
    assert found.checked == {FILE: "checklist.chk"}
    (finding,) = found.findings
    assert (finding.code, finding.severity, finding.file) == ("hash", "warning", "checklist.chk")
    assert "line 2 and 2 more" in finding.message


@pytest.mark.parametrize("algorithm", ["md5", "sha256"])
def test_a_checklist_as_bsd_prints_it(algorithm: str, folder: Path, read: Read) -> None:
    """`md5` of macOS, and `sha256sum --tag`."""
    for recorded, codes in (
        (digest(folder / FILE, algorithm), []),
        ("0" * len(digest(folder / FILE, algorithm)), ["hash"]),
    ):
        (folder / "checklist.chk").write_text(f"{algorithm.upper()} ({FILE}) = {recorded}\n")
        assert [finding.code for finding in read(folder).findings] == codes


def test_the_name_of_a_blob_in_the_cache(tmp_path: Path, read: Read) -> None:
    """`models--a--b/snapshots/<commit>/<file>` links to `blobs/<SHA-256>`; small files are named by another hash."""
    root = tmp_path / "models--a--b"
    snapshot = root / "snapshots" / ("c" * 40)
    write(root / "blobs/file", TENSORS)
    snapshot.mkdir(parents=True)
    right, wrong = digest(root / "blobs/file", "sha256"), "0" * 64
    for recorded in (right, wrong):
        (root / "blobs" / recorded).write_bytes((root / "blobs/file").read_bytes())
        link = snapshot / "model.safetensors"
        link.unlink(missing_ok=True)
        os.symlink(f"../../blobs/{recorded}", link)
        found = read(snapshot)
        assert found.checked == {"model.safetensors": "the name of its blob in the local Hub cache"}
        assert [(f.code, f.expected, f.found) for f in found.findings] == (
            [] if recorded == right else [("hash", wrong, right)]
        )
    assert "as recorded in the name of its blob in the local Hub cache" in found.findings[0].message


@pytest.mark.parametrize("same", [True, False])
def test_a_download_into_a_folder(same: bool, tmp_path: Path, read: Read) -> None:
    """`hf download --local-dir` leaves commit, etag and time, a line each."""
    write(tmp_path / "model.safetensors", TENSORS)
    etag = digest(tmp_path / "model.safetensors", "sha256") if same else "1" * 64
    metadata = tmp_path / ".cache/huggingface/download/model.safetensors.metadata"
    metadata.parent.mkdir(parents=True)
    metadata.write_text(f"{'c' * 40}\n{etag}\n1700000000.0\n")
    assert [f.code for f in read(tmp_path).findings] == ([] if same else ["hash"])


def test_the_metadata_of_a_download_is_believed_before_a_checklist(tmp_path: Path, read: Read) -> None:
    write(tmp_path / "model.safetensors", TENSORS)
    etag = digest(tmp_path / "model.safetensors", "sha256")
    metadata = tmp_path / ".cache/huggingface/download/model.safetensors.metadata"
    metadata.parent.mkdir(parents=True)
    metadata.write_text(f"{'c' * 40}\n{etag}\n1700000000.0\n")
    (tmp_path / "checklist.chk").write_text(f"{'0' * 32}  model.safetensors\n")
    assert read(tmp_path).findings == ()


def test_without_a_record_a_hash_only_where_it_is_wanted(folder: Path, read: Read) -> None:
    assert read(folder).hashes == {}
    assert read(folder, hash_all=True).hashes == {FILE: digest(folder / FILE, "sha256")}
    (folder / "checklist.chk").write_text(f"{digest(folder / FILE, 'md5')}  {FILE}\n")
    assert read(folder, hash_all=True).hashes == {FILE: digest(folder / FILE, "sha256")}


def test_a_hash_over_many_blocks_and_threads(
    tmp_path: Path, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "block_bytes", lambda threads: 4096)
    data = bytes(i * i % 251 for i in range(10**6))
    for i in range(3):
        write(
            tmp_path / f"part{i}.safetensors", {f"w{i}": Stored("U8", (10**6,), data[i:] + data[:i])}, start=i
        )
    found = read(tmp_path, threads=7, hash_all=True)
    assert found.hashes == {path.name: digest(path, "sha256") for path in sorted(tmp_path.iterdir())}
