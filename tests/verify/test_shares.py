"""Meta's model-parallel files that are no shares of one checkpoint: each cause is one finding, and names the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from atlas.checkpoint.findings import Finding
from atlas.checkpoint.header import read_header
from atlas.graph.binding import bind
from atlas.resolution import config
from atlas.spec.library import Library
from atlas.verification.naming import declared_names
from atlas.verification.share_joining import join
from tests.verify.checkpoints import PARAMS, T, Tensors, meta, save, share
from tests.verify.conftest import Check

WHOLE = meta()
HALF = share(WHOLE, 2)


def checkpoint(folder: Path, *files: Tensors, params: dict[str, Any] = PARAMS) -> Path:
    held = {f"consolidated.{i:02d}.safetensors": tensors for i, tensors in enumerate(files)}
    return save(folder, held, config=None, params=params)


def of(tensors: Tensors, dtype: str) -> Tensors:
    return {name: T(tensor.shape, dtype) for name, tensor in tensors.items()}


@pytest.fixture
def only(tmp_path: Path, check: Check) -> Any:
    """The one finding on a checkpoint of these files."""

    def checked(*files: Tensors, **options: Any) -> Finding:
        [finding] = check(checkpoint(tmp_path, *files), **options).findings
        assert (finding.severity, finding.exit_code) == ("error", 1)
        return finding

    return checked


@pytest.mark.parametrize("odd", [0, 1])
@pytest.mark.parametrize("dtype", ["F32", "F16", "U8"])
def test_a_file_of_another_dtype(only: Any, dtype: str, odd: int) -> None:
    files = [share(WHOLE, 4)] * 4
    files[odd] = of(files[0], dtype)
    finding = only(*files)
    assert (finding.code, finding.file, finding.count) == ("dtype", f"consolidated.0{odd}.safetensors", 30)
    assert f"90 shares in BF16, 30 in {dtype}, namely all tensors in {finding.file}" in finding.message


def test_of_two_files_the_second_is_the_odd_one(only: Any) -> None:
    finding = only(HALF, of(HALF, "F32"))
    assert (finding.code, finding.file) == ("dtype", "consolidated.01.safetensors")


def test_a_file_of_another_dtype_than_is_stated(tmp_path: Path, check: Check) -> None:
    """The description that --model names states BF16; of a file in F32 that is one finding, beside those on the shapes."""
    folder = checkpoint(tmp_path, HALF, of(HALF, "F32"))
    findings = check(folder, model="llama3.1-8b").findings
    [finding] = [finding for finding in findings if finding.code == "dtype"]
    assert (finding.file, finding.expected, finding.found) == ("consolidated.01.safetensors", "BF16", "F32")
    assert "are F32 in consolidated.01.safetensors, and llama3.1-8b states BF16" in finding.message


# ---- shares that are none; 23 of 30 tensors are cut, the two embeddings and three layers' seven matrices


def with_shape(tensors: Tensors, name: str, *shape: int) -> Tensors:
    assert name in tensors
    return tensors | {name: T(shape)}


WQ = "layers.1.attention.wq.weight"  # [48, 48]


def test_every_file_holds_the_whole(only: Any) -> None:
    finding = only(WHOLE, WHOLE)
    assert (finding.code, finding.count, finding.expected, finding.found) == (
        "shape",
        23,
        (50, 48),
        (100, 48),
    )
    assert (
        "(23 tensors) in consolidated.00.safetensors and consolidated.01.safetensors; the whole"
        in finding.message
    )
    assert "keep consolidated.00.safetensors alone" in finding.message


def test_every_file_holds_the_whole_and_their_number_divides_no_matrix(only: Any) -> None:
    finding = only(*[WHOLE] * 7)
    assert (finding.code, finding.count, finding.expected, finding.found) == ("shape", 23, None, (100, 48))
    assert "expected a share, found [100, 48]" in finding.message


@pytest.mark.parametrize("odd", [0, 1])
def test_one_file_holds_the_whole(only: Any, odd: int) -> None:
    files = [HALF, HALF]
    files[odd] = WHOLE
    finding = only(*files)
    assert (finding.code, finding.count, finding.file) == ("shape", 23, f"consolidated.0{odd}.safetensors")
    assert f"keep {finding.file} alone" in finding.message


def test_one_matrix_is_whole_in_every_file(only: Any) -> None:
    finding = only(*[with_shape(HALF, WQ, 48, 48)] * 2)
    assert (finding.code, finding.tensor, finding.expected, finding.found) == (
        "shape",
        WQ,
        (24, 48),
        (48, 48),
    )
    assert "alone" not in finding.message


def test_unequal_shares(only: Any) -> None:
    finding = only(with_shape(HALF, WQ, 36, 48), with_shape(HALF, WQ, 12, 48))
    assert (finding.code, finding.tensor, finding.expected, finding.found) == (
        "shape",
        WQ,
        (24, 48),
        (36, 48),
    )
    assert "expected the share [24, 48], found [36, 48] and [12, 48]" in finding.message


@pytest.mark.parametrize(
    ("word", "shape", "how"),
    [("attention.wq", (48, 24), "divided by columns"), ("feed_forward.w2", (24, 128), "divided by rows")],
)
@pytest.mark.parametrize("files", [1, 2])
def test_a_matrix_cut_the_other_way(
    only: Any, word: str, shape: tuple[int, ...], how: str, files: int
) -> None:
    name = f"layers.1.{word}.weight"
    wrong = with_shape(HALF, name, *shape)
    finding = only(HALF if files == 1 else wrong, wrong)
    assert (finding.code, finding.tensor, finding.expected) == ("shape", name, HALF[name].shape)
    assert (finding.found, finding.file) == (shape, f"consolidated.0{2 - files}.safetensors")
    assert how in finding.message


def test_an_embedding_cut_two_ways_at_once(only: Any) -> None:
    finding = only(HALF, share(WHOLE, 2, embedding_by_columns=True))
    assert (finding.code, finding.tensor) == ("shape", "tok_embeddings.weight")
    assert (finding.file, finding.expected, finding.found) == (
        "consolidated.01.safetensors",
        (50, 48),
        (100, 24),
    )


def test_a_share_of_other_devices(only: Any) -> None:
    finding = only(HALF, share(WHOLE, 4))
    assert (finding.code, finding.count, finding.file) == ("shape", 23, "consolidated.01.safetensors")
    assert "expected the share [50, 48], found [25, 48]" in finding.message


def test_a_file_of_another_model(only: Any) -> None:
    other = meta(PARAMS | {"dim": 96, "vocab_size": 200}, ffn=256)
    finding = only(HALF, share(other, 2))
    assert (finding.code, finding.count, finding.file) == ("shape", 30, "consolidated.01.safetensors")


def test_where_nothing_says_how_a_matrix_is_cut_its_shape_tells(tmp_path: Path, library: Library) -> None:
    """How it is cut is data; without that, whatever makes the declared shape is right."""
    graph = bind(config.describe(PARAMS, library, id="a", file="params.json"), library)
    meta_names = graph.architecture.conventions["meta"]
    untold = meta_names.model_copy(
        update={
            "tensors": {
                text: entry if isinstance(entry, str) else entry.holds
                for text, entry in meta_names.tensors.items()
            }
        }
    )
    rows = declared_names(graph, "meta").needed
    wrong = with_shape(HALF, WQ, 48, 24)
    folder = checkpoint(tmp_path, wrong, wrong)
    headers = {path.name: read_header(path) for path in folder.glob("*.safetensors")}
    assert join(headers, rows, {}, untold)[WQ].shape == (48, 48)
    assert join(headers, rows, {}, meta_names)[WQ].shape == (96, 24)


# ---- files too many, and files that hold nothing


@pytest.mark.parametrize("left_over", ["a half", "the whole", "another model", "nothing"])
def test_one_file_too_many(only: Any, left_over: str) -> None:
    other = of(meta(PARAMS | {"dim": 96, "n_layers": 5}, ffn=256), "F32")
    third = {"a half": HALF, "the whole": WHOLE, "another model": share(other, 2), "nothing": {}}[left_over]
    finding = only(HALF, HALF, third)
    assert (finding.code, finding.file) == ("unexpected", "consolidated.02.safetensors")
    assert (finding.expected, finding.found) == (2, 3)
    assert "consolidated.02.safetensors is one file too many" in finding.message


def test_the_file_too_many_is_the_one_that_does_not_fit(only: Any) -> None:
    finding = only(HALF, WHOLE, HALF)
    assert (finding.code, finding.file) == ("unexpected", "consolidated.01.safetensors")


@pytest.mark.parametrize(("devices", "empty"), [(2, 0), (2, 1), (4, 1), (4, 3)])
def test_a_file_without_tensors(only: Any, devices: int, empty: int) -> None:
    files = [share(WHOLE, devices)] * devices
    files[empty] = {}
    finding = only(*files)
    assert (finding.code, finding.file, finding.count) == (
        "missing",
        f"consolidated.0{empty}.safetensors",
        30,
    )
    assert "holds no tensors" in finding.message


def test_a_file_with_few_tensors(only: Any) -> None:
    finding = only(HALF, dict(list(HALF.items())[:4]))
    assert (finding.code, finding.file, finding.count) == ("missing", "consolidated.01.safetensors", 26)


def test_an_undeclared_tensor_in_one_file(only: Any) -> None:
    finding = only(HALF, HALF | {"extra.weight": T((3,))})
    assert (finding.code, finding.tensor, finding.file) == (
        "unexpected",
        "extra.weight",
        "consolidated.01.safetensors",
    )
    assert "extra.weight in consolidated.01.safetensors" in finding.message
