"""`atlas verify` as a user runs it: lines, JSON, exit codes, what it imports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import REPOSITORY, run
from tests.verify.checkpoints import CONFIG, T, hub, pointer, save, shards

GOOD = "65,232 parameters in 30 tensors, 130,464 bytes"


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("good") / "c", hub())


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A grown vocabulary, in F32, with a stray and a wrong total_size."""
    files = shards(hub(CONFIG | {"vocab_size": 103}, dtype="F32"), 2)
    folder = save(tmp_path_factory.mktemp("grown") / "c", files, listed=True)
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    index["metadata"]["total_size"] = 1
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "consolidated.safetensors").write_bytes(b"")
    return folder


def test_a_good_one_is_one_line(good: Path) -> None:
    ran = run("verify", str(good))
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == f"verified (headers): {good}: {GOOD}, hf names, against config.json\n"


def test_findings_are_a_line_each_and_a_table_of_what_differs(grown: Path) -> None:
    ran = run("verify", str(grown))
    assert (ran.code, ran.err) == (1, "")
    lines = ran.out.splitlines()
    assert lines[0].startswith(
        f"differs: {grown}: 65,520 (expected 65,232) parameters in 30 tensors, 262,080 (expected 130,464) bytes"
    )
    assert [line.split()[:2] for line in lines[1:5]] == [
        ["error", "shape"],
        ["error", "dtype"],
        ["warning", "index"],
        ["note", "stray"],
    ]
    assert "expected [100, 48], found [103, 48]" in lines[1]
    table = [line.split() for line in lines[5:] if line.strip()]
    assert table[0] == ["parameters", "expected", "found", "difference"]
    assert table[2:] == [["tok_embeddings", "4,800", "4,944", "+144"], ["output", "4,800", "4,944", "+144"]]


@pytest.mark.parametrize("cut", [0, 1, 9_601, 100_000])
def test_of_a_truncated_file_the_bytes_that_are_there_count(cut: int, tmp_path: Path) -> None:
    """Also where what is cut is a copy that does not count: `lm_head`, 9,600 bytes at the end, of a model that ties it."""
    for tied in (False, True):
        config = CONFIG | {"tie_word_embeddings": tied}
        folder = save(tmp_path / f"{tied}", hub(), config=config)
        path = folder / "model.safetensors"
        os.truncate(path, path.stat().st_size - cut)
        counted = run("verify", str(folder), "--json").json["bytes"]
        lost = max(0, cut - 9_600) if tied else cut
        assert counted["expected"] - counted["found"] == lost


def test_quiet_leaves_out_notes_and_warnings(grown: Path) -> None:
    out = run("verify", str(grown), "--quiet").out
    assert "shape" in out
    assert "stray" not in out
    assert "total_size" not in out


@pytest.mark.parametrize(
    ("options", "codes", "code"),
    [
        ((), ["shape", "dtype", "index", "stray"], 1),
        (("--strict",), ["index", "shape", "dtype", "stray"], 1),
        (("--ignore", "dtype"), ["shape", "index", "stray"], 1),
        (("--ignore", "dtype,shape"), ["index", "stray"], 0),
        (("--ignore", "dtype", "--ignore", "SHAPE"), ["index", "stray"], 0),
        (("--ignore", "dtype, shape", "--strict"), ["index", "stray"], 1),
        (("--ignore", "dtype,shape,index,stray", "--strict"), [], 0),
    ],
    ids=str,
)
def test_strict_and_ignore(options: tuple[str, ...], codes: list[str], code: int, grown: Path) -> None:
    ran = run("verify", str(grown), "--json", *options)
    assert ran.code == code
    assert [finding["code"] for finding in ran.json["findings"]] == codes
    severities = {finding["code"]: finding["severity"] for finding in ran.json["findings"]}
    assert severities.get("index", "error") == ("error" if "--strict" in options else "warning")
    assert severities.get("stray", "note") == "note"
    everything = {"shape", "dtype", "index", "stray"}
    assert ran.json["ignored"] == dict.fromkeys(sorted(everything - set(codes)), 1)


