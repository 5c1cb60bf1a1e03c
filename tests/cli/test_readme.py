"""The README shows what the commands print: every block that opens with `$ atlas` is run and compared."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import atlas

from .conftest import REPOSITORY, run
from .readme_checkpoints import make

README = (REPOSITORY / "README.md").read_text()
BLOCKS = re.findall(r"^```\n\$ atlas ([^\n]*)\n(.*?)\n```$", README, flags=re.MULTILINE | re.DOTALL)


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip("\n").split("\n")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the README's commands are run: beside the checkpoints it verifies, with an empty Hub cache."""
    made = tmp_path_factory.mktemp("readme")
    make(made)
    return made


@pytest.mark.parametrize(("command", "shown"), BLOCKS, ids=[command for command, _ in BLOCKS])
def test_a_command_prints_what_the_readme_shows(command: str, shown: str, folder: Path) -> None:
    expected = lines(shown)
    if command.startswith("run"):
        pytest.importorskip("torch", reason="a forward pass needs torch")
        # Which tokens are likeliest, and how long it took, is this machine's.
        stable = next(i for i, line in enumerate(expected) if line.startswith("confirmed"))
        expected = [*expected[: stable + 1], "…"]
    printed = lines(
        run(*shlex.split(command), cwd=folder, HF_HOME=str(folder / "hf"), HF_HUB_OFFLINE="1").out
    )
    if expected[-1] == "…":
        expected = expected[:-1]
        printed = printed[: len(expected)]
    assert printed == expected


def test_the_readme_opens_with_a_command_and_its_output() -> None:
    assert BLOCKS[0][0] == "params llama3.1-8b"
    for command in ("pip install . && atlas params llama3.1-8b", "pip install -e '.[dev]' && pytest"):
        assert command in README


def test_the_python_lines_give_what_their_comments_say() -> None:
    block = re.search(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert block is not None
    scope = {"atlas": atlas}
    checked = 0
    for line in block[1].splitlines():
        code, comment, expected = line.partition("#")
        if comment:
            assert eval(code, scope) == eval(expected), line
            checked += 1
        elif code.strip():
            exec(code, scope)
    assert checked >= 3
