"""Files that change under the reader: cut short, gone, failing. A finding, and never a traceback or a dead process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from atlas.checkpoint.findings import Finding
from atlas.errors import CheckpointError
from atlas.verification.deep.memory_map import LEAST_MAPPED_BYTES, Source, catch_sigbus, stamp
from atlas.verification.deep.values import PIECE_BYTES
from tests.cli.conftest import REPOSITORY
from tests.deep.conftest import Read
from tests.deep.files import Stored, write
from tests.verify.checkpoints import T
from tests.verify.checkpoints import write as sparse

MIB = 2**20


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A file of several blocks beside a small one."""
    sparse(tmp_path / "a.safetensors", {"w": T((80 * MIB // 1024, 1024))})
    write(tmp_path / "b.safetensors", {"v": Stored("BF16", (1,), b"\xc0\x7f")})
    return tmp_path


def findings(read: Read, folder: Path, change: object) -> list[Finding]:
    """What is found where something happens to a file after its header was read."""
    from atlas.checkpoint import local
    from atlas.checkpoint.inventory import take
    from atlas.verification.deep.check import check

    store, only = local.at(folder)
    inventory = take(store, only)
    assert callable(change)
    change(folder / "a.safetensors")
    return [finding for finding in check(inventory, hash_all=True).findings if finding.code != "zero"]


@pytest.mark.parametrize("size", [100, 50 * MIB + 5, 160 * MIB + 70])
def test_cut_short_before_it_is_read(size: int, folder: Path, read: Read) -> None:
    cut, nan = findings(read, folder, lambda path: os.truncate(path, size))
    assert (cut.code, cut.exit_code, cut.file) == ("truncated", 1, "a.safetensors")
    assert "was truncated while it was read" in cut.message
    assert (nan.code, nan.tensor) == ("nonfinite", "v")  # the other file is read all the same


def test_gone_before_it_is_read(folder: Path, read: Read) -> None:
    gone, nan = findings(read, folder, Path.unlink)
    assert (gone.code, gone.exit_code, gone.file) == ("header", 2, "a.safetensors")
    assert "the file cannot be read: No such file or directory" in gone.message
    assert nan.code == "nonfinite"


def _replaced(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(path.read_bytes()[:-1] + b"x")
    other.rename(path)


def _grown(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"x")


@pytest.mark.parametrize("change", [_replaced, _grown])
@pytest.mark.parametrize("mapped", [True, False])
def test_changed_between_two_blocks(change: Callable[[Path], None], mapped: bool, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(200_000))
    source = Source(path, "f", mapped, stamp(path, 200_000))
    with catch_sigbus():
        with source.block(0, 100_000) as data:
            assert not data.any()
        change(path)
        with (
            pytest.raises(CheckpointError, match="f: was written to or replaced while") as error,
            source.block(100_000, 200_000),
        ):
            pass
    assert error.value.code == "header"


def test_grown_since_its_header_was_read(folder: Path, read: Read) -> None:
    found, nan = findings(read, folder, _grown)
    assert (found.code, found.exit_code, found.file) == ("header", 2, "a.safetensors")
    assert "was written to or replaced while it was read" in found.message
    assert nan.code == "nonfinite"


CUT_UNDER_THE_READER = """
import os, sys, threading, time
import numpy as np
from pathlib import Path
from atlas.errors import CheckpointError
from atlas.verification.deep.memory_map import LEAST_MAPPED_BYTES, Source, stamp, catch_sigbus
from atlas.verification.deep.values import PIECE_BYTES

path = Path(sys.argv[1])
source = Source(path, "a file", mapped=True)
said = []

def reading():
    try:
        with source.block(0, 2**24) as data:
            mapped.set()
            cut.wait()
            assert int(np.maximum.reduce(data)) == 0  # touches pages that are gone
    except CheckpointError as error:
        said.append((error.code, error.message))

mapped, cut = threading.Event(), threading.Event()
thread = threading.Thread(target=reading)
with catch_sigbus() as rescue:
    thread.start()
    mapped.wait()
    os.truncate(path, 2**20)
    cut.set()
    while thread.is_alive():
        thread.join(0.05)
        rescue()
print(said[0][0], said[0][1])
"""


def test_cut_short_under_the_reader(tmp_path: Path) -> None:
    """In a process of its own, which SIGBUS would end."""
    with (tmp_path / "file").open("wb") as file:
        file.truncate(2**24)
    done = subprocess.run(
        [sys.executable, "-c", CUT_UNDER_THE_READER, str(tmp_path / "file")],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("truncated a file: was truncated")


CUT_WHILE_CHECKED = """
import os, sys
from pathlib import Path
from atlas.checkpoint import local
from atlas.checkpoint.inventory import take
from atlas.verification.deep.check import check

folder = Path(sys.argv[1])
store, only = local.at(folder)
inventory = take(store, only)
found = check(inventory, hash_all=True, on_progress=lambda *what: os.truncate(folder / "model.safetensors", 2**20))
print(*[finding.code for finding in found.findings])
"""


@pytest.mark.parametrize("name", ["w", "w1", "w12"], ids=len)
def test_cut_short_while_it_is_checked(name: str, tmp_path: Path) -> None:
    """By somebody who comes a tenth of a second after it was begun, while all threads are at it; aligned and not."""
    sparse(tmp_path / "model.safetensors", {name: T((2**14, 2**15))})
    done = subprocess.run(
        [sys.executable, "-c", CUT_WHILE_CHECKED, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["truncated"]


def test_a_disk_that_fails(tmp_path: Path) -> None:
    """No file is cut short, and the signal comes again: then it is the disk. Once is not enough to say so."""
    (tmp_path / "file").write_bytes(b"x" * 100_000)
    source = Source(tmp_path / "file", "f", mapped=True)
    with catch_sigbus() as rescue:

        def read_while_signalled(times: int) -> int:
            with source.block(0, 100_000) as data:
                for _ in range(times):
                    os.kill(os.getpid(), signal.SIGBUS)
                    rescue()
                return int(data[5_000])

        assert read_while_signalled(1) == ord("x")
        with pytest.raises(CheckpointError, match="the disk failed") as error:
            read_while_signalled(1)
    assert error.value.code == "header"


def test_cut_short_within_the_last_page(tmp_path: Path) -> None:
    """Then no signal comes: what is left of the page reads as zeros."""
    (tmp_path / "file").write_bytes(b"x" * 100_000)
    source = Source(tmp_path / "file", "f", mapped=True)
    with catch_sigbus(), pytest.raises(CheckpointError) as error, source.block(0, 100_000):
        os.truncate(tmp_path / "file", 99_999)
    assert error.value.code == "truncated"


CUT_AS_SOON_AS_MAPPED = """
import os, sys, threading
from contextlib import contextmanager
from pathlib import Path
from atlas.checkpoint import local
from atlas.checkpoint.inventory import take
from atlas.verification.deep.check import check
from atlas.verification.deep.memory_map import Source

folder, hash_all, in_main = Path(sys.argv[1]), sys.argv[2] == "hash", sys.argv[3] == "main"
block = Source.block

@contextmanager
def cut(source, begin, end):
    with block(source, begin, end) as data:
        os.truncate(source.path, 0)
        yield data

def go():
    Source.block = cut
    print(*[found.code for found in check(inventory, hash_all=hash_all, threads=1).findings if found.code != "zero"])

store, only = local.at(folder)
inventory = take(store, only)
if in_main:
    go()
else:
    thread = threading.Thread(target=go)
    thread.start()
    thread.join()
"""

LARGE = T((2**20,), "F32")
PIECE = PIECE_BYTES // 2
HANGS = {
    "numbers that NumPy reads with the interpreter locked": {"a": LARGE, "b": T((100,))},
    "the same before a large tensor": {"a": T((3,)), "b": LARGE},
    "a few numbers after whole pieces": {"a": T((2 * PIECE + 3,))},
    "the same at an odd address": {"ab": T((2 * PIECE + 3,))},
    "just what is mapped": {"a": T((LEAST_MAPPED_BYTES // 2,))},
    "just what is not": {"a": T((LEAST_MAPPED_BYTES // 2 - 60,))},
}


@pytest.mark.parametrize("thread", ["main", "other"])
@pytest.mark.parametrize("hashed", ["hash", "values"])
@pytest.mark.parametrize("tensors", HANGS.values(), ids=HANGS)
def test_cut_short_as_soon_as_it_is_mapped(
    tensors: dict[str, T], hashed: str, thread: str, tmp_path: Path
) -> None:
    """Before the first byte is touched: no thread may hang with the interpreter locked, nor the process end."""
    sparse(tmp_path / "model.safetensors", tensors)
    done = subprocess.run(
        [sys.executable, "-c", CUT_AS_SOON_AS_MAPPED, str(tmp_path), hashed, thread],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    size = sum(tensor.bytes for tensor in tensors.values())
    mapped = thread == "main" and size >= LEAST_MAPPED_BYTES
    assert done.stdout.split() == ["truncated"] * mapped  # what is not mapped had been read before


def test_the_handler_of_the_signal_is_put_back() -> None:
    before = signal.getsignal(signal.SIGBUS)
    with catch_sigbus():
        assert signal.getsignal(signal.SIGBUS) is not before
    assert signal.getsignal(signal.SIGBUS) is before