def test_the_verdict_says_what_it_does_not_count(grown: Path, tmp_path: Path) -> None:
    receipt = tmp_path / "receipt.json"
    ran = run("verify", str(grown), "--ignore", "dtype,shape", "--receipt", str(receipt))
    verdict = ran.out.splitlines()[0]
    assert verdict.startswith("verified (headers): ")
    assert verdict.endswith(", ignoring 1 shape, 1 dtype")
    page = run("explain", str(grown), "output", "--receipt", str(receipt), "--json").json
    assert "verdict: verified, ignoring 1 shape, 1 dtype (atlas" in page["rests_on"]


def test_what_cannot_be_read_cannot_be_ignored(tmp_path: Path) -> None:
    save(tmp_path, hub())
    (tmp_path / "model.safetensors").write_bytes(pointer())
    ran = run("verify", str(tmp_path), "--ignore", "pointer", "--json")
    assert ran.code == 2
    assert [finding["code"] for finding in ran.json["findings"]] == ["pointer"]


def test_an_unknown_code_is_refused_by_name(good: Path) -> None:
    ran = run("verify", str(good), "--ignore", "dtype,bogus")
    assert (ran.code, ran.out) == (2, "")
    assert "bogus" in ran.err
    assert "unexpected" in ran.err


def test_without_a_path_the_usage() -> None:
    ran = run("verify")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("\n") == 1
    assert "give a PATH" in ran.err
    assert "verify [OPTIONS] [PATH]" in ran.err


def test_json_has_the_keys_of_the_contract(grown: Path) -> None:
    result = run("verify", str(grown), "--json").json
    promised = "model source convention verdict tensors parameters bytes components findings requests bytes_read seconds"
    assert set(promised.split()) <= set(result)
    assert list(result["source"]) == ["kind", "location", "revision", "repo"]
    assert result["source"] == {
        "kind": "folder",
        "location": str(grown),
        "revision": None,
        "repo": None,
    }
    assert result["parameters"] == {"expected": 65_232, "found": 65_520}
    assert result["tensors"] == {"expected": 30, "found": 30}
    assert result["components"][0] == {
        "id": "tok_embeddings",
        "expected": 4_800,
        "found": 4_944,
        "difference": 144,
    }
    finding = result["findings"][0]
    assert set(finding) >= {"code", "severity", "tensor", "file", "expected", "found", "count", "message"}
    assert finding["expected"] == [100, 48]
    assert finding["found"] == [103, 48]
    assert (result["requests"], result["convention"], result["verdict"]) == (0, "hf", "differs")
    assert 0 < result["bytes_read"] < 20_000
    assert 0 < result["seconds"] < 60


def test_json_validates_whatever_was_found(good: Path, grown: Path, tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="the schema check needs jsonschema")
    schema = run("schema", "verify").json
    jsonschema.Draft202012Validator.check_schema(schema)
    save(tmp_path / "pointer", hub())
    (tmp_path / "pointer" / "model.safetensors").write_bytes(pointer())
    save(tmp_path / "unknown", hub(), config=None)
    save(tmp_path / "adapter", {"adapter_model.safetensors": {"a": T((3,))}}, config=None)
    save(tmp_path / "strange", {"foo.weight": T((3,))})
    for folder in (good, grown, *tmp_path.iterdir()):
        jsonschema.validate(run("verify", str(folder), "--json").json, schema)
    wrong = run("verify", str(good), "--json").json | {"verdict": "fine"}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, schema)


def test_what_is_no_checkpoint_is_an_error_of_one_line(tmp_path: Path) -> None:
    ran = run("verify", str(tmp_path))
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("\n") == 1
    document = run("verify", str(tmp_path), "--json")
    assert (document.code, document.err) == (2, "")
    assert set(document.json["error"]) == {"code", "message", "hint"}


