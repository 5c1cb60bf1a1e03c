"""The catalogue reader: it says what Meta's own package says, entry by entry, and executes nothing.

What is expected comes from the installed package, from the pins taken by hand, or is written out here.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
import os
import tomllib
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from atlas.errors import ConfigError
from atlas.resolution.catalogue_import.reader import read_catalogue, to_toml
from tests.cli.conftest import run

ROOT = Path(__file__).parents[2]
PINS = ROOT.parent / "shared" / "evidence" / "pins.json"
STEMS = ["llama2", "llama3", "llama3.1", "llama3.2", "llama3.3", "llama4", "llama-guard"]
TEXTS = {stem: (ROOT / "specs" / "catalogue" / f"{stem}.toml").read_text("utf-8") for stem in STEMS}
RECORDED = {stem: tomllib.loads(text) for stem, text in TEXTS.items()}
ENTRIES = {entry["descriptor"]: entry for file in RECORDED.values() for entry in file["entries"]}
NAMES = {name: named for file in RECORDED.values() for name, named in file.get("names", {}).items()}

TYPES = """\
from enum import Enum
from pydantic import BaseModel, Field
class CoreModelId(Enum):
    tiny = "Tiny-1B"
class ModelFamily(Enum):
    tiny = "tiny_1"
def model_family(model_id):
    if model_id in [CoreModelId.tiny]:
        return ModelFamily.tiny
    else:
        raise ValueError(f"unknown {model_id}")
class Model(BaseModel):
    core_model_id: CoreModelId
    description: str
    huggingface_repo: str | None = None
    arch_args: dict
    variant: str = ""
    quantization_format: str = "bf16"
    pth_file_count: int
    metadata: dict = Field(default_factory=dict)
    @property
    def model_family(self):
        return model_family(self.core_model_id)
    @property
    def max_seq_length(self):
        if self.variant == "long":
            return 8192
        return 4096
LIMIT = 1
"""
LIST = """\
from .sku_types import CoreModelId, Model
def all_registered_models():
    return [Model(core_model_id=CoreModelId.tiny, description="Tiny", pth_file_count=1, arch_args=
{}
    )]
