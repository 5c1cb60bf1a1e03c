"""What is no checkpoint is refused in one sentence that says what to do; an index that leads elsewhere is not followed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from atlas.checkpoint import index
from atlas.errors import AtlasError, CheckpointError, NotDescribed, UnknownModel
from tests.verify.checkpoints import CONFIG, T, dump, hub, save, shards
from tests.verify.checkpoints import index as listed
from tests.verify.conftest import Check

EMPTY: dict[str, bytes] = {}
NOT_CHECKPOINTS = {
    "nothing at all": (EMPTY, ("there are no weights", "holds no files")),
    "other files": ({"README.md": b"", "config.json": b"{}"}, ("there are no weights", "README.md")),
    "Meta's pickles": (
        {"consolidated.00.pth": b"", "params.json": b"{}"},
        (
            "consolidated.00.pth",
            "pickles",
            "not read",
            "convert_llama_weights_to_hf.py",
            "safetensors on the Hub",
        ),
    ),
    "the Hub's pickles": (
        {f"pytorch_model-0000{i}-of-00004.bin": b"" for i in range(1, 5)},
        ("pytorch_model-00001-of-00004.bin", "1 more", "pickles", "save_pretrained"),
    ),
    "a GGUF file": ({"model.Q4_K_M.gguf": b"GGUF"}, ("model.Q4_K_M.gguf", "llama.cpp", "converted from")),
    "another format": ({"tf_model.h5": b""}, ("tf_model.h5", "not read")),
}


@pytest.mark.parametrize(("files", "words"), NOT_CHECKPOINTS.values(), ids=NOT_CHECKPOINTS.keys())
def test_a_folder_without_weights(
    files: dict[str, bytes], words: tuple[str, ...], tmp_path: Path, check: Check
) -> None:
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    with pytest.raises(CheckpointError) as caught:
        check(tmp_path)
    said = f"{caught.value.message}; {caught.value.hint}"
    assert said.startswith(str(tmp_path))
    assert "\n" not in said
    for word in words:
        assert word in said


PATHS = {
    "no such path": ("nowhere", "no such file or folder"),
    "the configuration": ("config.json", "is a configuration, not weights"),
    "a pickle": ("pytorch_model.bin", "pickles"),
    "another JSON file": ("tokenizer.json", "needs a weight_map"),
    "a link that leads nowhere": ("link", "a broken link"),
    "the root of a cached repository": ("models--tiny--ok", "snapshots/"),
}


@pytest.mark.parametrize(("name", "words"), PATHS.values(), ids=PATHS.keys())
def test_a_path_that_is_no_checkpoint(name: str, words: str, tmp_path: Path, check: Check) -> None:
    for file in ("config.json", "tokenizer.json", "pytorch_model.bin"):
        (tmp_path / file).write_text("{}")
    (tmp_path / "link").symlink_to("gone")
    (tmp_path / "models--tiny--ok" / "snapshots").mkdir(parents=True)
    with pytest.raises(AtlasError) as caught:
        check(tmp_path / name)
    assert caught.value.exit_code == 2
    assert words in f"{caught.value.message}; {caught.value.hint}"


def test_a_nul_in_a_path(check: Check) -> None:
    with pytest.raises(CheckpointError, match="no such file or folder"):
        check(Path("a\0b"))


def test_an_index_of_pickles_is_refused_as_pickles(tmp_path: Path, check: Check) -> None:
    path = tmp_path / "pytorch_model.bin.index.json"
    dump(path, {"weight_map": dict.fromkeys(hub(), "pytorch_model-00001-of-00001.bin")})
    with pytest.raises(CheckpointError, match="pickles"):
        check(path)


ESCAPES = [
    "../model.safetensors",
    "..",
    "/etc/model.safetensors",
    "a/../../b.safetensors",
    "..\\model.safetensors",
    "\\\\host\\share\\model.safetensors",
    "C:\\model.safetensors",
    "C:model.safetensors",
    "",
    "a\0b.safetensors",
    None,
    7,
    ["model.safetensors"],
]


@pytest.mark.parametrize("file", ESCAPES, ids=repr)
def test_an_index_that_leads_out_of_its_folder(file: object, tmp_path: Path, check: Check) -> None:
    folder = save(tmp_path / "c", shards(hub(), 2), listed={"weight_map": {"model.norm.weight": file}})
    (tmp_path / "model.safetensors").write_bytes(b"")
    result = check(folder)
    assert [(finding.code, finding.exit_code) for finding in result.findings] == [("index", 2)]
    assert "expected a name inside its folder" in result.findings[0].message


BAD_INDEXES = {
    b"": "empty",
    b" \n": "empty",
    b"\xff\xfe": "not UTF-8",
    b"version https://git-lfs.github.com/spec/v1\n": "Git LFS pointer",
    b"<!doctype html>": "not JSON",
    b"null": "None",
    b"[1]": "[1]",
    b'"text"': "'text'",
    b"{}": "it is absent",
    b'{"weight_map": null}': "it is absent",
    b'{"weight_map": []}': "found []",
    b'{"weight_map": {}}': "found {}",
    b'{"weight_map": {"a": "x", "a": "y"}}': "'a' twice",
    b'{"weight_map": {"\\ud800": "x"}}': "surrogate",
    b'{"weight_map": {"a": "x"}} {"weight_map": {"a": "x"}}': "two JSON documents in a row",
    b'{"weight_map": {"a": "x"}} and more': "text after the JSON",
    b"[" * 100_000: "not JSON",
    b'{"weight_map": ' + b"9" * 10_000 + b"}": "not JSON",
}


@pytest.mark.parametrize(("data", "words"), BAD_INDEXES.items(), ids=range(len(BAD_INDEXES)))
def test_what_is_no_index_is_said_to_be(data: bytes, words: str) -> None:
    with pytest.raises(CheckpointError) as caught:
        index.parse(data, "i.json", "folder/i.json")
    assert caught.value.code == "index"
    assert caught.value.message.startswith("folder/i.json")
    assert len(caught.value.message) < 300
    assert words in caught.value.message


def test_an_index_may_begin_with_a_byte_order_mark() -> None:
    parsed = index.parse(b'\xef\xbb\xbf{"weight_map": {"a": "x.safetensors"}}', "i", "i")
    assert (parsed.files(), parsed.total_size) == (("x.safetensors",), None)


def test_a_published_index_with_two_documents(shared: Path) -> None:
    with pytest.raises(CheckpointError, match="two JSON documents in a row"):
        index.parse((shared / "real" / "bloom" / "index.json").read_bytes(), "index.json", "bloom")
    with pytest.raises(CheckpointError, match="Git LFS pointer"):
        index.parse(
            (shared / "real" / "codellama-34b-codefuse" / "index.json").read_bytes(),
            "index.json",
            "codellama",
        )


def test_an_index_that_cannot_be_read_and_no_weights(tmp_path: Path, check: Check) -> None:
    (tmp_path / "model.safetensors.index.json").write_text("[]")
    with pytest.raises(CheckpointError, match="the index is"):
        check(tmp_path)


def test_a_quantised_checkpoint_is_not_described(tmp_path: Path, check: Check) -> None:
    folder = save(tmp_path / "c", hub(), config=CONFIG | {"quantization_config": {"bits": 4}})
    result = check(folder)
    [finding] = result.findings
    assert (result.verdict, finding.code, finding.exit_code) == ("not described", "quantisation", 2)
    assert "stored quantised (quantization_config), which is not described" in finding.message
    with pytest.raises(NotDescribed, match="atlas verify"):
        check(folder, model=str(folder))


def test_a_model_nobody_knows(tmp_path: Path, check: Check) -> None:
    with pytest.raises(UnknownModel, match="llama9"):
        check(save(tmp_path / "c", hub()), model="llama9")


def test_an_adapter_by_its_tensors_alone(tmp_path: Path, check: Check) -> None:
    low_rank = {
        f"base_model.model.model.layers.{i}.q_proj.lora_{x}.weight": T((4, 4)) for i in range(3) for x in "AB"
    }
    finding = check(save(tmp_path / "c", low_rank)).findings[0]
    assert (finding.code, finding.exit_code) == ("adapter", 2)
    assert "for a base model that it does not name" in finding.message


def test_another_kind_of_adapter_is_called_what_it_is(tmp_path: Path, check: Check) -> None:
    folder = save(tmp_path / "c", {"adapter_model.safetensors": {"a": T((3,))}}, config=None)
    dump(folder / "adapter_config.json", {"peft_type": "IA3", "base_model_name_or_path": "tiny/base"})
    assert (
        "this is an adapter (IA3) for tiny/base, not a full model"
        in check(folder / "adapter_model.safetensors").findings[0].message
    )


def test_an_adapter_beside_a_whole_model_is_a_stray(tmp_path: Path, check: Check) -> None:
    folder = save(tmp_path / "c", {"model.safetensors": hub(), "adapter_model.safetensors": {"a": T((3,))}})
    assert [finding.code for finding in check(folder).findings] == ["stray"]


def test_an_index_is_never_followed_to_a_file_it_does_not_name(tmp_path: Path, check: Check) -> None:
    """What lies beside is noted in one line, whatever it is."""
    files = shards(hub(), 2)
    folder = save(tmp_path / "c", files, listed=json.loads(json.dumps(listed(files))))
    for name in ("pytorch_model.bin", "model.fp16.safetensors", "consolidated.00.pth", "model.gguf"):
        (folder / name).write_bytes(b"12345")
    result = check(folder)
    assert [(finding.code, finding.count) for finding in result.findings] == [("stray", 4)]
    assert "20 bytes, not counted" in result.findings[0].message
