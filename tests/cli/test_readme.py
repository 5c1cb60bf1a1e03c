"""The README shows what the commands print: every block that opens with `$ atlas` is run and compared."""

from __future__ import annotations

import re

import pytest

import atlas

from .conftest import REPOSITORY, run

README = (REPOSITORY / "README.md").read_text()
BLOCKS = re.findall(r"^```\n\$ atlas ([^\n]*)\n(.*?)\n```$", README, flags=re.MULTILINE | re.DOTALL)


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip("\n").split("\n")]


@pytest.mark.parametrize(("command", "shown"), BLOCKS, ids=[command for command, _ in BLOCKS])
def test_a_command_prints_what_the_readme_shows(command: str, shown: str) -> None:
    printed, expected = lines(run(*command.split()).out), lines(shown)
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
