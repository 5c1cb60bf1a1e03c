"""`atlas run` at the command line: what is on stdout and in which order, the exit codes, and what is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip(
    "torch", reason="`atlas run` needs the extra: pip install 'open-model-atlas[run]'"
)
pytest.importorskip("tokenizers")

IDS = "5,0,67,33,8"
REPOSITORY = Path(__file__).parents[2]


@dataclass(frozen=True)
class Ran:
    code: int
    stdout: str
    stderr: str


Atlas = Callable[..., Ran]


@pytest.fixture
def atlas(tmp_path: Path) -> Atlas:
    """Runs the command line in a process of its own, away from the user's Hub cache."""

    def run(*arguments: str) -> Ran:
        environment = os.environ | {
            "PYTHONPATH": str(REPOSITORY),
            "HF_HOME": str(tmp_path / "hub"),
            "HF_HUB_OFFLINE": "1",
        }
        done = subprocess.run(
            [sys.executable, "-m", "atlas", *arguments],
            env=environment,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def spoken(whole: Path) -> Path:
    """The small model with a tokenizer.json whose token of id n is the word `wn`; it adds BOS, id 0."""
    vocab = {"<s>": 0, **{f"w{i}": i for i in range(1, 68)}}
    bos = {"SpecialToken": {"id": "<s>", "type_id": 0}}
    text = {"Sequence": {"id": "A", "type_id": 0}}
    token = {"id": 0, "content": "<s>", "single_word": False, "lstrip": False, "rstrip": False}
    (whole / "tokenizer.json").write_text(
        json.dumps(
            {
                "version": "1.0",
                "truncation": None,
                "padding": None,
                "added_tokens": [token | {"normalized": False, "special": True}],
                "normalizer": None,
                "pre_tokenizer": {"type": "WhitespaceSplit"},
                "post_processor": {
                    "type": "TemplateProcessing",
                    "single": [bos, text],
                    "pair": [bos, text, text],
                    "special_tokens": {"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}},
                },
                "decoder": None,
                "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "w1"},
            }
        )
    )
    return whole


def test_the_text_is_first_and_with_quiet_alone(atlas: Atlas, spoken: Path) -> None:
    arguments = ["run", str(spoken), "--prompt", "w5 w6", "--max-new-tokens", "4"]
    done = atlas(*arguments)
    generated = json.loads(atlas(*arguments, "--json").stdout)["generated"]
    assert done.code == 0
    lines = done.stdout.splitlines()
    assert generated["text"] == "".join(f" w{id}" for id in generated["ids"])
    assert lines[0] == generated["text"]
    assert lines[1] == ""
    assert lines[2].startswith(str(spoken))
    assert "4 tokens, 3 passes after the prompt's" in lines[-1]
    assert atlas("--quiet", *arguments).stdout == generated["text"] + "\n"
    assert atlas("--quiet", *arguments[:4]).stdout == ""


def test_several_prompts(atlas: Atlas, spoken: Path, tmp_path: Path) -> None:
    arguments = ["run", str(spoken), "--prompt", "w5 w6", "--prompt", "w7", "--max-new-tokens", "2"]
    done = atlas(*arguments, "--json")
    runs = json.loads(done.stdout)["runs"]
    assert [run["prompt_ids"] for run in runs] == [[0, 5, 6], [0, 7]]
    quiet = atlas("-q", *arguments).stdout
    assert quiet == "".join(run["generated"]["text"] + "\n" for run in runs)
    file = tmp_path / "prompt.txt"
    file.write_text("w7")
    for wrong in (["--prompt-file", str(file)], ["--token-ids", "1"]):
        assert "exclude each other" in atlas(*arguments, *wrong).stderr
    alone = atlas("run", str(spoken), "--prompt-file", str(file), "--max-new-tokens", "2", "--json")
    assert json.loads(alone.stdout)["generated"] == runs[1]["generated"]


def test_bos_and_the_prompts_tokens(atlas: Atlas, spoken: Path) -> None:
    arguments = ["run", str(spoken), "--prompt", "w5", "--show-prompt"]
    assert json.loads(atlas(*arguments, "--json").stdout)["prompt_tokens"] == [
        {"id": 0, "text": "<s>"},
        {"id": 5, "text": "w5"},
    ]
    shown = atlas(*arguments).stdout.split("prompt id")[1].splitlines()
    assert [line.split() for line in shown[2:4]] == [["0", "'<s>'"], ["5", "'w5'"]]
    assert json.loads(atlas(*arguments, "--no-bos", "--json").stdout)["prompt_ids"] == [5]
    ids = json.loads(atlas("run", str(spoken), "--token-ids", "5,6", "--json").stdout)
    assert (ids["prompt_ids"], ids["tokenizer"], ids["prompt_tokens"]) == ([5, 6], None, None)


def test_what_was_not_observed_is_named(atlas: Atlas, whole: Path) -> None:
    fused = atlas("run", str(whole), "--token-ids", IDS).stdout
    assert "unobserved attention.scores, attention.scaled, attention.masked, attention.weights," in fused
    assert "of 3 layers: inside the fused attention call; --trace observes them too" in fused
    assert "unobserved" not in atlas("run", str(whole), "--token-ids", IDS, "--trace").stdout


def test_a_nan_is_named_and_is_exit_1(
    atlas: Atlas, store: Callable[..., Path], params: dict[str, Any], tensors: dict[str, Any]
) -> None:
    tensors["layers.1.attention.wq.weight"][3, 4] = torch.nan
    folder = store(params, tensors, name="consolidated.00")
    done = atlas("run", str(folder), "--token-ids", IDS)
    assert done.code == 1
    assert "NOT CONFIRMED" in done.stdout
    assert "layers.1.attention.q" in done.stdout
    assert "verify --deep" in done.stderr


def test_the_trace_in_a_file(atlas: Atlas, whole: Path, tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    arguments = ["run", str(whole), "--token-ids", IDS, "--trace", "--trace-to"]
    found = json.loads(atlas(*arguments, str(file), "--json").stdout)
    written = json.loads(file.read_text())
    declared = json.loads(atlas("trace", str(whole), "--batch", "1", "--positions", "5", "--json").stdout)
    assert [step["id"] for step in written["steps"]] == [step["id"] for step in declared["steps"]]
    assert [step["shape"] for step in written["steps"]] == [step["shape"] for step in declared["steps"]]
    assert len(written["steps"]) == found["steps"]["observed"]
    assert atlas(*arguments, str(tmp_path / "none" / "f")).code == 2
    assert atlas(*arguments, str(tmp_path)).code == 2
    several = ["--prompt", "a", "--prompt", "b", "--trace-to", str(file)]
    assert "the trace of one prompt" in atlas("run", str(whole), *several).stderr


@pytest.mark.parametrize("name", ["pytorch_model.bin", "consolidated.00.pth", "model.gguf"])
def test_weights_that_are_not_read_are_no_reason_for_random_ones(
    atlas: Atlas, whole: Path, name: str
) -> None:
    (whole / "consolidated.00.safetensors").rename(whole / name)
    done = atlas("run", str(whole), "--token-ids", IDS)
    assert done.code == 2
    assert name in done.stderr
    assert "--weights random" in done.stderr
    assert atlas("run", str(whole), "--token-ids", IDS, "--weights", "random").code == 0


def test_an_index_whose_shards_are_gone_is_not_run_on_random_weights(atlas: Atlas, whole: Path) -> None:
    (whole / "consolidated.00.safetensors").unlink()
    index = {"weight_map": {"norm.weight": "model-00001-of-00001.safetensors"}}
    (whole / "model.safetensors.index.json").write_text(json.dumps(index))
    assert atlas("run", str(whole), "--token-ids", IDS).code == 2


def test_text_for_real_weights_without_a_tokenizer_is_refused(atlas: Atlas, whole: Path) -> None:
    (whole / "tokenizer.model").write_bytes(b"")
    done = atlas("run", str(whole), "--prompt", "hello")
    assert done.code == 2
    assert "tokenizer.model, which cannot be read yet" in done.stderr
