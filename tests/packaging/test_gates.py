"""What other projects run: pre-commit hooks, the GitHub action, the hf extension, the skill. Each is parsed and its command run."""

from __future__ import annotations

import os
import re
import shlex
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import REPOSITORY, run
from tests.verify.checkpoints import CONFIG, hub, save

yaml = pytest.importorskip("yaml", reason="hooks and action are YAML")

HOOKS = yaml.safe_load((REPOSITORY / ".pre-commit-hooks.yaml").read_text())
ACTION = yaml.safe_load((REPOSITORY / "action.yml").read_text())
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository that contains a checkpoint and, in specs/, a description file."""
    save(tmp_path, {"model.safetensors": hub()}, config=CONFIG)
    (tmp_path / "specs" / "components").mkdir(parents=True)
    norm = (REPOSITORY / "specs" / "components" / "rms_norm.toml").read_text()
    (tmp_path / "specs" / "components" / "rms_norm.toml").write_text(norm)
    return tmp_path


def without_the_norm(repository: Path) -> None:
    tensors = {name: tensor for name, tensor in hub().items() if name != "model.norm.weight"}
    save(repository, {"model.safetensors": tensors}, config=CONFIG)


def in_hook(hook: dict[str, Any], repository: Path) -> int:
    program, *words = [*shlex.split(hook["entry"]), *hook["args"]]
    assert program == "atlas"
    return run(*words, cwd=repository).code


@pytest.mark.parametrize("hook", HOOKS, ids=[hook["id"] for hook in HOOKS])
def test_a_hook_is_what_pre_commit_expects_and_passes(hook: dict[str, Any], repository: Path) -> None:
    """The keys that pre-commit's own schema of a manifest requires."""
    assert {"id", "name", "entry", "language"} <= set(hook)
    assert hook["language"] == "python"
    assert hook["pass_filenames"] is False
    re.compile(hook["files"])
    assert in_hook(hook, repository) == 0


def test_the_hooks_fail_where_something_is_wrong(repository: Path) -> None:
    hooks = {hook["id"]: hook for hook in HOOKS}
    without_the_norm(repository)
    assert in_hook(hooks["atlas-verify"], repository) == 1
    (repository / "config.json").write_text("{")
    assert in_hook(hooks["atlas-params"], repository) == 2
    (repository / "specs" / "components" / "rms_norm.toml").write_text("bogus = 1\n")
    assert in_hook(hooks["atlas-specs-check"], repository) != 0


@pytest.mark.parametrize(
    ("path", "hooked"),
    [
        ("model-00001-of-00004.safetensors", True),
        ("model.safetensors.index.json", True),
        ("checkpoints/last/config.json", True),
        ("README.md", False),
        ("notconfig.json", False),
    ],
)
def test_the_verify_hook_runs_when_a_checkpoint_changes(path: str, hooked: bool) -> None:
    assert bool(re.search(HOOKS[0]["files"], path)) == hooked


def in_action(repository: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """The action's last step, as GitHub runs it: bash, with the inputs in the environment."""
    step = ACTION["runs"]["steps"][-1]
    program = repository / "bin" / "atlas"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m atlas "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    environment = {}
    for variable, expression in step["env"].items():
        (name,) = re.fullmatch(r"\$\{\{ inputs\.([\w-]+) \}\}", expression).groups()  # type: ignore[union-attr]
        environment[variable] = inputs.get(name, ACTION["inputs"][name]["default"])
    path = f"{program.parent}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        env={**os.environ, **environment, "PATH": path, "PYTHONPATH": str(REPOSITORY)},
        cwd=repository,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def formats() -> None:
    if "--format" not in run("verify", "--help").out:
        pytest.skip("this version of verify has no --format")


def test_the_action_is_composite_and_documents_its_inputs() -> None:
    assert ACTION["runs"]["using"] == "composite"
    assert all(given["description"] for given in ACTION["inputs"].values())
    for step in ACTION["runs"]["steps"]:
        assert "uses" in step or step["shell"] == "bash"
        # An expression inside the script would let an input run commands.
        assert "${{" not in step.get("run", "")


@pytest.mark.usefixtures("formats")
def test_the_action_passes_and_fails_with_the_checkpoint(repository: Path) -> None:
    assert in_action(repository, checkpoint=".").returncode == 0
    strict = in_action(repository, checkpoint=".", deep="true", strict="true", ignore="zero")
    assert strict.returncode == 0
    assert in_action(repository).returncode == 2, "neither a checkpoint nor a repository"
    (repository / "tokenizer.json").unlink()
    assert in_action(repository, checkpoint=".").returncode == 0
    assert in_action(repository, checkpoint=".", release="true").returncode == 1, "no tokenizer"
    without_the_norm(repository)
    failed = in_action(repository, checkpoint=".")
    assert failed.returncode == 1
    assert "::error" in failed.stdout
    assert in_action(repository, checkpoint=".", ignore="missing").returncode == 0


@pytest.mark.usefixtures("formats")
@pytest.mark.parametrize("given", ["$(touch ran)", "; touch ran", "--receipt=ran", "`touch ran`"])
def test_an_input_of_the_action_is_only_a_word(given: str, repository: Path) -> None:
    for name in ("checkpoint", "model"):
        assert in_action(repository, **{"checkpoint": ".", name: given}).returncode == 2
    assert not (repository / "ran").exists()


def test_the_package_can_be_an_extension_of_hf() -> None:
    """huggingface_hub's rules: a console script `hf-<name>`, a one-line description, and no file of that name at the root."""
    assert PROJECT["scripts"]["hf-atlas"] == PROJECT["scripts"]["atlas"] == "atlas.__main__:main"
    assert isinstance(PROJECT["description"], str)
    assert not (REPOSITORY / "hf-atlas").exists(), "hf would install it as a shell script"
    extensions = pytest.importorskip("huggingface_hub.cli.extensions")
    assert extensions._get_executable_name("atlas") in {"hf-atlas", "hf-atlas.exe"}


def test_numpy_is_installed_with_the_package_and_torch_is_not() -> None:
    required = {re.split(r"[<>=]", name)[0] for name in PROJECT["dependencies"]}
    assert "numpy" in required
    assert required.isdisjoint({"torch", "tokenizers", "transformers"})


SKILL = (REPOSITORY / "SKILL.md").read_text()


def test_the_skill_has_the_front_matter_that_agents_read() -> None:
    front = yaml.safe_load(SKILL.split("---\n")[1])
    assert set(front) == {"name", "description"}
    assert re.fullmatch(r"[a-z0-9-]{1,64}", front["name"])
    assert 0 < len(front["description"]) <= 1024


def test_the_commands_of_the_skill_exist() -> None:
    """Every command and option in it is one that its help lists."""
    spans = [span for span in re.findall(r"`([^`]+)`", SKILL) if span.startswith("atlas ")]
    assert len(spans) >= 10
    for span in spans:
        words = span.split()
        text = run(words[1], "--help").out
        assert "Usage:" in text, span
        for option in (word for word in words if word.startswith("--")):
            assert option in text, f"{span}: {option}"


def test_a_command_of_the_skill_answers() -> None:
    for span in (
        "params MODEL --json",
        "memory MODEL --context 8192 --fit 24GiB --json",
        "trace MODEL --batch 1 --positions 128 --json",
    ):
        assert f"`atlas {span}`" in SKILL
        assert run(*span.replace("MODEL", "llama3.2-1b").split()).code == 0
