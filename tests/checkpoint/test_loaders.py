"""Which loader opens which files, stale indexes, and truncated tensors.

What the loaders do is from their sources: transformers 5.24 `modeling_utils._get_resolved_checkpoint_files` tries
model.safetensors before the index; vLLM 0.9 `weight_utils.filter_duplicate_safetensors_files` keeps what the index names.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from atlas.checkpoint import local
from atlas.checkpoint.faults import not_a_header
from atlas.checkpoint.findings import Finding
from atlas.checkpoint.inventory import Inventory, take

WHOLE, FIRST, SECOND = (
    "model.safetensors",
    "model-00001-of-00002.safetensors",
    "model-00002-of-00002.safetensors",
)
INDEX = "model.safetensors.index.json"


def write(path: Path, shapes: dict[str, list[int]], *, cut: int = 0) -> None:
    """A safetensors file of F32 zeros, `cut` bytes short."""
    table, end = {}, 0
    for name, shape in shapes.items():
        begin, end = end, end + 4 * shape[0] * shape[1]
        table[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
    header = json.dumps(table).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(end - cut))


def index(folder: Path, places: dict[str, str]) -> None:
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": places}))


def read(folder: Path) -> tuple[Inventory, list[Finding]]:
    inventory = take(local.at(folder)[0])
    return inventory, [
        finding for finding in inventory.findings if finding.code in ("loader", "index", "stray")
    ]


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    write(tmp_path / FIRST, {"a": [2, 3]})
    write(tmp_path / SECOND, {"b": [4, 5]})
    return tmp_path


def test_shards_without_an_index(sharded: Path) -> None:
    inventory, (finding,) = read(sharded)
    assert (finding.code, finding.severity, finding.exit_code, finding.count) == ("loader", "error", 1, 2)
    assert "transformers finds no weights" in finding.message
    assert "vLLM loads all" in finding.message
    assert inventory.loaders.transformers == ()
    assert inventory.loaders.vllm == (FIRST, SECOND)


@pytest.mark.parametrize(
    ("shapes", "severity", "count"),
    [
        ({"a": [2, 3], "b": [4, 5]}, "warning", 2),
        ({"a": [2, 3], "b": [4, 6]}, "error", 1),
        ({"a": [2, 3]}, "error", 1),
        ({"a": [2, 3], "b": [4, 5], "c": [1, 1]}, "error", 1),
    ],
)
def test_a_whole_file_next_to_a_sound_index(
    sharded: Path, shapes: dict[str, list[int]], severity: str, count: int
) -> None:
    index(sharded, {"a": FIRST, "b": SECOND})
    assert read(sharded)[1] == []
    write(sharded / WHOLE, shapes)
    inventory, (finding,) = read(sharded)
    assert (finding.code, finding.severity, finding.file, finding.count) == ("loader", severity, WHOLE, count)
    loaders = inventory.loaders
    assert (loaders.transformers, loaders.vllm, loaders.diffusers) == (
        (WHOLE,),
        (FIRST, SECOND),
        (FIRST, SECOND),
    )


def test_a_stale_index_next_to_the_whole_model(tmp_path: Path) -> None:
    index(tmp_path, {"a": FIRST, "b": SECOND})
    write(tmp_path / WHOLE, {"a": [2, 3], "b": [4, 5]})
    inventory, (finding,) = read(tmp_path)
    assert (finding.code, finding.exit_code, finding.count) == ("index", 1, 2)
    assert "stale" in finding.message
    assert inventory.tensors.keys() == {"a", "b"}
    assert not inventory.absent


def test_a_stale_index_next_to_other_shards(sharded: Path) -> None:
    index(sharded, {"a": "model-00001-of-00003.safetensors", "b": "model-00003-of-00003.safetensors"})
    inventory, (finding,) = read(sharded)
    assert (finding.code, finding.expected, finding.found) == ("index", 2, 0)
    assert "stale" in finding.message
    assert inventory.tensors.keys() == {"a", "b"}
    assert not inventory.absent


def test_a_missing_shard_is_no_stale_index(sharded: Path) -> None:
    """The whole file does not hold what the missing shard would."""
    index(sharded, {"a": FIRST, "b": SECOND, "c": "model-00003-of-00003.safetensors"})
    write(sharded / WHOLE, {"a": [2, 3], "b": [4, 5]})
    assert list(read(sharded)[0].absent) == ["model-00003-of-00003.safetensors"]


def test_tensors_of_a_truncated_file_are_named(tmp_path: Path) -> None:
    """b takes the last 4 × 5 × 4 = 80 bytes; with one byte cut it is not whole, a is."""
    write(tmp_path / WHOLE, {"a": [2, 3], "b": [4, 5]}, cut=1)
    assert read(tmp_path)[0].truncated == {"b"}


def test_the_page_of_a_blob_url() -> None:
    page = b"<!doctype html><html><head><title>model.safetensors \xc2\xb7 owner/name at main</title>"
    fault = not_a_header(page, 50_000).at("model.safetensors")
    assert fault.code == "pointer"
    assert "owner/name" in fault.message
    assert "/resolve/" in fault.hint
