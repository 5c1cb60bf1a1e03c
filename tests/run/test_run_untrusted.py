"""A stranger's tokenizer and weight files: whatever they do, the answer is an error with an address."""
# ruff: noqa: E402  what needs torch is imported after the question whether it is there

from __future__ import annotations

import _thread
import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip(
    "torch", reason="`atlas run` needs the extra: pip install 'open-model-atlas[run]'"
)
pytest.importorskip("tokenizers")

from atlas.errors import AtlasError, CheckpointError, ConfigError, RunError
from atlas.execution import limits, memory_map, special_tokens, tokenizer, tokenizer_process
from atlas.execution.interrupt import Check, StoppedError, interruptible
from atlas.execution.options import Options
from atlas.execution.prompt import Prompt, PromptReader
from atlas.execution.tensor_reader import LazyRows
from atlas.execution.tokenizer_worker import Served
from atlas.execution.weight_files import Piece, find_pieces
from atlas.spec.library import Library

posix = pytest.mark.skipif(os.name != "posix", reason="signals and FIFOs are POSIX")


def words(**changes: Any) -> dict[str, Any]:
    """A tokenizer.json of two words."""
    model = {"type": "WordLevel", "vocab": {"hi": 5, "[UNK]": 6}, "unk_token": "[UNK]"}
    found = dict.fromkeys(("truncation", "padding", "normalizer", "post_processor", "decoder"))
    split = {"type": "Whitespace"}
    return {"version": "1.0", "added_tokens": [], "pre_tokenizer": split, "model": model, **found, **changes}


def replace(text: str, by: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"String": text}, "content": by}


# Each step makes a text ten times as long: 10**12 bytes after twelve.
GROWS = {"type": "Sequence", "normalizers": [replace("h", "hhhhhhhhhh")] * 12}
# The library never ends on this pair of added tokens.
ENDLESS = {
    "pre_tokenizer": None,
    "added_tokens": [
        {"id": 5, "content": c, "single_word": False, "lstrip": False, "rstrip": False, "normalized": True}
        | {"special": False}
        for c in ("hi", "\0")
    ],
    "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True}
    | {"strip_accents": None, "lowercase": True},
}


@pytest.fixture
def reading(tmp_path: Path) -> Callable[..., Prompt]:
    """A prompt by the tokenizer of two words with changes; the configuration says that BOS is 1."""
    (tmp_path / "config.json").write_text('{"bos_token_id": 1}')

    def make(text: str = "hi", **changes: Any) -> Prompt:
        (tmp_path / "tokenizer.json").write_text(json.dumps(words(**changes)))
        return PromptReader(Options(prompt=text, weights=tmp_path)).read(text, 64)

    return make


# ---- the tokenizers library


