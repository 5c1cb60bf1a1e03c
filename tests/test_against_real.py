"""Names, shapes and bytes against indexes of checkpoints that are really published (`../shared/real`).

Nothing here was computed by the atlas: an index lists the tensors of a checkpoint by name, its `total_size` their bytes, and
`expected_shapes.json` each tensor's shape.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from atlas import dtypes
from atlas.analyse import counts
from atlas.analyse.parameters import total
from atlas.graph import tensors
from atlas.graph.graph import Graph
from atlas.spec.library import Library

WITH_TOTAL_SIZE = [
    "llama-2-13b-elyza",
    "llama-3.1-8b-modelstock",
    "llama-3.2-3b",
    "yi-1.5-6b-slerp",
    "granite-3b-code-128k",
]
WITH_INDEX = [*WITH_TOTAL_SIZE, "llama-2-70b-lzlv", "llama-7b"]
DENSE = [*WITH_INDEX, "codellama-34b-codefuse"]

# The same dimensions in the catalogue, so that its entry must give the same tensors.
CATALOGUED = {
    "llama-2-13b-elyza": "llama2-13b",
    "llama-2-70b-lzlv": "llama2-70b",
    "llama-3.1-8b-modelstock": "llama3.1-8b",
    "llama-3.2-3b": "llama3.2-3b",
    "llama-7b": "llama2-7b",
}


def read(shared: Path, name: str, file: str) -> Any:
    return json.loads((shared / "real" / name / file).read_text())


def ours(graph: Graph) -> dict[str, tuple[int, ...]]:
    return {tensor.name: tensor.shape for tensor in tensors.expected(graph, "hf")}


def is_rotary_buffer(name: str) -> bool:
    """Old checkpoints stored the rotation's frequencies beside the weights."""
    return name.endswith(".rotary_emb.inv_freq")


def published(shared: Path, name: str) -> str:
    return str(shared / "real" / name)


@pytest.mark.parametrize("name", WITH_INDEX)
def test_names_are_those_of_the_index(name: str, shared: Path, graph_of: Callable[[str], Graph]) -> None:
    listed = set(read(shared, name, "index.json")["weight_map"])
    weights = {tensor for tensor in listed if not is_rotary_buffer(tensor)}
    assert set(ours(graph_of(published(shared, name)))) == weights
    assert len(listed - weights) == (32 if name == "llama-7b" else 0)


@pytest.mark.parametrize("name", DENSE)
def test_shapes_are_those_stored(name: str, shared: Path, graph_of: Callable[[str], Graph]) -> None:
    expected = {tensor: tuple(shape) for tensor, shape in read(shared, name, "expected_shapes.json").items()}
    assert ours(graph_of(published(shared, name))) == expected


@pytest.mark.parametrize("name", WITH_TOTAL_SIZE)
def test_bytes_are_those_of_the_index(
    name: str, shared: Path, graph_of: Callable[[str], Graph], library: Library
) -> None:
    total_size = read(shared, name, "index.json")["metadata"]["total_size"]
    assert counts.count(graph_of(published(shared, name)), library).weight_bytes == total_size


def test_llama_7b_has_its_rotary_buffers_beside(
    shared: Path, graph_of: Callable[[str], Graph], library: Library
) -> None:
    total_size = read(shared, "llama-7b", "index.json")["metadata"]["total_size"]
    buffers = 32 * 64 * 2  # a layer has 64 frequencies of two bytes
    assert buffers == 4_096
    weights = counts.count(graph_of(published(shared, "llama-7b")), library).weight_bytes
    assert total_size == weights + buffers


@pytest.mark.parametrize("name", ["llama-3.1-8b-modelstock", "yi-1.5-6b-slerp"])
def test_the_files_are_as_large_as_our_bytes_and_their_headers(
    name: str, shared: Path, graph_of: Callable[[str], Graph], library: Library
) -> None:
    """A safetensors file is eight bytes, a header of at most some hundred bytes for each tensor, and the numbers."""
    sizes = [shard["lfs_size"] for shard in read(shared, name, "shards.json").values()]
    found = counts.count(graph_of(published(shared, name)), library)
    headers = sum(sizes) - found.weight_bytes
    assert 8 * len(sizes) + 50 * found.tensor_count < headers < 8 * len(sizes) + 200 * found.tensor_count


@pytest.mark.parametrize(("name", "entry"), CATALOGUED.items())
def test_the_catalogued_model_has_the_same_tensors(
    name: str, entry: str, shared: Path, graph_of: Callable[[str], Graph]
) -> None:
    expected = {tensor: tuple(shape) for tensor, shape in read(shared, name, "expected_shapes.json").items()}
    assert ours(graph_of(entry)) == expected


@pytest.mark.parametrize("name", DENSE)
def test_nothing_in_their_configurations_is_unknown(
    name: str, shared: Path, graph_of: Callable[[str], Graph]
) -> None:
    model = graph_of(published(shared, name)).model
    assert model.warnings == ()
    assert model.gaps == ()
    stated = read(shared, name, "config.json")["torch_dtype"]
    assert model.dtype == {"float16": "F16", "bfloat16": "BF16"}[stated]
    assert dtypes.BITS[model.dtype] == 16
    assert model.dtype_stated


@pytest.mark.parametrize("name", ["bloom", "gemma-2b@27b76a6", "mixtral-8x7b", "qwen2-cogito-14b"])
def test_other_families_have_the_published_tensors(
    name: str, shared: Path, graph_of: Callable[[str], Graph]
) -> None:
    expected = {tensor: tuple(shape) for tensor, shape in read(shared, name, "expected_shapes.json").items()}
    assert ours(graph_of(published(shared, name))) == expected


@pytest.mark.parametrize("name", ["llama-2-13b-elyza", "llama-2-70b-lzlv"])
def test_without_the_correction_the_catalogue_would_not_fit(
    name: str, shared: Path, graph_of: Callable[[str], Graph], library: Library
) -> None:
    """The published sizes tell the released model from what the entry says, where the two differ."""
    found = counts.count(graph_of(CATALOGUED[name]), library)
    expected = read(shared, name, "expected_shapes.json")
    elements = sum(shape[0] * (shape[1] if len(shape) > 1 else 1) for shape in expected.values())
    assert found.total_parameters == elements
    differs = {"llama-2-13b-elyza": True, "llama-2-70b-lzlv": False}[name]
    assert (found.catalogue_parameters != elements) is differs


CASES = {
    "05b-tied-count": 1_235_814_400,
    "07-head-dim-explicit": 12_247_782_400,
    "07b-null-fields": 6_738_415_616,
    "12-kv-gqa": 8_030_261_248,
}


@pytest.mark.parametrize(("case", "parameters"), CASES.items())
def test_inputs_that_bit_people(
    case: str, parameters: int, shared: Path, graph_of: Callable[[str], Graph]
) -> None:
    assert total(graph_of(str(shared / "cases" / "cases" / case / "config.json"))) == parameters
