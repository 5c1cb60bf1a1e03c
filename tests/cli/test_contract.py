"""What cli.md promises of every command: help, one JSON document, exit codes, one line for an error, nothing heavy."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import REPOSITORY, run

COMMANDS = [
    ["models"],
    ["models", "--family", "llama3.2"],
    ["params", "llama3.1-8b"],
    ["params", "llama3.2-1b", "--by", "tensor"],
    ["params", "llama2-7b", "--by", "layer", "--devices", "2"],
    ["trace", "llama3.2-1b"],
    ["trace", "llama3.2-1b", "--batch", "1", "--positions", "8"],
    ["explain", "llama3.1-8b"],
    ["explain", "llama3.1-8b", "output"],
    ["explain", "llama3-8b", "logits"],
    ["explain", "llama3.1-8b", "tok_embeddings"],
    ["memory", "llama3.1-8b", "--fit", "80GB", "--fit", "24GiB"],
    ["flops", "llama3.1-8b", "--flops", "989T", "--bandwidth", "3.35TB"],
    ["diff", "llama3-8b", "llama3.1-8b"],
    ["specs", "check"],
    ["evidence", "check", "--offline"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_json_is_one_document_that_validates(command: list[str]) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="the schema check needs jsonschema")
    ran = run(*command, "--json")
    assert ran.code == 0, ran.err
    schema = run("schema", command[0])
    assert schema.code == 0, schema.err
    jsonschema.Draft202012Validator.check_schema(schema.json)
    jsonschema.validate(ran.json, schema.json)


def test_a_command_of_two_words_has_a_schema(tmp_path: Path) -> None:
    """Of the first word alone, that of `check`."""
    assert (
        run("schema", "specs", "check").json
        == run("schema", "specs check").json
        == run("schema", "specs").json
    )
    assert run("schema", "evidence", "check").json == run("schema", "evidence").json


def test_a_schema_refuses_what_a_command_does_not_print() -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="the schema check needs jsonschema")
    wrong = run("params", "llama3.1-8b", "--json").json | {"total_parameters": "8030261248"}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, run("schema", "params").json)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_table_goes_to_stdout_and_is_plain_in_a_pipe(command: list[str]) -> None:
    ran = run(*command)
    assert ran.code == 0, ran.err
    assert ran.out.strip()
    assert "\x1b" not in ran.out + ran.err
    assert "…" not in ran.out or "more (--json" in ran.out, "a table in a pipe is not cut"


ERRORS = [
    (["params", "llama3.1-9b"], "no model is called 'llama3.1-9b'", "llama3.1-8b"),
    (["params", "llama4-scout-17b-16e"], "not described yet", "llama4-scout-17b-16e"),
    (["params", "llama3.1-405b"], "fp8", "llama3.1-405b:bf16-mp8"),
    (["trace", "llama3.2-11b-vision"], "not described yet", "vision"),
    (["params", "nowhere/at/all/config.json"], "no such file or folder", "nowhere/at/all/config.json"),
    (["params"], "MODEL", "Missing argument"),
    (["params", "llama3.1-8b", "--bogus"], "--bogus", "No such option"),
    (["params", "llama3.1-8b", "--csv", "--markdown"], "exclude each other", "--csv"),
    (["params", "llama3.1-8b", "--devices", "0"], "--devices is 0", "1 or more"),
    (["params", "llama3.1-8b", "--devices", "3"], "3 devices", "evenly"),
    (["params", "llama3.1-8b", "--specs", "no-such-folder"], "no-such-folder", "no such folder"),
    (["params", "llama3.1-8b", "--specs", str(Path(__file__).parent)], "no description files", "axes.toml"),
    (["run", "--token-ids", "１,2"], "１,2", "expected integers"),
    (["run", "--token-ids", "1,,2"], "1,,2", "expected integers"),
    (["trace", "llama3.1-8b", "--positions", "0"], "--positions is 0", "expected 1 or more"),
    (["trace", "llama3.1-8b", "--past", "-1"], "--past is -1", "expected 0 or more"),
    (["explain", "llama3.1-8b", "ouput"], '"ouput"', "output"),
    (["explain", "llama3.1-8b", "normed"], "several activations", "norm.normed"),
    (["explain", "llama3.1-8b", "--source", "llama3"], "ID=PATH", "llama3"),
    (
        ["explain", "llama3.1-8b", "--source", "llama3=no-such-clone"],
        "no-such-clone",
        "no such file or folder",
    ),
    (["memory", "llama3.1-8b", "--fit", "80XB"], "80XB", "80GB"),
    (["memory", "llama3.1-8b", "--dtype", "bf17"], "bf17", "BF16"),
    (["flops", "llama3.1-8b", "--flops", "1T"], "--bandwidth", "go together"),
    (["flops", "llama3.1-8b", "--flops", "fast", "--bandwidth", "1T"], "fast", "989T"),
    (["schema", "bogus"], "bogus", "params"),
    (["bogus"], "bogus", "No such command"),
    (["models", "--family", "llama5"], "llama5", "llama3"),
]


@pytest.mark.parametrize(("command", "what", "more"), ERRORS, ids=[" ".join(row[0]) for row in ERRORS])
def test_misuse_is_one_line_on_stderr_and_exit_2(command: list[str], what: str, more: str) -> None:
    ran = run(*command)
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.startswith("error: ")
    assert ran.err.count("\n") == 1, ran.err
    assert what in ran.err
    assert more in ran.err


@pytest.mark.parametrize(("command", "what", "more"), ERRORS, ids=[" ".join(row[0]) for row in ERRORS])
def test_with_json_an_error_is_a_document_on_stdout(command: list[str], what: str, more: str) -> None:
    ran = run(*command, *([] if command[0] in {"bogus", "schema"} else ["--json"]))
    if command[0] in {"bogus", "schema"}:
        return
    assert ran.code == 2
    assert ran.err == ""
    error = ran.json["error"]
    assert set(error) == {"code", "message", "hint"}
    jsonschema = pytest.importorskip("jsonschema", reason="the schema check needs jsonschema")
    jsonschema.validate(ran.json, run("schema", command[0]).json)
    assert what in error["message"] + error["hint"]


def test_debug_shows_a_traceback_and_nothing_else_does() -> None:
    assert "Traceback" in run("params", "nothing", "--debug").err
    assert "Traceback" not in run("params", "nothing").err


def test_version_and_both_names() -> None:
    from atlas.version import __version__

    assert run("--version").out == f"atlas {__version__}\n"
    scripts = (REPOSITORY / "pyproject.toml").read_text()
    assert 'atlas = "atlas.__main__:main"' in scripts
    assert 'open-model-atlas = "atlas.__main__:main"' in scripts
    assert 'hf-atlas = "atlas.__main__:main"' in scripts


def test_quiet_drops_notes_and_may_stand_on_either_side() -> None:
    assert "note:" in run("models").err
    assert run("models", "--quiet").err == ""
    assert run("--quiet", "models").err == ""


def test_diff_exits_1_only_when_asked() -> None:
    assert run("diff", "llama3-8b", "llama3-70b").code == 0
    assert run("diff", "llama3-8b", "llama3-70b", "--exit-code").code == 1
    assert run("diff", "llama3-8b", "llama3-8b-instruct", "--exit-code").code == 0


def test_color_only_where_it_is_forced() -> None:
    assert "\x1b[" in run("params", "llama3.1-8b", FORCE_COLOR="1").out
    assert "\x1b[3" not in run("params", "llama3.1-8b", FORCE_COLOR="1", NO_COLOR="1").out
    for setting in ("GITHUB_ACTIONS", "PY_COLORS"):  # which Typer takes for a terminal
        assert "\x1b" not in run("params", "--help", **{setting: "1"}).out


def test_columns_are_respected() -> None:
    narrow = run("trace", "llama3.2-1b", COLUMNS="60").out
    assert max(map(len, narrow.splitlines()[2:-6])) <= 60


def test_output_that_is_not_utf_8_still_comes() -> None:
    ran = run("params", "llama3.1-8b", "--json", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert ran.code == 0
    assert json.loads(ran.out)["total_parameters"] == 8_030_261_248
    assert run("params", "llama3.1-8b", PYTHONIOENCODING="ascii", PYTHONUTF8="0").code == 0


PROBE = """
import socket, sys
def refused(*a, **k): raise AssertionError("a socket was opened")
socket.socket.connect = refused
socket.getaddrinfo = refused
sys.argv = ["atlas", *{arguments!r}]
from atlas.cli import main
try:
    main()
