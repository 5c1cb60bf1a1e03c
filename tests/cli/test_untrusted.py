"""What strangers wrote is printed as text: no command lets a control character of theirs reach a stream."""

from __future__ import annotations

import io
import itertools
import json
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import atlas.cli
from atlas.report import console, plain
from atlas.report.guard import Guard
from atlas.text import json_escaped, printable, styled
from tests.cli.conftest import Ran, run
from tests.mutations import HOSTILE
from tests.verify.checkpoints import CONFIG, hub, save

ESCAPES = "\x1b]0;x\x07\x9b2J\u202e\u2066\u200b\u2028\u2029\x7f\x00\x85\U000e0041\ufeff"


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """The command line in this process: as `run`, for many commands in little time."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    before = os.environ.copy(), warnings.showwarning, sys.stdout, sys.stderr

    def call(*words: str) -> Ran:
        streams = [io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2)]
        sys.stdout, sys.stderr = streams
        sys.argv = ["atlas", *words]
        try:
            with pytest.raises(SystemExit) as ended:
                atlas.cli.main()
        finally:
            sys.stdout, sys.stderr = before[2:]
            console.quiet = False
        out, err = (stream.buffer.getvalue().decode() for stream in streams)  # type: ignore[attr-defined]
        assert isinstance(ended.value.code, int)
        return Ran(ended.value.code, out, err)

    yield call
    os.environ.clear()
    os.environ.update(before[0])
    warnings.showwarning = before[1]


def judged(ran: Ran, *, as_json: bool) -> None:
    assert ran.code in {0, 1, 2}
    for stream in (ran.out, ran.err):
        assert printable(stream, keep="\n\t") == stream
        assert "Traceback" not in stream
        assert "fault of the atlas" not in stream
    if as_json:
        json.loads(ran.out)
    elif ran.code == 2:
        lines = ran.err.splitlines()
        assert sum(line.startswith("error: ") for line in lines) == 1 or ran.out, ran.err
        assert all(line.startswith(("error: ", "warning: ")) for line in lines), ran.err


FIELDS = ["_name_or_path", "model_type", "torch_dtype", "hidden_act", "architectures", "rope_scaling"]


def test_hostile_text_in_every_field_of_every_command(here: Any, tmp_path: Path) -> None:
    folder = save(tmp_path / f"a{ESCAPES.replace(chr(0), '')}[bold]", hub(), config=CONFIG)
    place, spelled = str(folder), str(folder / "config.json")
    hostile: list[dict[str, Any]] = [
        {"_name_or_path": HOSTILE, HOSTILE: HOSTILE},
        *({field: HOSTILE} for field in FIELDS),
        {"rope_scaling": {"rope_type": HOSTILE}},
        {"hidden_size": HOSTILE},
        {"bos_token_id": HOSTILE, "quantization_config": {"quant_method": HOSTILE}},
        {"torch_dtype": "\ud800"},
    ]
    commands = [
        ["params", place], ["params", spelled, "--markdown"], ["params", place, "--by", "tensor", "--csv"],
        ["trace", place], ["explain", place], ["explain", place, HOSTILE], ["memory", place], ["flops", place],
        ["diff", place, "llama3.2-1b"], ["verify", place], ["verify", place, "--receipt", f"{place}/r.json"],
    ]  # fmt: skip
    for i, change in enumerate(hostile):
        (folder / "config.json").write_text(json.dumps(CONFIG | change))
        for command in commands[:: 1 if i == 0 else 3]:  # every command with the first, some with each
            for form in ([], ["--json"]):
                if form and {"--csv", "--markdown"} & set(command):
                    continue
                judged(here(*command, *form), as_json=bool(form))


def test_hostile_options(here: Any) -> None:
    long = "x" * 100_000
    values = [
        HOSTILE,
        long,
        f"/{long}",
        "~" + "x" * 300,
        "9" * 5000,
        "-1",
        "nan",
        "",
        "[red]",
        "\udcff\ud800",
    ]
    places = [
        ["params"], ["models", "--family"], ["params", "llama3.2-1b", "--by"], ["params", "llama3.2-1b", "--devices"],
        ["trace", "llama3.2-1b", "--batch"], ["memory", "llama3.2-1b", "--fit"], ["memory", "llama3.2-1b", "--dtype"],
        ["flops", "llama3.2-1b", "--bandwidth", "1T", "--flops"], ["explain", "llama3.2-1b"], ["schema"],
        ["explain", "llama3.2-1b", "--receipt"], ["verify"], ["verify", "--repos-from"], ["diff", "llama3.2-1b"],
        ["verify", "--ignore"], ["--bogus"],
    ]  # fmt: skip
    for (i, place), (j, value) in itertools.product(enumerate(places), enumerate(values)):
        for form in [[], ["--json"]][(i + j) % 2 :][:1]:
            ran = here(*place, value, *form)
            judged(ran, as_json=bool(form))
            assert ran.code == 2 or value in ("", "[red]") or place[0] == "memory", (place, value[:20])
            assert len(ran.out + ran.err) < 10_000


@pytest.mark.parametrize(
    ("words", "as_json"),
    [
        (["--json", "params", "no-such"], True),
        (["params", "no-such", "--json=1"], True),
        (["params", "no-such", "--js"], True),
        (["params", "--bogus", "--json"], True),
        (["nothing", "--json"], True),
        (["params", "no-such", "--", "--json"], False),
        (["run", "--prompt", "--json", "--bogus"], False),
        (["params", "no-such", "--devices", "--json"], False),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_an_error_is_json_where_json_was_asked_for(words: list[str], as_json: bool, here: Any) -> None:
    ran = here(*words)
    assert (ran.code, bool(ran.out)) == (2, as_json)
    assert not as_json or set(json.loads(ran.out)) == {"error"}


def test_the_options_of_all_commands_are_values_of_options_too(here: Any) -> None:
    """`--debug` after an option that takes a value is that value."""
    ran = here("memory", "llama3.2-1b", "--fit", "--debug")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "--fit '--debug' is not a size" in ran.err


def test_a_path_that_is_not_utf_8_and_one_document(here: Any, tmp_path: Path) -> None:
    place = os.fsdecode(os.fsencode(tmp_path) + b"/a\xff")
    save(Path(place), hub(), config=CONFIG)
    ran = here("verify", place, "--json", "--receipt", f"{place}/r.json")
    assert (ran.code, ran.err) == (0, "")
    assert json.loads(ran.out)["source"]["location"].endswith("/a\\xff")
    assert json.loads((Path(place) / "r.json").read_text("utf-8"))["checkpoint"] == json.loads(ran.out)


def test_what_fails_after_the_document_is_told_on_stderr(
    here: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object) -> None:
        raise RuntimeError("too late")

    monkeypatch.setattr("atlas.files.write_whole", breaks)
    folder = save(tmp_path / "c", hub(), config=CONFIG)
    ran = here("verify", str(folder), "--json", "--receipt", str(tmp_path / "r.json"))
    assert ran.code == 2
    assert json.loads(ran.out)["verdict"] == "verified"
    assert ran.err.count("\n") == 1


def test_an_unexpected_failure_names_no_python_class(here: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("atlas.cli.models.library_of", lambda specs: None)
    ran = here("models", "--json")
    assert json.loads(ran.out)["error"]["code"] == "internal"
    assert "NoneType" not in ran.out
    assert "NoneType" in here("models", "--debug").err


@pytest.mark.parametrize("write", ["print(T)", "sys.stderr.write(T)", "warnings.warn(T)", "logging.error(T)"])
def test_other_libraries_are_escaped_too(write: str, here: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def prints(*_: object) -> None:
        import logging

        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = console._warned
            logger = logging.Logger("a library's")
            logger.addHandler(logging.StreamHandler())
            exec(write.replace("logging.error", "logger.error"), globals() | {"T": ESCAPES, "logger": logger})
        raise SystemExit(0)

    monkeypatch.setattr("atlas.cli.models.library_of", prints)
    ran = here("models")
    judged(ran, as_json=False)
    assert "\\x1b]0;x\\x07\\x9b2J\\u202e" in ran.out + ran.err


def test_a_document_says_the_same_without_characters_that_act() -> None:
    value = {"a" + ESCAPES: [ESCAPES, "日本 é 👩 \u00a0 \\u001b"]}
    text = plain.dumps(value)
    assert text.replace("\n", "").replace("\u00a0", "").isprintable()
    assert json.loads(text) == json.loads(plain.dumps(value, ascii_only=True)) == value
    assert json.loads(plain.dumps("\udcff\ud800")) == "\\xff\\ud800"
    assert json_escaped('"\U000e0041"') == '"\\udb40\\udc41"'


def test_what_is_escaped_and_what_stays() -> None:
    assert printable("é 日本語 한 🙂 \u00a0\u3000 a\u0301") == "é 日本語 한 🙂 \u00a0\u3000 a\u0301"
    assert printable("a\nb\tc") == "a\\nb\\tc"
    assert printable("\u202e\u200d\ufeff\ue000\u0378\udc80") == "\\u202e\\u200d\\ufeff\\ue000\\u0378\\x80"
    assert styled("\x1b[1mx\x1b[0m\x1b[2K\x1b]0;y\x07\x1b[2J\x1b[?1049h") == (
        "\x1b[1mx\x1b[0m\x1b[2K\\x1b]0;y\\x07\\x1b[2J\\x1b[?1049h"
    )


def test_a_terminal_keeps_the_bars_of_other_libraries_and_nothing_else() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    shown = Terminal()
    guard = Guard(shown)
    for text in ("\r 10%", "\x1b[A\x1b[A", "a\rb\x1b[A"):
        guard.write(text)
    assert shown.getvalue() == "\r 10%\x1b[A\x1b[Aa\\rb\\x1b[A"


@pytest.mark.parametrize("columns", ["²", "1000000000", "9" * 5000, "-1", "x", "", "0"])
def test_columns_that_are_none(columns: str) -> None:
    for words in (["params", "llama3.2-1b"], ["params", "--help"]):
        ran = run(*words, COLUMNS=columns, LINES=columns, TERMINAL_WIDTH=columns)
        assert (ran.code, ran.err) == (0, "")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-16"])
def test_json_in_any_encoding(encoding: str) -> None:
    from subprocess import run as process

    ran = process(
        [sys.executable, "-m", "atlas", "params", "llama3.2-1b", "--json"],
        env={**os.environ, "PYTHONIOENCODING": encoding},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert json.loads(ran.stdout.decode(encoding))["total_parameters"] == 1_235_814_400


@pytest.mark.parametrize("program", ["atlas", "open-model-atlas"])
@pytest.mark.parametrize(
    ("shell", "words"), [("bash", "complete -o"), ("zsh", "compdef"), ("fish", "complete --")]
)
def test_completion_is_shown_for_a_shell_by_name(program: str, shell: str, words: str, here: Any) -> None:
    def call(*arguments: str) -> Ran:
        return here(*arguments)

    ran = call("--show-completion", shell)
    assert (ran.code, ran.err) == (0, "")
    assert words in ran.out
    assert atlas.cli.completion.program(f"/usr/bin/{program}") == program
    assert call("--show-completion", "tcsh").code == 2


def test_completion_is_installed(tmp_path: Path) -> None:
    for shell, file in (
        ("bash", ".bashrc"),
        ("zsh", ".zshrc"),
        ("fish", ".config/fish/completions/atlas.fish"),
    ):
        ran = run("--install-completion", shell, HOME=str(tmp_path))
        assert (ran.code, ran.err) == (0, "")
        assert (tmp_path / file).is_file()


def test_completion_completes() -> None:
    ran = run(_ATLAS_COMPLETE="complete_bash", COMP_WORDS="atlas par", COMP_CWORD="1")
    assert (ran.code, ran.out.split()) == (0, ["params"])


@pytest.mark.parametrize(
    "settings", [{}, {"COMP_WORDS": "atlas"}, {"COMP_CWORD": "1"}, {"COMP_WORDS": "atlas", "COMP_CWORD": "²"}]
)
def test_a_request_for_completion_that_no_shell_makes(settings: dict[str, str]) -> None:
    ran = run(_ATLAS_COMPLETE="complete_bash", **settings)
    assert (ran.code, ran.out) == (2, "")
    assert "COMP_CWORD" in ran.err
    assert ran.err.count("\n") == 1
