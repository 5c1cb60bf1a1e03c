"""Causes that would else be told many times, or not at all, and files by themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.verify.checkpoints import CONFIG, T, Tensors, dump, hub, save, shards
from tests.verify.conftest import Check


def quantised() -> Tensors:
    """Matrices in the layers as GPTQ stores them."""
    tensors: Tensors = {}
    for name, tensor in hub().items():
        if name.endswith("proj.weight"):
            rows, columns = tensor.shape
            module = name.removesuffix("weight")
            tensors[f"{module}qweight"] = T((columns // 8, rows), "F32")
            tensors[f"{module}scales"] = T((1, rows), "F16")
            tensors[f"{module}g_idx"] = T((columns,), "F32")
        else:
            tensors[name] = tensor
    return tensors


def test_quantised_weights_without_a_word_of_it(tmp_path: Path, check: Check) -> None:
    result = check(save(tmp_path / "c", quantised(), config=CONFIG))
    [finding] = [found for found in result.findings if found.code != "dtype"]
    assert (finding.code, finding.exit_code, finding.count) == ("quantisation", 1, 3 * 7 * 3)
    assert "stored quantised" in finding.message
    assert "config.json does not declare a quantisation" in finding.message


def test_many_kinds_of_unexpected_or_missing_names_are_one_finding_each(tmp_path: Path, check: Check) -> None:
    tensors = {name: tensor for name, tensor in hub().items() if "proj" not in name}
    tensors |= {f"odd{chr(97 + i)}.w{chr(97 + j)}": T((2,)) for i in range(7) for j in range(5)}
    findings = check(save(tmp_path / "c", tensors, config=CONFIG)).findings
    assert [(found.code, found.count) for found in findings] == [("missing", 3 * 7), ("unexpected", 35)]


def test_a_shard_of_several_without_an_index(tmp_path: Path, check: Check) -> None:
    files = shards(hub(), 3)
    folder = save(tmp_path / "c", files, config=CONFIG)
    name = "model-00002-of-00003.safetensors"
    result = check(folder / name)
    [note] = result.findings
    assert (note.code, note.severity, result.exit_code) == ("index", "note", 0)
    assert "one of 3 by its name" in note.message
    assert result.tensors.expected == result.tensors.found == len(files[name])


def test_absent_files_are_told_also_where_no_model_is_known(tmp_path: Path, check: Check) -> None:
    files = shards(hub(), 3)
    folder = save(tmp_path / "c", files, config=CONFIG, listed=True)
    (folder / "config.json").unlink()
    (folder / "model-00001-of-00003.safetensors").unlink()
    found = {finding.code: finding for finding in check(folder).findings}
    assert set(found) == {"config", "missing"}
    count = len(files["model-00001-of-00003.safetensors"])
    assert found["missing"].count == count
    assert f"is not there: the index lists {count} tensors in it" in found["missing"].message


@pytest.mark.parametrize("name", ["", "x" * 100_000])
def test_a_name_that_is_empty_or_endless(name: str, tmp_path: Path, check: Check) -> None:
    [finding] = check(save(tmp_path / "c", hub() | {name: T((1,))}, config=CONFIG)).findings
    assert finding.code == "unexpected"
    assert finding.message.startswith(('""', "''", "'x", '"x'))
    assert len(finding.message) < 400


@pytest.mark.parametrize("where", ["sub/", "./", "a/b/", "sub/../"])
def test_an_index_may_name_files_in_folders_below(where: str, tmp_path: Path, check: Check) -> None:
    """As transformers reads it; what else lies in folders below is nobody's."""
    files = shards(hub(), 2)
    folder = save(tmp_path / "c", files, config=CONFIG, listed=True)
    inside = where not in {"./", "sub/../"}
    for name in files:
        target = folder / (where if inside else "") / name
        target.parent.mkdir(parents=True, exist_ok=True)
        (folder / name).rename(target)
    (folder / "original").mkdir()
    (folder / "original" / "model.safetensors").write_bytes(b"")
    places = {name: where + file for file, held in files.items() for name in held}
    dump(folder / "model.safetensors.index.json", {"weight_map": places})
    if ".." in where:
        assert [found.code for found in check(folder).findings][:1] == ["index"]
        return
    assert check(folder).findings == ()
    next(iter((folder / (where if inside else "")).glob("*.safetensors"))).unlink()
    [finding] = check(folder).findings
    assert (finding.code, finding.exit_code) == ("missing", 1)


def test_every_second_layer_is_missing_in_one_finding(tmp_path: Path, check: Check) -> None:
    config = CONFIG | {"num_hidden_layers": 12}
    tensors = {
        name: tensor
        for name, tensor in hub(config).items()
        if not any(f"layers.{i}." in name for i in range(0, 12, 2))
    }
    [finding] = check(save(tmp_path / "c", tensors, config=config)).findings
    assert (finding.code, finding.count) == ("missing", 6 * 9)
    assert finding.message.startswith("layers 0, 2, 4, 6, 8 and 10 are missing (54 tensors, ")


def test_many_settings_that_are_not_understood_are_one_finding(tmp_path: Path, check: Check) -> None:
    for count in (5, 6):
        config = CONFIG | {f"odd{i}": i for i in range(count)}
        findings = check(save(tmp_path / f"{count}", hub(), config=config)).findings
        assert [found.count for found in findings] == ([1] * 5 if count == 5 else [6])


def test_a_number_that_no_key_states_is_not_called_stale(tmp_path: Path, check: Check) -> None:
    """Absent, as many key and value heads are meant as heads; the tensors show half as many."""
    config = {key: value for key, value in CONFIG.items() if key != "num_key_value_heads"}
    [finding] = check(save(tmp_path / "c", hub(), config=config)).findings
    assert (finding.code, finding.exit_code) == ("shape", 1)
    assert (
        "config.json does not state num_key_value_heads, which then means 12; add the key" in finding.message
    )
