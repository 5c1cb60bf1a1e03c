"""Help as it is printed: examples that run, no types beside flags, errors that point at the command's own help."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from atlas.cli.application import COMMANDS
from atlas.cli.examples import EXAMPLES
from tests.verify.checkpoints import CONFIG, hub, save

from .conftest import REPOSITORY, run

NAMES = [
    name
    for command in COMMANDS
    for name in {"specs": ["specs check", "specs import"], "evidence": ["evidence check"]}.get(
        command, [command]
    )
]


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_help_with_two_or_three_examples(name: str) -> None:
    short, long = run(*name.split(), "-h"), run(*name.split(), "--help")
    assert short.code == long.code == 0
    assert short.out == long.out
    assert "Usage:" in long.out
    assert "Example:" not in long.out, "the docstring's own example is printed twice"
    assert 2 <= len(EXAMPLES[name]) <= 3
    for example in EXAMPLES[name]:
        assert example.startswith(f"atlas {name}")
        assert example in " ".join(long.out.split())


@pytest.mark.parametrize("name", ["", *NAMES])
def test_a_flag_has_no_type(name: str) -> None:
    text = run(*name.split(), "--help").out
    assert "bool" not in text.lower()
    assert "--help" in text


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the examples are run: with what their paths name."""
    made = tmp_path_factory.mktemp("examples")
    checkpoint = made / "path" / "to" / "checkpoint"
    checkpoint.mkdir(parents=True)
    save(checkpoint, {"model.safetensors": hub()}, config=CONFIG)
    (checkpoint / "tokenizer.json").unlink()  # it is a stub for verify, and no tokenizer can be made of it
    (made / "path" / "to" / "config.json").write_text(json.dumps(CONFIG))
    (made / "my-specs" / "components").mkdir(parents=True)
    norm = (REPOSITORY / "specs" / "components" / "rms_norm.toml").read_text()
    (made / "my-specs" / "components" / "rms_norm.toml").write_text(norm)
    return made


ALL = [example for name in NAMES for example in EXAMPLES[name]]

CODES = {
    "--exit-code": {1},  # its configuration is of another model
    "--repo": {2},  # the tests have no network
    "path/to/llama": {0, 1, 2},  # a clone that may be absent
    "atlas evidence check": {0, 1, 2},
}


@pytest.mark.parametrize("example", ALL)
def test_every_example_runs(example: str, folder: Path) -> None:
    words = shlex.split(example)[1:]
    if words[0] == "run":
        pytest.importorskip("torch", reason="a forward pass needs torch")
    if example == "atlas evidence check":
        words.append("--offline")
    ran = run(*words, cwd=folder, HF_HOME=str(folder / "hf"), HF_HUB_OFFLINE="1")
    expected = next((codes for part, codes in CODES.items() if part in example), {0})
    assert ran.code in expected, ran.out + ran.err
    assert "usage" not in ran.err.lower()
    if "path/to/llama" not in example:  # else the error is about the clone
        assert "--help" not in ran.err, "it was understood"


@pytest.mark.parametrize(
    ("command", "own"),
    [
        (["params"], "atlas params --help"),
        (["memory", "llama3.1-8b", "--bogus"], "atlas memory --help"),
        (["memory", "llama3.1-8b", "--batch", "0"], "atlas memory --help"),
        (["specs", "import"], "atlas specs import --help"),
        (["specs", "bogus"], "atlas specs --help"),
        (["bogus"], "atlas --help"),
        (["--quiet", "verify", "--bogus"], "atlas verify --help"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_misuse_points_at_the_command_s_own_help(command: list[str], own: str) -> None:
    ran = run(*command)
    assert ran.code == 2
    assert ran.err.endswith(f"see `{own}`\n")
    assert run(*own.split()[1:]).code == 0
