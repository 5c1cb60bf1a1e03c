"""The README shows what the commands print: every block that opens with `$ atlas` is run and compared."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest

from .conftest import REPOSITORY, run
from .readme_checkpoints import make

README = (REPOSITORY / "README.md").read_text()
BLOCKS = re.findall(r"^```\n\$ atlas ([^\n]*)\n(.*?)\n```$", README, flags=re.MULTILINE | re.DOTALL)


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip("\n").split("\n")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the README's commands are run: next to the checkpoints it verifies, with an empty Hub cache."""
    made = tmp_path_factory.mktemp("readme")
    make(made)
    return made


@pytest.mark.parametrize(("command", "shown"), BLOCKS, ids=[command for command, _ in BLOCKS])
def test_a_command_prints_what_the_readme_shows(command: str, shown: str, folder: Path) -> None:
    expected = lines(shown)
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


def test_the_first_run_is_of_a_real_model() -> None:
    first = re.search(r"^atlas run .*$", README, flags=re.MULTILINE)
    assert first is not None
    assert re.search(r"--repo \w[\w-]*/[\w.-]+", first[0])
    assert "random" not in first[0]


def test_the_python_session_prints_what_the_readme_shows(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run as a notebook would, each line with its output; and what it would show of a result is a table."""
    block = re.search(r"```pycon\n(.*?)```", README, flags=re.DOTALL)
    assert block is not None
    monkeypatch.chdir(folder)
    session = doctest.DocTestParser().get_doctest(block[1], {}, "README.md", "README.md", 0)
    assert sum(bool(example.want) for example in session.examples) >= 5
    report: list[str] = []
    failed, _ = doctest.DocTestRunner(verbose=False).run(session, out=report.append, clear_globs=False)
    assert not failed, "".join(report)
    model = session.globs["model"]
    for result in (model.params(), model.trace(), model.memory(), model.flops(), model.explain("output")):
        assert result._repr_html_().startswith("<table>")


def test_every_link_leads_to_a_file() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert {"SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", "SKILL.md", "action.yml"} <= set(links)
    assert all((REPOSITORY / link).exists() for link in links)
