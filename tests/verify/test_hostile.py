"""Checkpoints made to harm: paths that are no files, an index of anything, every file of a folder mutated."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atlas.checkpoint import index, local
from atlas.checkpoint.findings import LONGEST_MESSAGE
from atlas.errors import AtlasError, CheckpointError
from atlas.report import console
from atlas.report.plain import dumps
from atlas.spec.library import Library
from atlas.verification import Verification, verify
from tests.checkpoint.test_header_fuzz import CHOICES, EXAMPLES, Choices, fuzz
from tests.deep.files import ones, write
from tests.verify.checkpoints import CONFIG, T, dump, hub, save
from tests.verify.conftest import Check

INDEX = "model.safetensors.index.json"
DOWNLOADS = ".cache/huggingface/download"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "model"
    write(path / "model.safetensors", ones(hub()))
    dump(path / "config.json", CONFIG)
    return path


def put(kind: str, path: Path) -> None:
    """Something at a path that is no file to be read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    match kind:
        case "FIFO":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "circle":
            path.symlink_to(path.name)
        case "device":
            path.symlink_to("/dev/zero")
        case "dangling":
            path.symlink_to("nowhere")


PLACES = [
    "config.json",
    "params.json",
    INDEX,
    "model.safetensors",
    "adapter_config.json",
    "hf_quant_config.json",
    "checklist.chk",
    f"{DOWNLOADS}/model.safetensors.metadata",
]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
@pytest.mark.parametrize("kind", ["FIFO", "folder", "circle", "device", "dangling"])
@pytest.mark.parametrize("place", PLACES)
def test_what_is_no_file_is_named_and_not_waited_for(
    kind: str, place: str, folder: Path, check: Check
) -> None:
    put(kind, folder / place)
    try:
        found = check(folder, deep=True)
    except AtlasError as error:
        assert place == "model.safetensors"
        assert str(folder) in error.message  # noqa: PT017
        return
    messages = " ".join(finding.message for finding in found.findings)
    assert "NoneType" not in messages
    if kind == "FIFO" and place not in ("params.json", "adapter_config.json", "hf_quant_config.json"):
        assert place.rpartition("/")[2] in messages


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_a_fifo_as_the_record_of_a_download_is_a_warning(folder: Path, check: Check) -> None:
    put("FIFO", folder / DOWNLOADS / "model.safetensors.metadata")
    (finding,) = check(folder, deep=True).findings
    assert (finding.code, finding.severity, finding.file) == ("hash", "warning", "model.safetensors")
    assert "found a FIFO" in finding.message


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_a_checklist_that_lists_a_fifo(folder: Path, check: Check) -> None:
    put("FIFO", folder / "tokenizer.model")
    (folder / "checklist.chk").write_text(f"{'0' * 32}  tokenizer.model\n")
    assert check(folder, deep=True).files[0].checked_against is None


def test_a_hash_is_said_to_be_where_it_stands(folder: Path, check: Check) -> None:
    """A text file beside the weights is not the Hub."""
    metadata = folder / DOWNLOADS / "model.safetensors.metadata"
    metadata.parent.mkdir(parents=True)
    metadata.write_text(f"{'c' * 40}\n{'0' * 64}\n1.0\n")
    found = check(folder, deep=True)
    (file,) = found.files
    assert file.checked_against == f"{DOWNLOADS}/model.safetensors.metadata next to the weights"
    assert file.sha256_from == "the data"
    assert "recorded in .cache" in found.findings[0].message
    assert "the Hub" not in dumps(found)


def names_one_file(name: str) -> bytes:
    return json.dumps({"weight_map": dict.fromkeys(hub(), name)}).encode()


