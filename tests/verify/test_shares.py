"""Meta's model-parallel files that are no shares of one checkpoint: each cause is one finding, and names the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from atlas.checkpoint.findings import Finding
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
    assert f"90 shares in BF16, 30 in {dtype}, namely all that is in {finding.file}" in finding.message


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
