"""Norms that each of Meta's model-parallel files holds whole: equal, or the files are not of one checkpoint."""

from __future__ import annotations

import json
from pathlib import Path

from tests.deep.files import Stored, ones, write
from tests.verify.checkpoints import PARAMS, meta, share
from tests.verify.conftest import Check, check

__all__ = ["check"]


def checkpoint(folder: Path, changed: dict[str, int]) -> None:
    """Two devices' shares; in the second these norms have a two in place of a one, at this position."""
    tensors = ones(share(meta(), 2))
    write(folder / "consolidated.00.safetensors", tensors)
    for name, at in changed.items():
        dtype, shape, data = tensors[name]
        tensors[name] = Stored(dtype, shape, data[: 2 * at] + b"\x00\x40" + data[2 * at + 2 :])
    write(folder / "consolidated.01.safetensors", tensors)
    (folder / "params.json").write_text(json.dumps(PARAMS))


def test_equal_norms(tmp_path: Path, check: Check) -> None:
    checkpoint(tmp_path, {})
    assert check(tmp_path, deep=True).findings == ()


def test_norms_of_another_checkpoint_are_one_finding(tmp_path: Path, check: Check) -> None:
    names = ["layers.0.attention_norm.weight", "layers.1.attention_norm.weight", "norm.weight"]
    checkpoint(tmp_path, dict.fromkeys(names, 7))
    assert check(tmp_path).findings == ()  # no header tells
    [finding] = check(tmp_path, deep=True).findings
    assert (finding.code, finding.exit_code, finding.file, finding.count) == (
        "duplicate",
        1,
        "consolidated.01.safetensors",
        3,
    )
    assert "layers.*.attention_norm.weight and norm.weight (3 tensors)" in finding.message
    assert "1 of 48 in layers.0.attention_norm.weight differ, the first at [7]" in finding.message


def test_a_share_of_a_matrix_has_its_own_values(tmp_path: Path, check: Check) -> None:
    checkpoint(tmp_path, {"layers.0.attention.wq.weight": 3})
    assert check(tmp_path, deep=True).findings == ()