"""

ENTRY = "Model(core_model_id=CoreModelId.tiny, description='Tiny', pth_file_count=1, arch_args={})"

# What may stand in place of the arguments in line 4; Python's own parser names the first ones.
KINDS = ["[n for n in [1]]", "lambda: 1", "f'{1}'", "(1, 2)", "{1, 2}", "{} if 1 else {}", "--1", "2 * 3"]
KINDS += ["1 < 2", "1 and {}", "[0][0]", "(a := {})", "~1"]
EXPRESSIONS = [
    ("1 + 1", "`+` of anything but lists"),
    ("[*'ab']", "`*` of anything but a list"),
    ("{**[]}", "`**` of anything but a dict"),
    ("{1: 2}", "a key that is not text"),
    ("os.system('x')", "`os` is not defined"),
    ("'x'.upper()", "`.upper` is neither a field, a property nor a member of an Enum"),
    ("CoreModelId.huge", "`huge` is not defined"),
    ("CoreModelId('Tiny-1B')", "`CoreModelId` is not a plain `BaseModel`"),
    ("Model(1)", "`Model(...)` with anything but keywords, each once"),
    ("Model(**{})", "`Model(...)` with anything but keywords, each once"),
    ("Model(variant='', variant='')", "`Model(...)` with anything but keywords, each once"),
    ("Model(variant='')", "`Model(...)` without `core_model_id`"),
    ("[" * 101 + "]" * 101, "more than 200000 steps, or nested more than 100 deep"),
]
# What the file may define, from line 6 on, for arguments `f()`.
STATEMENTS = [
    ("def f():\n    for x in []: pass", "line 7 is refused: a `For` statement in `f`"),
    ("def f():\n    x = {}\n    return x", "line 7 is refused: a `Assign` statement in `f`"),
    ("def f():\n    if 1:\n        return {}", "line 7 is refused: a condition"),
    ("def f():\n    'nothing else'", "line 4 is refused: `f` ends without a `return`"),
    ("def f(x=1):\n    return {}", "line 4 is refused: a call of `f` in this form"),
    ("async def f():\n    return {}", "line 4 is refused: `f` is neither a class, an undecorated"),
    ("@trace\ndef f():\n    return {}", "line 4 is refused: `f` is neither a class, an undecorated"),
    ("def f():\n    return {}\nif True:\n    f = 1", "line 4 is refused: `f` is bound more than once"),
    ("def f():\n    return f()", "line 7 is refused: more than 200000 steps, or nested more than 100 deep"),
    ("def f():\n    return A\nA = {}", "line 7 is refused: a dict that has a name of its own"),
    ("def f():\n    return model_family(x=1)", "line 7 is refused: a call of `model_family` in this form"),
    ("def f():\n    return {'a': LIMIT}", "sku_types.py, line 29 is refused: an entry takes values from"),
    (
        "def f():\n    return [*g(), *g()]\n"  # 4 times 2 to the 17
        + "".join(f"def {a}():\n    return [*{b}(), *{b}()]\n" for a, b in pairwise("ghijklmnopqrstuvw"))
        + "def w():\n    return [1, 2, 3, 4]",
        "is refused: more than 200000 steps",
    ),
]
VALUES = ["None", "[]", "1", "{'a': None}", "{'a': b''}", "{'a': 1j}", "{'a': 1e999}", "CoreModelId"]
VALUES += ["{'a': 0x8000000000000000}", "{'a': '\\ud800'}", "{'a': [CoreModelId.tiny]}"]
# What may be changed in one of the files.
CHANGES = [
    *(("{}", kind, f"of the kind `{type(ast.parse(kind, mode='eval').body).__name__}`") for kind in KINDS),
    *(("{}", expression, f"sku_list.py, line 4 is refused: {why}") for expression, why in EXPRESSIONS),
    *(("{}\n    )]\n", f"f()\n    )]\n{statements}", why) for statements, why in STATEMENTS),
    *(("{}", value, "line 3 is refused: `arch_args` is not a dict that TOML and JSON") for value in VALUES),
    ('="Tiny"', "=1", "line 3 is refused: `description` is not a str that TOML and JSON can represent"),
    (
        "count=1",
        "count=True",
        "line 3 is refused: `pth_file_count` is not a int that TOML and JSON can represent",
    ),
    ("count=1", "count=1, size=2", "line 3 is refused: `Model` has no field `size`"),
    ("[", f"[{ENTRY}, ", "line 3 is refused: a second entry 'Tiny-1B'"),
    ("return [", "return [1, ", "sku_list.py has no all_registered_models() that returns a list of models"),
    ("def all", "def some", "sku_list.py has no all_registered_models() that returns a list of models"),
    ("CoreModelId, Model", "CoreModelId as Model", "line 3 is refused: `Model` is bound more than once"),
    ('"tiny_1"', '"../tiny"', "line 3 is refused: the family '../tiny', which cannot name a file"),
    ("    @property\n    def max", "    def max", "line 3 is refused: `.max_seq_length` is neither"),
    ("return 4096", "return self.arch_args", "line 28 is refused: a dict that has a name of its own"),
    ("[CoreModelId.tiny]", "[0]", "sku_types.py, line 11 is refused: a `Raise` statement in `model_family`"),
    ("(Enum):", "(Enum):\n    def __new__(cls): pass", "line 3 is refused: `.tiny` is neither"),
    (
        "    @property",
        "    @field_validator('variant')",
        "line 3 is refused: `Model` is not a plain `BaseModel`",
    ),
    ("LIMIT", "    variant: int = 0\nLIMIT", "line 3 is refused: `variant` is bound more than once"),
    ("from", "fron", "sku_list.py cannot be parsed as Python: invalid syntax (sku_list.py, line 1)"),
    ("from", "\0", "sku_list.py cannot be parsed as Python"),
    ("from", "x = " + "-" * 100_000 + "1\nfrom", "sku_list.py cannot be parsed as Python"),
    ("from", "#" * 2**20 + "\nfrom", "sku_list.py: larger than 131,072 bytes"),
]


def planted(folder: Path, sku_list: str = LIST, types: str = TYPES) -> Path:
    (folder / "sku_list.py").write_bytes(sku_list.encode())
    (folder / "sku_types.py").write_bytes(types.encode())
    return folder


def installed() -> Path:
    spec = importlib.util.find_spec("llama_models")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("llama-models is not installed")
    return Path(spec.submodule_search_locations[0])


def typed(value: Any) -> Any:
    """The value with its types, since 1 == 1.0 == True, and with the order of its keys."""
    if isinstance(value, dict):
        return [(key, typed(item)) for key, item in value.items()]
    return [typed(item) for item in value] if isinstance(value, list) else (type(value), value)


def cited(lines: list[bytes], named: dict[str, Any]) -> bytes:
    return b"".join(line + b"\n" for first, last in named["lines"] for line in lines[first - 1 : last])


def test_recorded_entries_are_those_of_metas_own_code() -> None:
    reason = "llama-models is not installed"
    models = pytest.importorskip("llama_models.sku_list", reason=reason).all_registered_models()
    assert len(models) == len(ENTRIES) == sum(len(file["entries"]) for file in RECORDED.values()) == 45
    for model in models:
        entry = {"metadata": {}, "huggingface_repo": None, **ENTRIES[model.descriptor()]}
        assert entry["family"] == model.model_family.value
        for name in ("core_model_id", "quantization_format"):
            assert entry[name] == getattr(model, name).value
        for name in ("variant", "description", "huggingface_repo", "pth_file_count", "max_seq_length"):
            assert typed(entry[name]) == typed(getattr(model, name))
        assert typed(entry["arch_args"]) == typed(model.arch_args)
        assert typed(entry["metadata"]) == typed(model.metadata)
    families = {
        "llama3.1": "llama3_1",
        "llama3.2": "llama3_2",
        "llama3.3": "llama3_3",
        "llama-guard": "safety",
    }
    for stem, file in RECORDED.items():
        of_family = [m.descriptor() for m in models if m.model_family.value == families.get(stem, stem)]
        assert [entry["descriptor"] for entry in file["entries"]] == of_family
    read = read_catalogue(installed())
    assert [entry.descriptor for entry in read.entries] == [model.descriptor() for model in models]


def test_reader_gives_what_is_recorded() -> None:
    package = installed()
    assert to_toml(read_catalogue(package)) == to_toml(read_catalogue(package.parent)) == TEXTS


def test_lines_and_hashes_are_the_pinned_ones() -> None:
    if not PINS.is_file():
        pytest.skip("the pins are kept outside the repository")
    pins = {pin["id"].removeprefix("sku/"): pin for pin in json.loads(PINS.read_text("utf-8"))["pins"]}
    shared = {name: NAMES[name] for name in ("arch_args_1b", "arch_args_3b")}
    for name, found in (ENTRIES | shared).items():
        assert (found["lines"], found["sha256"]) == (pins[name]["lines"], pins[name]["sha256"])
    in_list = {name for name, pin in pins.items() if pin["source"] == "llama-models/sku_list"}
    assert in_list == {*ENTRIES, *shared, "vocabulary"}


def test_names_are_those_that_stand_in_the_cited_lines() -> None:
    lines = (installed() / "sku_list.py").read_bytes().split(b"\n")
    reach: dict[str, set[str]] = {"LLAMA2_VOCAB_SIZE": set(), "LLAMA3_VOCAB_SIZE": set()}
    reach |= {name: {"LLAMA3_VOCAB_SIZE"} for name in ("arch_args_1b", "arch_args_3b")}
    for entry in ENTRIES.values():
        direct = {name for name in reach if name in cited(lines, entry).decode()}
        assert entry["uses"] == sorted(direct.union(*(reach[name] for name in direct)))
    assert NAMES.keys() == reach.keys()
    for name, named in NAMES.items():
        assert cited(lines, named).startswith((f"{name} = ".encode(), f"def {name}(".encode()))
        assert named["sha256"] == hashlib.sha256(cited(lines, named)).hexdigest()


def test_nothing_is_executed(tmp_path: Path) -> None:
    trap = tmp_path / "executed"
    attack = f"open({str(trap)!r}, 'w').write('x')\nraise SystemExit(3)\n"
    catalogue = read_catalogue(planted(tmp_path, attack + LIST + attack, attack + TYPES + attack))
    assert [entry.descriptor for entry in catalogue.entries] == ["Tiny-1B"]
    with pytest.raises(ConfigError, match=r"sku_list\.py, line 4 is refused: `open` is not defined"):
        read_catalogue(planted(tmp_path, LIST.replace("{}", f"open({str(trap)!r}, 'w')")))
    assert not trap.exists()


def test_defaults_line_endings_and_difficult_values(tmp_path: Path) -> None:
    written = (
        r"""{"a b": "\"\\\x7f\n\0é", "": [-1, 1.5, [True]], "f": 1e22, "t": {"x": {}}, **{"f": 1e-05}}"""
    )
    meant = {"a b": '"\\\x7f\n\0é', "": [-1, 1.5, [True]], "f": 1e-05, "t": {"x": {}}}
    text = LIST.replace("{}", written)
    catalogue = read_catalogue(planted(tmp_path, text.replace("\n", "\r\n")))
    (stem,) = files = to_toml(catalogue)
    (entry,) = tomllib.loads(files[stem])["entries"]
    assert (stem, entry["variant"], entry["quantization_format"]) == ("tiny.1", "", "bf16")
    assert (entry["max_seq_length"], entry["uses"], entry["lines"]) == (4096, [], [[3, 5]])
    assert entry["sha256"] == hashlib.sha256(cited(text.encode().split(b"\n"), entry)).hexdigest()
    assert {"metadata", "huggingface_repo"}.isdisjoint(entry)
    plain = asdict(catalogue)
    assert json.loads(json.dumps(plain)) == plain
    assert (plain["source"], plain["version"], plain["names"]) == ("llama-models/sku_list", None, {})
    assert typed(plain["entries"][0]["arch_args"]) == typed(entry["arch_args"]) == typed(meant)


def test_the_printed_catalogue_validates(tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="the schema check needs jsonschema")
    printed = run("specs", "import", str(planted(tmp_path, LIST)), "--json")
    jsonschema.validate(printed.json, run("schema", "specs", "import").json)
    assert len(printed.json["entries"]) == 1


def test_version_is_that_of_the_folder_beside(tmp_path: Path) -> None:
    (tmp_path / "llama_models").mkdir()
    planted(tmp_path / "llama_models")
    (tmp_path / "llama_models-0.3.0.dist-info").mkdir()
    assert read_catalogue(tmp_path).version == "0.3.0"
    (tmp_path / "llama_models-0.2.0.dist-info").mkdir()
    assert read_catalogue(tmp_path).version is None


def refused(folder: Path, why: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_catalogue(folder)
    assert why in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(("old", "new", "why"), CHANGES)
def test_what_is_outside_the_language_is_refused(tmp_path: Path, old: str, new: str, why: str) -> None:
    changed = LIST.replace(old, new, 1)
    refused(planted(tmp_path, changed, TYPES if changed != LIST else TYPES.replace(old, new, 1)), why)


def test_what_is_no_catalogue_is_refused(tmp_path: Path) -> None:
    refused(tmp_path / "absent", "is not a llama_models folder")
    (planted(tmp_path) / "sku_list.py").write_bytes(b"# \xff")
    refused(tmp_path, "sku_list.py is not UTF-8 text, from byte 2 on")
    (tmp_path / "sku_types.py").unlink()
    refused(tmp_path, "is not a llama_models folder")


def test_a_file_that_may_not_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    planted(tmp_path)
    monkeypatch.setattr(os, "open", denied)
    refused(tmp_path, "sku_list.py: cannot be read: Permission denied")
