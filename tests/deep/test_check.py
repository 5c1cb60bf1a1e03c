"""Values planted in files, found with their tensor, file, count and index; at any byte and across blocks."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from atlas.checkpoint.store import Folder
from atlas.errors import MissingExtra, UsageError
from atlas.verification import deep
from atlas.verification.deep.blocks import LARGE_PAGE_BYTES
from tests.deep.conftest import Read
from tests.deep.files import Stored, words, write

ONE = 0x3F80
"""In BF16."""


def codes(found: deep.check.Deep) -> list[str]:
    return [finding.code for finding in found.findings]


@pytest.mark.parametrize("start", [0, 1, 2, 7])
def test_the_borders_of_blocks_at_any_byte(
    start: int, tmp_path: Path, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block ends at a multiple of its size in the file, be that inside an element or not."""
    monkeypatch.setattr(deep.check, "block_bytes", lambda threads: LARGE_PAGE_BYTES)
    rows, columns = LARGE_PAGE_BYTES // 1024 + 3, 1024
    count = rows * columns
    begin = write(tmp_path / "model.safetensors", {"w": Stored("BF16", (rows, columns), b"")}, start=start)
    border = (LARGE_PAGE_BYTES - begin) // 2
    for at in (0, border - 1, border, border + 1, count - 1):
        data = words(count, 2, {at: 0x7FC0}, ONE)
        assert write(
            tmp_path / "model.safetensors", {"w": Stored("BF16", (rows, columns), data)}, start=start
        ) in {
            begin,
            begin + 8,  # the offsets take more digits
        }
        (finding,) = read(tmp_path).findings
        assert (finding.code, finding.tensor, finding.file) == ("nonfinite", "w", "model.safetensors")
        assert (finding.count, finding.found) == (1, (at // columns, at % columns))


def test_a_finding_says_what_and_where(tmp_path: Path, read: Read) -> None:
    planted = {7: 0x7FC0, 8: 0xFF80, 19: 0x7F80, 23: 0xFFFF}
    tensors = {
        "norm": Stored("BF16", (5,), words(5, 2, {}, ONE)),
        "w": Stored("BF16", (2, 3, 4), words(24, 2, planted, ONE)),
        "scalar": Stored("F32", (), words(1, 4, {0: 0x7F800000})),
    }
    write(tmp_path / "model.safetensors", tensors, start=1)
    found = read(tmp_path)
    first, second = found.findings
    # Element 7 of 2 × 3 × 4: 7 = (0 × 3 + 1) × 4 + 3.
    assert (first.tensor, first.count, first.found, first.exit_code) == ("w", 4, (0, 1, 3), 1)
    assert first.message.startswith(
        "w in model.safetensors: 2 NaN and 2 Inf among 24 values, the first at [0, 1, 3]; "
    )
    assert (second.tensor, second.count, second.found) == ("scalar", 1, ())
    assert second.message.startswith("scalar in model.safetensors: 1 Inf among 1 values, the first at []; ")
    assert found.bytes_read == 5 * 2 + 24 * 2 + 4


SIZES = {"BF16": 2, "F16": 2, "F32": 4, "F64": 8, "F8_E5M2": 1, "F8_E4M3": 1, "F8_E4M3FNUZ": 1}
NAN = {
    "BF16": 0x7FC0,
    "F16": 0x7E00,
    "F32": 0x7FC00000,
    "F64": 0x7FF8000000000000,
    "F8_E5M2": 0x7E,
    "F8_E4M3": 0x7F,
    "F8_E4M3FNUZ": 0x80,
}


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_any_tensors_in_any_blocks(data: st.DataObject, tmp_path: Path, read: Read) -> None:
    """Batch dtypes in one file that starts at any byte, in blocks of a few bytes, by several threads."""
    tensors, planted = {}, {}
    for i, dtype in enumerate(data.draw(st.lists(st.sampled_from(sorted(SIZES)), min_size=1, max_size=4))):
        count = data.draw(st.integers(1, 40))
        places = data.draw(st.sets(st.integers(0, count - 1), max_size=3))
        filler = data.draw(st.sampled_from([0, 1]))  # zero, or the smallest number there is
        bytes_ = words(count, SIZES[dtype], dict.fromkeys(places, NAN[dtype]), filler)
        tensors[f"t{i}"] = Stored(dtype, (count, 1), bytes_)
        planted[f"t{i}"] = (places, filler)
    write(tmp_path / "model.safetensors", tensors, start=data.draw(st.integers(0, 7)))
    with pytest.MonkeyPatch.context() as patch:
        size = data.draw(st.integers(8, 64))
        patch.setattr(deep.check, "block_bytes", lambda threads: size)
        found = read(tmp_path, threads=3, hash_all=data.draw(st.booleans()))
    strange = [(f.tensor, f.count, f.found) for f in found.findings if f.code == "nonfinite"]
    assert strange == [
        (name, len(places), (min(places), 0)) for name, (places, _) in planted.items() if places
    ]
    zero = [name for name, (places, filler) in planted.items() if not places and not filler]
    counted = [f.count for f in found.findings if f.code == "zero"]
    assert sum(counted) == len(zero)


def test_many_tensors_that_are_not_finite_are_one_finding(tmp_path: Path, read: Read) -> None:
    for count in (4, 5):
        tensors = {
            f"layers.{i}.w": Stored("BF16", (3, 4), words(12, 2, {i: 0x7FC0, 11: 0x7F80}))
            for i in range(count)
        }
        write(tmp_path / "model.safetensors", tensors)
        found = read(tmp_path).findings
        assert [finding.count for finding in found] == ([2] * 4 if count == 4 else [10])
    [finding] = found
    assert (finding.tensor, finding.found) == ("layers.0.w", (0, 0))
    assert finding.message.startswith(
        "layers.*.w (5 tensors): 5 NaN and 5 Inf in all, the first in layers.0.w at [0, 0]; "
    )


def test_zero_is_said_of_matrices_once_for_all_layers(tmp_path: Path, read: Read) -> None:
    nothing = words(12, 2, {3: 0x8000})
    tensors = {
        **{f"layers.{i}.w": Stored("BF16", (3, 4), nothing) for i in range(3)},
        "experts": Stored("I8", (2, 2, 3), bytes(12)),
        "bias": Stored("BF16", (12,), nothing),
        "empty": Stored("BF16", (0, 4), b""),
        "scales": Stored("F8_E8M0", (3, 4), bytes(12)),  # of 2 ** -127, not of zeros
        "w": Stored("BF16", (3, 4), words(12, 2, {11: 1})),
    }
    write(tmp_path / "model.safetensors", tensors)
    layers, experts = read(tmp_path).findings
    assert (layers.code, layers.severity, layers.exit_code) == ("zero", "warning", 0)
    assert (layers.tensor, layers.count) == ("layers.0.w", 3)
    assert layers.message.startswith("layers.*.w (3 tensors), [3, 4]: all values are zero; ")
    assert (experts.tensor, experts.count) == ("experts", 1)
    assert experts.message.startswith("experts, [2, 2, 3]: all values are zero; ")


def test_where_nothing_was_written_that_is_one_finding(tmp_path: Path, read: Read) -> None:
    tensors = {f"{word}.weight": Stored("F32", (2, 2), bytes(16)) for word in "abcdef"}
    write(tmp_path / "model.safetensors", tensors)
    (finding,) = read(tmp_path).findings
    assert (finding.code, finding.count) == ("zero", 6)
    assert "all 6 matrices" in finding.message


def test_files_are_read_in_their_order_whoever_is_done_first(tmp_path: Path, read: Read) -> None:
    for i in range(4):
        data = words(4 - i, 2, {3 - i: 0x7FC0})
        write(tmp_path / f"model-0000{i}-of-00004.safetensors", {f"w{i}": Stored("BF16", (4 - i,), data)})
    found = read(tmp_path, threads=4)
    assert [(finding.tensor, finding.found) for finding in found.findings] == [
        (f"w{i}", (3 - i,)) for i in range(4)
    ]


def test_of_a_truncated_file_what_is_there(tmp_path: Path, read: Read) -> None:
    """The half of it that is there is zeros, and so the matrix is not called zero; the hash is not computed."""
    path = tmp_path / "model.safetensors"
    write(
        path, {"w": Stored("BF16", (2, 8), words(16, 2, {1: 0x7FC0})), "z": Stored("BF16", (2, 8), bytes(32))}
    )
    path.write_bytes(path.read_bytes()[:-15])
    found = read(tmp_path, hash_all=True)
    assert codes(found) == ["nonfinite"]
    assert found.hashes == {}


def test_progress_goes_up_to_the_end(tmp_path: Path, read: Read) -> None:
    write(tmp_path / "model.safetensors", {"w": Stored("BF16", (6,), words(6, 2, {}, ONE))})
    calls: list[tuple[str, int, int]] = []
    read(tmp_path, on_progress=lambda *what: calls.append(what))
    assert calls[-1] == ("reading the data", 12, 12)
    assert [done for _, done, _ in calls] == sorted(done for _, done, _ in calls)


def test_what_is_on_the_hub_is_not_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, read: Read) -> None:
    write(tmp_path / "model.safetensors", {"w": Stored("BF16", (1,), words(1, 2, {}, ONE))})
    monkeypatch.setattr(deep.check, "Folder", type("Another", (Folder,), {}))
    with pytest.raises(UsageError, match="--deep reads the data") as refused:
        read(tmp_path)
    assert "--download" in refused.value.hint


def test_without_numpy_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deep, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra) as missing:
        deep.require_extra()
    assert missing.value.hint == "pip install numpy; the extra `run` includes it"
    assert missing.value.exit_code == 2
