"""Memory: at most 256 MiB more than before, however long the file and however many threads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from atlas.verification.deep.blocks import block_bytes
from tests.cli.conftest import REPOSITORY
from tests.deep.files import Stored, words, write
from tests.verify.checkpoints import T
from tests.verify.checkpoints import write as sparse

if not Path("/proc/self/status").is_file():
    pytest.skip("the peak of a process's memory is read from /proc", allow_module_level=True)

MOST_BYTES = 256 * 2**20

PEAK = """
import sys
from pathlib import Path
from atlas.checkpoint import local
from atlas.checkpoint.inventory import take
store, only = local.at(Path(sys.argv[1]))
inventory = take(store, only)


def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


before = peak()
from atlas.verification.deep.check import check
found = check(inventory, threads=8, hash_all=sys.argv[2] == "hash")
print(peak() - before, *[f.code for f in found.findings])
"""


def peak(folder: Path, how: str = "") -> tuple[int, list[str]]:
    """How much more memory reading took at its highest, NumPy included, and what was found."""
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(folder), how],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        timeout=120,
        check=True,
    )
    more, *codes = done.stdout.split()
    return int(more), codes


def test_a_gibibyte_by_eight_threads(tmp_path: Path) -> None:
    """That this can fail: mapped as a whole, the file alone would be 1,024 MiB."""
    sparse(tmp_path / "model.safetensors", {f"w{i}": T((2**14, 2**12)) for i in range(8)})
    more, codes = peak(tmp_path)
    assert codes == ["zero"]
    assert block_bytes(8) < more < MOST_BYTES


def test_where_every_value_is_nan_and_the_hash_is_wanted(tmp_path: Path) -> None:
    """Each piece is then looked at again, which takes arrays as long as it is."""
    data = words(2**21, 2, {}, 0x7FC0) * 4
    for i in range(8):
        write(tmp_path / f"part{i}.safetensors", {f"w{i}": Stored("BF16", (2**23,), data)})
    more, codes = peak(tmp_path, "hash")
    assert codes == ["nonfinite"]
    assert more < MOST_BYTES