except SystemExit as end:
    code = end.code
heavy = sorted(name for name in {heavy!r} if name in sys.modules)
print(f"code={{code}} heavy={{heavy}}", file=sys.stderr)
"""

HEAVY = [
    "torch",
    "numpy",
    "huggingface_hub",
    "tokenizers",
    "transformers",
    "safetensors",
    "httpx",
    "httpx2",
    "requests",
]


def probe(arguments: list[str], heavy: list[str] = HEAVY, before: str = "") -> str:
    script = before + PROBE.format(arguments=arguments, heavy=heavy)
    return subprocess.run(
        [sys.executable, "-c", script], cwd=REPOSITORY, capture_output=True, text=True, timeout=60
    ).stderr


@pytest.mark.parametrize("command", [c for c in COMMANDS if c[0] not in {"specs", "evidence"}], ids=" ".join)
def test_a_catalogued_model_needs_nothing_heavy_and_no_socket(command: list[str]) -> None:
    assert "code=0 heavy=[]" in probe(command)


def test_a_path_needs_nothing_heavy_and_no_socket(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    sizes = {
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "vocab_size": 128,
    }
    config.write_text(json.dumps({"model_type": "llama", "max_position_embeddings": 64, **sizes}))
    for command in ("params", "trace", "explain", "memory", "flops"):
        assert "code=0 heavy=[]" in probe([command, str(config)])


def test_the_probe_can_fail() -> None:
    assert "heavy=['json']" in probe(["params", "llama3.1-8b", "--json"], heavy=["json"])
    opens = "import atlas.cli.models, socket\natlas.cli.models.library_of = lambda s: socket.create_connection(('127.0.0.1', 9))\n"
    assert "a socket was opened" in probe(["models", "--debug"], before=opens)


@pytest.mark.parametrize("buffered", ["", "PYTHONUNBUFFERED=1"])
@pytest.mark.parametrize(
    ("script", "code", "words"),
    [
        ("params llama3.1-8b >&-", 0, ""),
        ("params nope 2>&-", 2, ""),
        ("params nope 2>/dev/full", 2, ""),
        ("params llama3.1-8b >/dev/full", 2, "the output cannot be written: No space left"),
        ("trace llama3.1-8b --json >/dev/full", 2, "the output cannot be written: No space left"),
        ("params nope --json >/dev/full", 2, "the output cannot be written: No space left"),
        ("trace llama3.1-8b --json >$FILE", 2, "the output cannot be written: File too large"),
        ("schema verify >$FILE", 2, "the output cannot be written: File too large"),
        ("params nope --json | true", 141, ""),
        ("trace llama3.1-405b:bf16-mp8 | head -n 1", 141, ""),
        ("--help | true", 141, ""),
        ("verify --help >/dev/full", 2, "the output cannot be written: No space left"),
        ("verify --help 1</dev/null", 2, "the output cannot be written: Bad file descriptor"),
    ],
)
def test_streams_that_cannot_be_written_to_end_with_a_code_and_no_traceback(
    script: str, code: int, words: str, buffered: str, tmp_path: Path
) -> None:
    """Closed, full, too large in the middle, without a reader; 141 is what a program that died of SIGPIPE gives."""
    limit = "ulimit -f 1;" if "$FILE" in script else ""
    command = (
        f"{limit} FILE={tmp_path / 'out'}; set -o pipefail; {buffered} {sys.executable} -m atlas {script}"
    )
    done = subprocess.run(
        ["bash", "-c", command], cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == code
    assert words in done.stderr
    assert done.stderr.count("\n") == (1 if words else 0) + ("note:" in done.stderr), done.stderr


def test_an_error_reaches_who_listens(tmp_path: Path) -> None:
    script = f"{sys.executable} -m atlas params nope --json 2>&-"
    done = subprocess.run(["bash", "-c", script], cwd=REPOSITORY, capture_output=True, text=True, timeout=60)
    assert json.loads(done.stdout)["error"]["code"] == "unknown_model"


def test_debug_shows_a_traceback_and_changes_nothing_else() -> None:
    plain, debug = run("params", "nope", "--json"), run("--debug", "params", "nope", "--json")
    assert (debug.code, debug.out) == (plain.code, plain.out)
    assert debug.err.startswith("Traceback")


def test_what_a_terminal_would_act_on_is_written_out(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    sizes = {
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "vocab_size": 9,
    }
    config.write_text(json.dumps({"model_type": "llama", "odd\x1b[31m\nkey": 1, **sizes}))
    ran = run("params", str(config))
    assert ran.code == 0
    assert "\x1b" not in ran.err
    assert ran.err.count("\n") == 1
