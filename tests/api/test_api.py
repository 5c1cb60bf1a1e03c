"""The atlas in Python: the commands' answers and options, and objects that a notebook can show."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields
from pathlib import Path
from typing import Any

import pytest

import atlas
from atlas.report.plain import plain
from tests.cli.conftest import REPOSITORY, run
from tests.verify.checkpoints import CONFIG, hub, parameters, save

LLAMA = "llama3.1-8b"

ANSWERS: dict[str, Callable[[], Any]] = {
    f"params {LLAMA}": lambda: atlas.load(LLAMA).params(),
    f"params {LLAMA} --by tensor --devices 2": lambda: atlas.load(LLAMA).params(by="tensor", devices=2),
    f"trace {LLAMA} --batch 1 --positions 8 --past 4": lambda: atlas.load(LLAMA).trace(1, 8, past=4),
    f"memory {LLAMA} --context 8192 --fit 24GiB --kv-dtype fp8": lambda: atlas.load(LLAMA).memory(
        context=8192, fit="24GiB", kv_dtype="fp8"
    ),
    f"memory {LLAMA} --dtype F32 --batch 2 --positions 3 --devices 2": lambda: atlas.load(LLAMA).memory(
        dtype="F32", batch=2, positions=3, devices=2
    ),
    f"flops {LLAMA} --positions 128 --flops 989T --bandwidth 3.35TB": lambda: atlas.load(LLAMA).flops(
        positions=128, flops="989T", bandwidth=3.35e12
    ),
    f"explain {LLAMA}": lambda: atlas.load(LLAMA).explain(),
    f"explain {LLAMA} logits": lambda: atlas.load(LLAMA).explain("logits"),
    f"diff {LLAMA} llama3-8b": lambda: atlas.load(LLAMA).diff("llama3-8b"),
    "models --family llama3.2": lambda: atlas.models("llama3.2"),
}


@pytest.mark.parametrize("command", ANSWERS)
def test_an_answer_is_the_command_s(command: str) -> None:
    answer = ANSWERS[command]()
    expected = run(*command.split(), "--json").json
    for page in (expected, found := json.loads(json.dumps(plain(answer)))):
        for code in page.get("code", ()):
            code.pop("excerpt", None)  # the command shows excerpts where a source is installed
    assert found == expected


@pytest.mark.parametrize("command", ANSWERS)
def test_an_answer_is_one_line_a_table_and_frozen(command: str) -> None:
    answer = ANSWERS[command]()
    assert "\n" not in repr(answer)
    assert len(repr(answer)) <= 200
    rows = answer.rows()
    assert rows
    assert all(isinstance(row, dict) for row in rows)
    assert answer._repr_html_().startswith("<table>")
    assert answer._repr_markdown_().startswith("| ")
    with pytest.raises(FrozenInstanceError):
        setattr(answer, fields(answer)[0].name, "another")


def test_a_model_is_one_line() -> None:
    """69,346 characters in an earlier version: a dataclass shows everything inside it."""
    assert repr(atlas.load(LLAMA)) == "<atlas model 'llama3.1-8b': 8,030,261,248 parameters, BF16>"


def test_rows_are_the_table_s() -> None:
    rows = atlas.load(LLAMA).params().rows()
    assert sum(row["parameters"] for row in rows) == 8_030_261_248
    tensors = atlas.load(LLAMA).params(by="tensor").rows()
    assert len(tensors) == 291  # 32 layers × 9 tensors, and embedding, norm and output
    assert tensors[1]["name.hf"] == "model.layers.0.input_layernorm.weight"


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    save(folder, {"model.safetensors": hub()}, config=CONFIG)
    return folder


def test_a_checkpoint_is_verified_as_on_the_command_line(checkpoint: Path) -> None:
    for options, python in (([], {}), (["--ignore", "stray"], {"ignore": ["stray"]})):
        answer = json.loads(json.dumps(plain(atlas.verify(checkpoint, **python))))
        expected = run("verify", str(checkpoint), *options, "--json").json
        assert answer.pop("seconds") > 0
        expected.pop("seconds")
        assert answer == expected
    found = atlas.verify(str(checkpoint))
    assert found.verdict == "verified"
    assert found.parameters.found == parameters(hub())
    assert "\n" not in repr(found)


def test_verify_needs_one_checkpoint(checkpoint: Path) -> None:
    for python in (
        {},
        {"path": checkpoint, "repo": "a/b"},
        {"path": ""},
        {"path": checkpoint, "revision": "x"},
    ):
        with pytest.raises(atlas.AtlasError):
            atlas.verify(**python)
    with pytest.raises(atlas.AtlasError, match="bogus"):
        atlas.verify(checkpoint, ignore="bogus")


def test_a_run_is_the_command_s(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="a forward pass needs torch")
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    found = atlas.run(tmp_path / "config.json", weights="random", token_ids=[1, 2, 3], max_new_tokens=2)
    options = ["--weights", "random", "--token-ids", "1,2,3", "--max-new-tokens", "2"]
    expected = run("run", str(tmp_path / "config.json"), *options, "--json").json
    assert found.confirmed
    assert list(found.prompt_ids) == [1, 2, 3]
    assert list(found.generated.ids) == expected["generated"]["ids"]
    assert plain(found.steps) == expected["steps"]
    assert "\n" not in repr(found)


def test_what_fails_is_an_atlas_error() -> None:
    with pytest.raises(atlas.AtlasError, match=r"llama3\.1-9b") as refused:
        atlas.load("llama3.1-9b")
    assert "llama3.1-8b" in refused.value.hint
    with pytest.raises(atlas.AtlasError, match="llama5"):
        atlas.models("llama5")


ALL_COMMANDS = """
import runpy, sys
import atlas
from atlas.cli.application import COMMANDS
from atlas.cli import main
LINES = ["models", "params llama3-8b", "trace llama3-8b", "explain llama3-8b", "memory llama3-8b", "flops llama3-8b",
    "verify no-such", "run --token-ids x", "diff llama3-8b llama3-70b", "specs check no-such", "evidence check --offline",
    "schema run", "schema verify", "schema models", "show llama3-8b"]
