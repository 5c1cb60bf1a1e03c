"""What a shell completes, asked as bash asks it; and that finding it imports nothing heavy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.verify.checkpoints import CONFIG

from .conftest import run
from .test_contract import HEAVY, probe


def completions(line: str, cwd: Path = Path(), variable: str = "_ATLAS_COMPLETE") -> list[str]:
    """What is offered for the last word of a command line."""
    asked = {variable: "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    ran = run(cwd=cwd.absolute(), **asked)
    assert ran.err == ""
    return ran.out.split("\n")[:-1] if ran.out.strip() else []


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("atlas params llama3.1-8", {"llama3.1-8b", "llama3.1-8b-instruct"}),
        ("atlas diff llama3-8b llama3-70", {"llama3-70b", "llama3-70b-instruct"}),
        ("atlas params meta-llama/Llama-3.3", {"meta-llama/Llama-3.3-70B-Instruct"}),
        ("atlas verify x --model llama2-13", {"llama2-13b", "llama2-13b-chat"}),
        ("atlas models --family llama3.", {"llama3.1", "llama3.2", "llama3.3"}),
        ("atlas explain llama3.1-8b ffn", {"ffn_norm"}),
        ("atlas memory llama3.1-8b --dtype bf", {"bf16"}),
        ("atlas memory llama3.1-8b --kv-dtype F8_E5M2F", {"F8_E5M2FNUZ"}),
        ("atlas schema ver", {"verify"}),
        ("atlas verify x --ignore dtype,dup", {"dtype,duplicate"}),
        ("atlas run --device c", {"cpu", "cuda"}),
        ("atlas mem", {"memory"}),
    ],
)
def test_what_is_offered(line: str, offered: set[str]) -> None:
    found = completions(line)
    assert offered <= set(found)
    last = line.split(" ")[-1].lower()
    assert all(word.lower().startswith(last) for word in found)


def test_the_nodes_of_a_configuration_are_offered(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    assert "attention.wq" in completions("atlas explain config.json attention.w", tmp_path)


@pytest.mark.parametrize(
    "line", ["atlas explain no-such-model a", "atlas explain some/repository a", "atlas params /no"]
)
def test_nothing_is_offered_where_nothing_is_known(line: str) -> None:
    """Then bash offers file names. A Hub id outside the catalogue is not fetched."""
    assert completions(line) == []


def test_each_console_script_completes() -> None:
    for variable in ("_ATLAS_COMPLETE", "_OPEN_MODEL_ATLAS_COMPLETE", "_HF_ATLAS_COMPLETE"):
        from atlas.cli.completion import ASKED_BY_SHELL

        assert variable in ASKED_BY_SHELL


def test_completing_a_model_imports_nothing_heavy() -> None:
    """The classes of `atlas.spec` take longer to make than everything else that completion does."""
    before = (
        "import os\n"
        "os.environ |= dict(_ATLAS_COMPLETE='complete_bash', COMP_WORDS='atlas params llama3', COMP_CWORD='2')\n"
    )
    assert "heavy=[]" in probe([], heavy=[*HEAVY, "atlas.spec", "rich.table"], before=before)