def test_a_panic_is_an_error_and_says_nothing_else(
    reading: Callable[..., Prompt], capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(CheckpointError, match=r"tokenizer\.json cannot be used as a tokenizer: "):
        reading(normalizer={"type": "Precompiled", "precompiled_charsmap": "x"})
    assert capfd.readouterr() == ("", "")


def test_a_word_that_is_not_in_the_vocabulary_is_an_error(reading: Callable[..., Prompt]) -> None:
    model = {"type": "WordLevel", "vocab": {"zz": 1}, "unk_token": "[UNK]"}
    with pytest.raises(CheckpointError, match="UNK"):
        reading(model=model)


@pytest.mark.skipif(not os.path.exists("/proc"), reason="only Linux limits the address space for certain")
def test_a_text_that_grows_without_end_is_out_of_memory(
    reading: Callable[..., Prompt], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tokenizer_process._WORKER.read_text()
    smaller = program.replace("BASE_MEMORY_BYTES = 4 * 2**30", "BASE_MEMORY_BYTES = 2**28")
    assert smaller != program
    copy = reading().tokenizer
    assert copy is not None
    folder = copy._path.parent
    (folder / "worker.py").write_text(smaller)
    monkeypatch.setattr(tokenizer_process, "_WORKER", folder / "worker.py")
    with pytest.raises(CheckpointError, match="cannot be used as a tokenizer: out of memory"):
        reading(normalizer=GROWS)


def test_a_template_that_makes_a_long_prompt_of_a_short_one_is_refused(
    reading: Callable[..., Prompt],
) -> None:
    def template(times: int) -> dict[str, Any]:
        word = {"id": "x", "ids": [2] * times, "tokens": ["x"] * times}
        single = [{"SpecialToken": {"id": "x", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
        return {"type": "TemplateProcessing", "single": single, "pair": [], "special_tokens": {"x": word}}

    assert reading(post_processor=template(4000)).ids[-1] == 5
    # 4,096 added ids and 16 for each of the prompt's 2 bytes make 4,128.
    with pytest.raises(CheckpointError, match=r"makes 10,001 tokens of a prompt of 2 bytes, .* 4,128"):
        reading(post_processor=template(10_000))
    # 10,000 ids of the template and 9,000 words.
    assert len(reading("hi " * 9_000, post_processor=template(10_000)).ids) == 19_000


def test_ids_beyond_the_limit_are_counted_and_not_sent() -> None:
    served = Served(json.dumps(words()).encode())
    assert served.encode("hi hi hi", most=3) == {"count": 3, "ids": [5, 5, 5], "added": []}
    assert served.encode("hi hi hi", most=2) == {"count": 3, "ids": [], "added": []}


def test_no_answer_is_an_error(reading: Callable[..., Prompt], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer_process, "SECONDS", 1.0)
    with pytest.raises(CheckpointError, match="no answer within 1 seconds"):
        reading("hhhhhhhh", **ENDLESS)


@posix
def test_ctrl_c_is_heard_while_the_library_hangs(tmp_path: Path, reading: Callable[..., Prompt]) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps(words(**ENDLESS)))
    reader = PromptReader(Options(prompt="hhhhhhhh", weights=tmp_path))
    assert reader._tokenizer is not None
    process = reader._tokenizer._process._process
    threading.Timer(0.5, lambda: os.kill(os.getpid(), 2)).start()
    with pytest.raises(KeyboardInterrupt):
        reader.read("hhhhhhhh", 64)
    assert process.poll() is not None


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        (
            {
                "padding": {"strategy": {"Fixed": 8}, "direction": "Right", "pad_to_multiple_of": None}
                | {"pad_id": 0, "pad_type_id": 0, "pad_token": "x"}
            },
            "tokenizer.json has padding to 8 tokens saved, which was not applied",
        ),
        (
            {"truncation": {"max_length": 1, "strategy": "LongestFirst", "stride": 0, "direction": "Right"}},
            "tokenizer.json has truncation to 1 tokens saved, which was not applied",
        ),
    ],
)
def test_padding_and_truncation_are_not_applied(
    reading: Callable[..., Prompt], changes: dict[str, Any], note: str
) -> None:
    found = reading("hi hi", **changes)
    assert found.ids == (5, 5)
    assert [text for text in found.notes if text.endswith(note)] == list(found.notes) != []


def test_closing_ends_the_process(reading: Callable[..., Prompt]) -> None:
    found = reading().tokenizer
    assert found is not None
    process = found._process._process
    assert process.poll() is None
    found.close()
    assert process.poll() is not None


# ---- what lies beside the weights


@pytest.mark.parametrize("value", [True, [1], 1.5, -1, "1", {}])
def test_a_bos_that_is_no_id_is_an_error(tmp_path: Path, value: object) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"bos_token_id": value}))
    with pytest.raises(ConfigError, match=r"config\.json: bos_token_id is .*, expected a token id"):
        PromptReader(Options(weights=tmp_path)).read("", 64)


@pytest.mark.parametrize("value", [True, [1, True], [[1]], 1.5, -1])
def test_an_eos_that_is_no_id_is_an_error(tmp_path: Path, value: object) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"eos_token_id": value}))
    with pytest.raises(ConfigError, match=r"config\.json: eos_token_id is .*, expected a token id or a list"):
        PromptReader(Options(token_ids=(1,), weights=tmp_path)).read("", 64)


def test_half_a_character_is_no_token(tmp_path: Path, reading: Callable[..., Prompt]) -> None:
    (tmp_path / "tokenizer_config.json").write_text('{"bos_token": "\\ud800"}')
    with pytest.raises(ConfigError, match=r'bos_token is "\\ud800": half of a surrogate pair'):
        reading()


