"""Good checkpoints in every layout people have them: verified, with totals from arithmetic."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.verify.checkpoints import (
    CONFIG,
    PARAMS,
    T,
    dump,
    hub,
    index,
    meta,
    parameters,
    save,
    shards,
    share,
    size,
)
from tests.verify.conftest import Check

# Embedding and head 100 × 48; a layer: two norms of 48, q and o 48 × 48, k and v 24 × 48, three matrices of 80 × 48.
LAYER = 2 * 48 + 2 * 48 * 48 + 2 * 24 * 48 + 3 * 80 * 48
TOTAL = 2 * 100 * 48 + 3 * LAYER + 48
TIED = CONFIG | {"tie_word_embeddings": True}


def test_the_arithmetic_and_the_helper_agree() -> None:
    assert TOTAL == parameters(hub()) == 65_232
    assert size(hub()) == 2 * TOTAL


def test_a_single_file(tmp_path: Path, check: Check) -> None:
    result = check(save(tmp_path / "c", hub()))
    assert (result.verdict, result.exit_code, result.findings) == ("verified", 0, ())
    assert (result.convention, result.model) == ("hf", str(tmp_path / "c" / "config.json"))
    assert (result.tensors.expected, result.tensors.found) == (30, 30)
    assert (result.parameters.expected, result.parameters.found) == (TOTAL, TOTAL)
    assert (result.bytes.expected, result.bytes.found) == (2 * TOTAL, 2 * TOTAL)
    assert (result.source.kind, result.source.location, result.source.revision) == (
        "folder",
        str(tmp_path / "c"),
        None,
    )
    assert result.requests == 0


def test_components_add_up(tmp_path: Path, check: Check) -> None:
    result = check(save(tmp_path / "c", hub()))
    assert {component.id: component.found for component in result.components} == {
        "tok_embeddings": 100 * 48,
        "attention_norm": 3 * 48,
        "attention.wq": 3 * 48 * 48,
        "attention.wk": 3 * 24 * 48,
        "attention.wv": 3 * 24 * 48,
        "attention.wo": 3 * 48 * 48,
        "ffn_norm": 3 * 48,
        "feed_forward.w1": 3 * 80 * 48,
        "feed_forward.w2": 3 * 80 * 48,
        "feed_forward.w3": 3 * 80 * 48,
        "norm": 48,
        "output": 100 * 48,
    }
    assert all(component.difference == 0 for component in result.components)


def test_components_of_a_broken_one_add_up_too(tmp_path: Path, check: Check) -> None:
    """A row more in the head, no norm, and a tensor of 12 that nobody declares."""
    tensors = hub() | {"lm_head.weight": T((101, 48)), "foo.weight": T((3, 4))}
    del tensors["model.norm.weight"]
    result = check(save(tmp_path / "c", tensors))
    differ = {component.id: component.difference for component in result.components if component.difference}
    assert differ == {"norm": -48, "output": 48, "unexpected": 12}
    assert sum(component.found for component in result.components) == result.parameters.found == TOTAL + 12
    assert sum(component.expected for component in result.components) == result.parameters.expected == TOTAL
    assert (result.tensors.expected, result.tensors.found) == (30, 30)
    assert result.bytes.found == 2 * (TOTAL + 12)


@pytest.mark.parametrize("first", [0, 1])
def test_shards_and_their_index(first: int, tmp_path: Path, check: Check) -> None:
    result = check(save(tmp_path / "c", shards(hub(), 4, first), listed=True))
    assert result.findings == ()
    assert result.parameters.found == TOTAL


def test_one_file_for_each_tensor(tmp_path: Path, check: Check) -> None:
    files = {f"{name}.safetensors": {name: tensor} for name, tensor in hub().items()}
    assert check(save(tmp_path / "c", files, listed=True)).findings == ()


def test_an_index_may_say_no_total_size_or_say_it_as_a_float(tmp_path: Path, check: Check) -> None:
    files = shards(hub(), 2)
    for total in (None, float(2 * TOTAL)):
        listed = index(files, total)
        listed["metadata"] = {} if total is None else listed["metadata"]
        assert check(save(tmp_path / f"{total}", files, listed=listed)).findings == ()


def test_a_tied_head_need_not_be_there_and_is_counted_once(tmp_path: Path, check: Check) -> None:
    without = check(save(tmp_path / "without", hub(TIED), config=TIED))
    with_a_copy = check(save(tmp_path / "with", hub(), config=TIED))
    for result in (without, with_a_copy):
        assert result.exit_code == 0
        assert (result.parameters.expected, result.parameters.found) == (TOTAL - 4800, TOTAL - 4800)
        assert (result.tensors.expected, result.tensors.found) == (29, 29)
        assert result.bytes.found == 2 * (TOTAL - 4800)
    assert without.findings == ()


def test_buffers_are_not_counted(tmp_path: Path, check: Check) -> None:
    result = check(
        save(tmp_path / "c", hub() | {"model.layers.0.self_attn.rotary_emb.inv_freq": T((2,), "F32")})
    )
    assert (result.tensors.found, result.parameters.found, result.bytes.found) == (30, TOTAL, 2 * TOTAL)


def test_where_no_dtype_is_stated_any_one_will_do(tmp_path: Path, check: Check) -> None:
    config = {key: value for key, value in CONFIG.items() if key != "torch_dtype"}
    result = check(save(tmp_path / "c", hub(dtype="F32"), config=config))
    assert result.findings == ()
    assert (result.bytes.expected, result.bytes.found) == (4 * TOTAL, 4 * TOTAL)


META_TOTAL = TOTAL + 3 * 3 * (128 - 80) * 48  # Meta's feed-forward is 128 wide


@pytest.mark.parametrize("devices", [1, 2, 4])
@pytest.mark.parametrize("by_columns", [False, True])
def test_metas_folder(devices: int, by_columns: bool, tmp_path: Path, check: Check) -> None:
    """The embedding was cut by columns in Llama 1 and 2, and is by rows since; a norm is whole in every file."""
    files = {f"consolidated.{i:02d}.safetensors": share(meta(), devices, by_columns) for i in range(devices)}
    result = check(save(tmp_path / "c", files, config=None, params=PARAMS))
    assert result.findings == ()
    assert result.convention == "meta"
    assert result.parameters.found == result.parameters.expected == META_TOTAL
    assert result.bytes.found == result.bytes.expected == 2 * META_TOTAL


def test_metas_files_under_the_hubs_name(tmp_path: Path, check: Check) -> None:
    result = check(save(tmp_path / "c", meta(), config=None, params=PARAMS))
    assert (result.findings, result.convention) == ((), "meta")


def test_both_configurations_each_with_its_own_weights(tmp_path: Path, check: Check) -> None:
    theirs = check(save(tmp_path / "hub", hub(), params=PARAMS))
    metas = check(save(tmp_path / "meta", {"consolidated.00.safetensors": meta()}, params=PARAMS))
    assert (theirs.findings, theirs.convention) == ((), "hf")
    assert (metas.findings, metas.convention) == ((), "meta")
    assert metas.model == str(tmp_path / "meta" / "params.json")


def test_a_lone_file_is_held_against_the_configuration_beside_it(tmp_path: Path, check: Check) -> None:
    folder = save(tmp_path / "c", hub())
    result = check(folder / "model.safetensors")
    assert result.findings == ()
    assert result.source.location == str(folder / "model.safetensors")
    assert check(folder / "model.safetensors", model=str(folder)).findings == ()


def test_one_shard_is_held_against_what_the_index_places_in_it(tmp_path: Path, check: Check) -> None:
    files = shards(hub(), 3)
    folder = save(tmp_path / "c", files, listed=True)
    (folder / "model-00001-of-00003.safetensors").unlink()
    name = "model-00002-of-00003.safetensors"
    result = check(folder / name)
    [note] = result.findings
    assert (note.code, note.severity, note.expected, note.found) == ("index", "note", 3, 1)
    assert "names 2 more, which were not read" in note.message
    assert (result.tensors.expected, result.tensors.found) == (10, 10)
    assert result.parameters.found == result.parameters.expected == parameters(files[name])


def test_an_index_by_its_path(tmp_path: Path, check: Check) -> None:
    folder = save(tmp_path / "c", shards(hub(), 3), listed=True)
    other = folder / "other.index.json"
    (folder / "model.safetensors.index.json").rename(other)
    assert check(other).findings == ()


def test_a_snapshot_of_the_hub_cache(tmp_path: Path, check: Check) -> None:
    """Its files are links to blobs; where it lies tells the commit."""
    repository = tmp_path / "models--tiny--ok"
    blobs = save(repository / "blobs", hub())
    snapshot = repository / "snapshots" / ("ab" * 20)
    snapshot.mkdir(parents=True)
    for name in ("model.safetensors", "config.json"):
        (snapshot / name).symlink_to(blobs / name)
    result = check(snapshot)
    assert result.findings == ()
    assert (result.source.kind, result.source.revision) == ("cache", "ab" * 20)


def test_a_catalogued_model_by_its_name(tmp_path: Path, check: Check) -> None:
    """Llama 3.2 1B at its true size, in a hole: 1,235,814,400 numbers, the tied head not stored."""
    config = {
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 16,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "vocab_size": 128_256,
        "tie_word_embeddings": True,
    }
    result = check(save(tmp_path / "c", hub(config), config=None), model="Llama3.2-1B")
    assert result.findings == ()
    assert result.model == "llama3.2-1b"
    assert (result.parameters.found, result.bytes.found) == (1_235_814_400, 2_471_628_800)


def test_files_of_training_are_no_weights(tmp_path: Path, check: Check) -> None:
    folder = save(tmp_path / "c", hub())
    for name in ("training_args.bin", "optimizer.pt", "scheduler.pt", "rng_state_0.pth"):
        (folder / name).write_bytes(b"\x80\x02")
    dump(folder / "trainer_state.json", {})
    assert check(folder).findings == ()