@pytest.mark.parametrize(
    "setting", [{"bias": True}, {"is_llama_config": True}, {"layer_types": ["full_attention"] * 3}], ids=str
)
def test_an_unknown_key_fails_no_strict_check(setting: dict[str, Any], tmp_path: Path) -> None:
    """InternLM's `bias`, SmolLM2's `is_llama_config` and `layer_types`: no check depends on them."""
    folder = save(tmp_path / "c", hub(), config=CONFIG | setting)
    ran = run("verify", str(folder), "--json", "--strict")
    assert (ran.code, ran.json["verdict"]) == (0, "verified")
    for finding in ran.json["findings"]:
        assert (finding["code"], finding["severity"]) == ("config", "note")


@pytest.mark.parametrize(("options", "severity", "code"), [((), "warning", 0), (("--strict",), "error", 1)])
def test_what_is_probably_wrong_in_the_configuration_is_a_warning(
    options: tuple[str, ...], severity: str, code: int, tmp_path: Path
) -> None:
    words = "bfloat17"
    folder = save(tmp_path / "c", hub(), config=CONFIG | {"torch_dtype": "bfloat17"})
    ran = run("verify", str(folder), "--json", "--quiet", *options)
    [finding] = ran.json["findings"]
    assert (ran.code, ran.err) == (code, "")
    assert (finding["code"], finding["severity"], finding["file"]) == ("config", severity, "config.json")
    assert words in finding["message"]
    assert run("verify", str(folder), "--ignore", "config", *options).code == 0


def test_a_name_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    """A tensor may be called anything: a line stays a line, and no escape sequence gets through."""
    tensors = hub() | {"evil\x1b[2J\nerror: all is lost\u2028": T((1,))}
    ran = run("verify", str(save(tmp_path / "c", tensors)))
    assert ran.code == 1
    assert "\x1b" not in ran.out
    assert not any(line.startswith("error: ") for line in ran.out.splitlines())
    assert "\\x1b" in ran.out


def test_many_of_one_kind_are_counted(tmp_path: Path) -> None:
    """Of 30 files 25 are too long: each is a finding, and the terminal shows 20. Where they are not there, it is one."""
    files = {f"{name}.safetensors": {name: tensor} for name, tensor in hub().items()}
    folder = save(tmp_path / "c", files, listed=True)
    for name in list(files)[:25]:
        with (folder / name).open("ab") as file:
            file.write(b"x")
    lines = run("verify", str(folder)).out.splitlines()
    assert sum(line.startswith("error") for line in lines) == 20
    assert any("trailing: 5 more" in line for line in lines)
    assert len(run("verify", str(folder), "--json").json["findings"]) == 25
    for name in list(files)[:25]:
        (folder / name).unlink()
    [finding] = run("verify", str(folder), "--json").json["findings"]
    assert (finding["code"], finding["count"]) == ("missing", 25)
    assert finding["message"].startswith("25 files are missing (")


HEAVY = """
import sys
from atlas.cli import main
sys.argv = ["atlas", "verify", sys.argv[1]]
try:
    main()
except SystemExit as stop:
    assert stop.code == 0, stop.code
print(sorted({name.partition(".")[0] for name in sys.modules} & {"torch", "numpy", "huggingface_hub", "transformers", "safetensors"}))
"""


def test_nothing_heavy_is_imported_for_a_path(good: Path) -> None:
    def heavy(code: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", code, str(good)],
            capture_output=True,
            text=True,
            cwd=REPOSITORY,
            check=True,
        )
        return done.stdout.splitlines()[-1]

    assert heavy(HEAVY) == "[]"
    pytest.importorskip("numpy", reason="that the test above can fail is shown with numpy")
    assert heavy(HEAVY.replace("import sys", "import sys, numpy", 1)) == "['numpy']"