@posix
@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json", "generation_config.json"])
def test_a_fifo_is_refused(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(AtlasError, match="expected a regular file, found a FIFO"):
        PromptReader(Options(weights=tmp_path, token_ids=(1,)))


def test_files_are_read_within_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(special_tokens, "MOST_BYTES", 100)
    monkeypatch.setattr(tokenizer, "MOST_BYTES", 100)
    for name in ("tokenizer_config.json", "tokenizer.json"):
        (tmp_path / name).write_text("{" + " " * 100 + "}")
        with pytest.raises(AtlasError, match=f"{name}: larger than 100 bytes"):
            PromptReader(Options(weights=tmp_path, token_ids=(1,)))
        (tmp_path / name).unlink()


# ---- weights that change while they are read


@pytest.fixture
def piece(tmp_path: Path) -> Piece:
    """A tensor of a million numbers, 0, 1, 2, …, in a file."""
    from safetensors.torch import save_file

    save_file({"w": torch.arange(2**20, dtype=torch.float32).view(1024, 1024)}, tmp_path / "w.safetensors")
    return find_pieces(tmp_path / "w.safetensors")["w"][0]


def as_tensor(piece: Piece) -> Any:
    return torch.from_numpy(memory_map.view(piece)).view(torch.float32)


def test_a_mapped_piece_is_the_tensor(piece: Piece) -> None:
    total = interruptible(lambda check: float(as_tensor(piece).double().sum()))
    assert total == 2**20 * (2**20 - 1) / 2
    memory_map.require_unchanged()
    rows = LazyRows(piece, torch.device("cpu"), torch.float32)[torch.tensor([[3, 1023], [3, 0]])]
    assert rows[..., 0].tolist() == [[3 * 1024.0, 1023 * 1024.0], [3 * 1024.0, 0.0]]
    with pytest.raises(IndexError):
        LazyRows(piece, torch.device("cpu"), torch.float32)[torch.tensor([1024])]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="an open file can be cut short on POSIX only")
def test_pages_that_are_lost_while_torch_reads_them_are_an_error(piece: Piece) -> None:
    kept = []

    def work(check: Check) -> None:
        tensor = as_tensor(piece)
        kept.append(tensor)
        os.truncate(piece.file.path, 9000)
        tensor.sum()  # SIGBUS ends the process here, unless it is survived
        memory_map.require_unchanged()

    with pytest.raises(CheckpointError, match="was truncated while the model ran") as error:
        interruptible(work)
    assert error.value.code == "truncated"
    memory_map.require_unchanged()  # the error keeps the lost pages; the next run does not fail of them


@pytest.mark.parametrize("change", ["grow", "replace", "write"])
def test_a_file_that_is_another_by_now_is_refused(piece: Piece, change: str) -> None:
    path = piece.file.path
    data = path.read_bytes()

    def work(check: Check) -> None:
        tensor = as_tensor(piece)
        if change == "replace":
            path.unlink()
            path.with_suffix(".other").write_bytes(data)
            os.replace(path.with_suffix(".other"), path)
        else:
            path.write_bytes(data + b"\0" if change == "grow" else data)
            os.utime(path, ns=(0, piece.file.modified_ns + 10**9))
        tensor.sum()
        memory_map.require_unchanged()

    with pytest.raises(CheckpointError, match=r"was modified or replaced|was truncated"):
        interruptible(work)
    with pytest.raises(CheckpointError, match="was modified or replaced"):
        piece.file.read(0, memoryview(bytearray(8)))


# ---- Ctrl-C and what no machine runs


def test_ctrl_c_does_not_wait_for_the_work() -> None:
    ended = threading.Event()
    go_on = threading.Event()

    def work(check: Check) -> None:
        try:
            _thread.interrupt_main()
            go_on.wait(20)  # as in a kernel that does not return
            check()
        except StoppedError:
            ended.set()

    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        interruptible(work)
    assert time.monotonic() - begun < 15
    go_on.set()
    assert ended.wait(20), "the work did not end at its next check"


def test_what_no_machine_runs_is_refused(shrink: Callable[..., Any], library: Library) -> None:
    from dataclasses import replace as changed

    graph = shrink("llama")
    limits.require_possible(graph, 2**20, 4)
    with pytest.raises(RunError, match="more than fit into this machine's memory") as error:
        limits.require_possible(graph, 2**10, 4)
    assert error.value.code == "out_of_memory"
    deep = [changed(part, count=10**9) if hasattr(part, "slots") else part for part in graph.parts]
    with pytest.raises(ConfigError, match=r"1,000,000,000 layers, expected at most 10,000"):
        limits.require_possible(changed(graph, parts=tuple(deep)), None, 4)