missing = set(COMMANDS) - {line.split()[0] for line in LINES}
assert not missing, missing
for line in LINES:
    if line.split()[0] not in COMMANDS:
        continue
    sys.argv = ["atlas", *line.split(), *([] if line.startswith("schema") else ["--json"])]
    try:
        main()
    except SystemExit:
        pass
for module in ("atlas.execution.options", "atlas.verification.deep", "atlas.pages.catalogue", "atlas.api.run"):
    __import__(module)
print("callable", *(name for name in atlas.__all__ if callable(getattr(atlas, name))), file=sys.stderr)
"""


def test_public_functions_stay_functions_after_every_command() -> None:
    """A package `atlas.verify` would replace the function when it is imported."""
    done = subprocess.run(
        [sys.executable, "-c", ALL_COMMANDS], cwd=REPOSITORY, capture_output=True, text=True, timeout=120
    )
    assert done.stderr.splitlines()[-1] == "callable AtlasError load models run verify", done.stderr[-2000:]


def test_the_python_options_are_the_command_s() -> None:
    """Each option of a command that changes the answer is a parameter of its function, under the same name."""
    from typer.main import get_command

    from atlas.api.model import Model
    from atlas.cli.application import application

    # How an answer is printed, and what only a terminal needs.
    printed = {
        "json",
        "markdown",
        "csv",
        "help",
        "by",
        "exit_code",
        "receipt",
        "repos_from",
        "format",
        "plot",
        "svg",
    }
    printed |= {
        "names",
        "all",
        "layer",
        "component",
        "source",
        "excerpts",
        "web",
        "prompt_file",
        "quiet",
        "show_prompt",
        "trace_to",
    }
    commands = get_command(application()).commands  # type: ignore[attr-defined]
    functions = {
        name: getattr(Model, name, None) or getattr(atlas, name, None)
        for name in ("params", "trace", "memory", "flops", "verify", "run")
    }
    for name, function in functions.items():
        python = set(inspect.signature(function).parameters)
        spelled = {
            option.removeprefix("--").replace("-", "_") for p in commands[name].params for option in p.opts
        }
        missing = {option for option in spelled - python - printed if len(option) > 1} - {"specs", "model"}
        assert not missing, f"{name}: {sorted(missing)}"


def test_types_are_shipped() -> None:
    assert (REPOSITORY / "atlas" / "py.typed").exists()