@pytest.mark.parametrize(
    "name", ["d/" * 3000 + "x", "a" * 300, "a" * 10**6, ".", "d/.", "model.safetensors/x", "é\x1b[2J", " "]
)
def test_a_name_that_no_file_can_have_is_not_there(name: str, folder: Path, check: Check) -> None:
    (folder / INDEX).write_bytes(names_one_file(name))
    found = check(folder)
    assert [f.code for f in found.findings] == [
        "index"
    ]  # model.safetensors has every tensor: the index is stale
    assert "stale" in found.findings[0].message
    assert all(len(f.message) <= LONGEST_MESSAGE + 100 for f in found.findings)
    assert len(dumps(found)) < 50_000


@pytest.mark.parametrize(
    "name", ["../x", "a/../../x", "/etc/passwd", "..\\x", "c:x", "a\0b", "", "\ud800", "//x", "\\x"]
)
def test_a_name_that_leads_out_is_refused(name: str, folder: Path, check: Check) -> None:
    (folder / INDEX).write_bytes(names_one_file(name))
    (finding,) = [f for f in check(folder).findings if f.code == "index"]
    assert finding.exit_code == 2


def test_two_spellings_of_a_file_are_one(folder: Path, check: Check) -> None:
    names = list(hub())
    places = {name: ("./model.safetensors", "model.safetensors")[i % 2] for i, name in enumerate(names)}
    (folder / INDEX).write_text(json.dumps({"weight_map": places}))
    assert check(folder).findings == ()


def test_an_index_with_more_values_than_any(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "MOST_VALUES", 10)
    index.parse(json.dumps({"weight_map": dict.fromkeys("abcdefghij", "x")}).encode(), INDEX, "x")
    with pytest.raises(CheckpointError, match="more than 10 values"):
        index.parse(json.dumps({"weight_map": dict.fromkeys("abcdefghijkl", "x")}).encode(), INDEX, "x")


def test_many_files_that_are_not_there_are_one_finding(folder: Path, check: Check) -> None:
    places = {f"w{i}": f"{'x' * 40}-{i}.safetensors" for i in range(20_000)}
    (folder / INDEX).write_text(json.dumps({"weight_map": places}))
    found = check(folder)
    assert len(dumps(found)) < 20_000


def test_buffers_of_layers_that_are_not_there_are_unexpected(tmp_path: Path, check: Check) -> None:
    """Three layers are declared; the table of each of them is an old buffer, those of ten thousand more are not."""
    tensors = hub() | {
        f"model.layers.{i}.self_attn.rotary_emb.inv_freq": T((2,), "F32") for i in range(10_003)
    }
    tensors["model.layers.0.evil.rotary_emb.inv_freq"] = T((2,), "F32")
    counts = Counter[str]()
    for finding in check(save(tmp_path / "m", tensors)).findings:
        counts[finding.code] += finding.count
    assert counts == {"buffer": 3, "unexpected": 10_001}


def test_a_shape_that_overflows_is_not_counted(tmp_path: Path, check: Check) -> None:
    header = {"a": {"dtype": "U8", "shape": [2**40, 2**40], "data_offsets": [0, 4]}}
    raw = json.dumps(header).encode()
    (tmp_path / "model.safetensors").write_bytes(len(raw).to_bytes(8, "little") + raw + bytes(4))
    found = check(tmp_path)
    assert found.findings[0].code in ("config", "offsets")
    assert found.parameters.found == 0


def test_a_long_name_and_a_long_shape_are_cut_in_the_report(tmp_path: Path, check: Check) -> None:
    tensors = hub() | {"n" * 10**6: T((1,) * 10_000)}
    found = check(save(tmp_path / "m", tensors))
    (finding,) = found.findings
    assert finding.code == "unexpected"
    assert len(dumps(found)) < 20_000


JUNK = [
    b"",
    b"{",
    b"[]",
    b"null",
    b"\xff",
    b"\0" * 9,
    b"[" * 5000,
    b'{"a":' * 3000,
    b"1" * 5000,
    b"-0",
    b"NaN",
]
JUNK += [
    b'"\\ud800"',
    b"../",
    b"\x1b[2J",
    b"1e999",
    b'""',
    b"\n",
    b"99999999999999999999999",
    b'{"a":1,"a":2}',
]


def mutated(choices: Choices, data: bytes) -> bytes:
    """A file with something in it changed."""
    for _ in range(1 + choices.below(3)):
        at = choices.below(256) * len(data) // 256
        stop = at + choices.below(64)
        match choices.below(5):
            case 0:
                data = data[:at] + bytes([choices.below(256)]) + data[at + 1 :]
            case 1:
                data = data[:at] + choices.of(JUNK) + data[stop:]
            case 2:
                data = data[:at] + data[at:stop] * 2 + data[stop:]
            case 3:
                data = data[:at]
            case _:
                data = (
                    choices.of(JUNK) + data[: choices.below(256)]
                    if choices.below(4) == 0
                    else data[at:] + data[:at]
                )
    return data


def require_plain(found: Verification) -> None:
    text = dumps(found)
    json.loads(text)
    assert len(text) < 200_000
    for finding in found.findings:
        assert "NoneType" not in finding.message
        said = console.printable(finding.message)
        assert not any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 for c in said)


def test_a_folder_with_every_file_mutated(tmp_path: Path, library: Library) -> None:
    """Nothing but an answer or an AtlasError."""
    good = tmp_path / "good"
    tensors = ones(hub({**CONFIG, "num_hidden_layers": 1}))
    some = dict(list(tensors.items())[:4])
    write(good / "a.safetensors", some)
    write(good / "b.safetensors", {name: it for name, it in tensors.items() if name not in some})
    places = {name: "a.safetensors" if name in some else "b.safetensors" for name in tensors}
    dump(good / INDEX, {"metadata": {"total_size": 1}, "weight_map": places})
    dump(good / "config.json", {**CONFIG, "num_hidden_layers": 1})
    (good / "checklist.chk").write_text(f"{'0' * 32}  a.safetensors\n{'1' * 64} *./b.safetensors\n")
    (good / DOWNLOADS).mkdir(parents=True)
    (good / DOWNLOADS / "a.safetensors.metadata").write_text(f"{'c' * 40}\n{'0' * 64}\n1.0\n")
    dump(good / "adapter_config.json", {"peft_type": "LORA", "base_model_name_or_path": "x"})
    files = {path.relative_to(good): path.read_bytes() for path in sorted(good.rglob("*")) if path.is_file()}
    place = tmp_path / "m"
    shutil.copytree(good, place)
    seen: set[Any] = set()

    # Fewer, since each opens a dozen files and starts threads.
    @settings(fuzz, max_examples=max(EXAMPLES // 10, 1))
    @given(st.binary(min_size=CHOICES, max_size=CHOICES))
    def run(raw: bytes) -> None:
        choices = Choices(raw)
        changed = {choices.of(list(files)) for _ in range(1 + choices.below(3))}
        for name in changed:
            (place / name).write_bytes(mutated(choices, files[name]))
        try:
            store, only = local.at(place)
            found = verify(store, library, only=only, deep=choices.below(2) == 0)
            require_plain(found)
            seen.add(found.verdict)
        except AtlasError as error:
            assert error.message  # noqa: PT017
        finally:
            for name in changed:
                (place / name).write_bytes(files[name])

    run()
    if EXAMPLES >= 2000:
        assert seen == {"verified", "differs", "unreadable"}


def test_an_index_of_anything(tmp_path: Path) -> None:
    good = json.dumps(
        {"metadata": {"total_size": 1}, "weight_map": {"a": "x.safetensors", "b": "./y"}}
    ).encode()

    @fuzz
    @given(st.binary(min_size=CHOICES, max_size=CHOICES))
    def run(raw: bytes) -> None:
        data = mutated(Choices(raw), good)
        try:
            found = index.parse(data, INDEX, "x")
        except CheckpointError as error:
            assert len(error.message) < 1000  # noqa: PT017
            assert "NoneType" not in error.message  # noqa: PT017
            return
        for file in found.files():
            assert ".." not in file.split("/")
            assert not file.startswith("/")
            assert "\0" not in file

    run()
