"""Which table describes a `model_type`: the scan of the files' bytes, compared with what a TOML parser reads in them."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from atlas.errors import SpecError, UndescribedConfigError
from atlas.graph.check import check
from atlas.resolution import config, config_table
from atlas.spec import registry, toml_files
from atlas.spec.library import Library, builtin_folder
from atlas.spec.registry import Claim

Overlay = Callable[[Mapping[str, str]], Library]

CHILD = 'id = "x"\nlike = "decoder"\n'
TABLE = '[configs.x]\nlike = "hub"\n'
SAMPLE = '[sample]\nmodel_type = "x"\n'
PLAIN: dict[str, Any] = {
    "model_type": "x", "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 9,
    "intermediate_size": 5, "rms_norm_eps": 1e-5, "rope_theta": 1e4,
}  # fmt: skip


def claims(overlay: Overlay, text: str) -> dict[str, list[Claim]]:
    """Those of the one file."""
    library = overlay({"architectures/x.toml": text})
    return {
        name: [claim for claim in found if claim.architecture == "x"]
        for name, found in library.claims.items()
        if any(claim.architecture == "x" for claim in found)
    }


def parsed() -> dict[str, set[Claim]]:
    """What a TOML parser finds: every configuration table of every built-in file that is no base and its own."""
    found: dict[str, set[Claim]] = {}
    for path in (builtin_folder() / "architectures").glob("*.toml"):
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
        inherited: set[str] = set()
        above = tables
        while "like" in above:
            above = tomllib.loads((path.parent / f"{above['like']}.toml").read_text(encoding="utf-8"))
            inherited |= set(above.get("configs", {}))
        for name, table in tables.get("configs", {}).items():
            if not tables.get("base") and not (name in inherited and "like" not in table):
                claim = Claim(path.stem, name, table.get("file", "config.json"))
                found.setdefault(table.get("model_type", name), set()).add(claim)
    return found


def test_the_scan_finds_what_a_parser_finds(library: Library) -> None:
    assert {name: set(found) for name, found in library.claims.items()} == parsed()
    assert len(parsed()) > 40


def test_the_scan_parses_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("atlas.spec.library.read_toml", lambda path: pytest.fail(f"{path} was parsed"))
    library = Library()
    assert "llama" in config_table.described(library)
    assert "meta" not in config_table.described(library)
    assert config_table.described(library, "params.json") == ["meta"]


def test_one_command_parses_the_files_of_one_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def reading(path: Path) -> dict[str, Any]:
        read.append(path.name)
        return toml_files.read_toml(path)

    monkeypatch.setattr("atlas.spec.library.read_toml", reading)
    library = Library()
    [(architecture, _)] = config_table.claimed("mistral", {}, library, "config.json")
    assert architecture.id == "mistral"
    assert sorted(read) == ["decoder.toml", "mistral.toml"]


# ---------------------------------------------------------------- how a table may be written


@pytest.mark.parametrize(
    ("text", "model_type"),
    [
        ("[configs.x]", "x"),
        ("  [configs.x]", "x"),
        ("[ configs . x ]", "x"),
        ("[configs.x] # a comment", "x"),
        ('[configs."x-1.5"]', "x-1.5"),
        ("[configs.'x 1']", "x 1"),
        ('[configs.x]\nlike = "hub"\nmodel_type = "y"', "y"),
        ("[configs.x]\nmodel_type = 'y' # why", "y"),
        ('[configs.x]\n  model_type="y"', "y"),
        ('[configs.x]\r\nmodel_type = "y"\r\n', "y"),
        ('[configs.x]\nignored = [\n  "a",\n  "b",\n]\nmodel_type = "y"', "y"),
        ("[configs.x.used]\na = 'dim'\n[configs.x]", "x"),
        ('[configs.x]\r\n[sample]\r\nmodel_type = "y"\r\n', "x"),
        ("[configs.x]\n[configs.x.where]\nmodel_type = 'y'", "x"),
        ("[configs.x]\n[sample]\nmodel_type = 'y'", "x"),
    ],
)
def test_a_table_describes_its_model_type(text: str, model_type: str, overlay: Overlay) -> None:
    found = claims(overlay, CHILD + text)
    assert list(found) == [model_type]
    name = tomllib.loads(text)["configs"]
    assert [claim.table for claim in found[model_type]] == list(name)


@pytest.mark.parametrize("text", ["# [configs.y]", "[configs]", "[[configs.y]]", "[configs.y.used]", "[xconfigs.y]", 'a = "[configs.y]"'])  # fmt: skip
def test_what_is_no_header_describes_none(text: str, overlay: Overlay) -> None:
    assert claims(overlay, f"{CHILD}{text}\n{TABLE}").keys() == {"x"}


def test_a_base_describes_none(overlay: Overlay) -> None:
    assert claims(overlay, f"base = true\n{CHILD}{TABLE}") == {}
    assert claims(overlay, f"{CHILD}{TABLE}[sample]\nbase = true\n").keys() == {"x"}
    assert claims(overlay, f"base = false\n{CHILD}{TABLE}").keys() == {"x"}


def test_inherited_tables_describe_none(overlay: Overlay) -> None:
    """Two architectures like one with a `model_type`: that of the base is still its own alone."""
    library = overlay({"architectures/x.toml": f'id = "x"\nlike = "llama"\n{TABLE}{SAMPLE}'})
    assert [claim.architecture for claim in library.claims["llama"]] == ["llama"]
    assert config.describe({**PLAIN, "model_type": "llama"}, library, id="x").architecture == "llama"
    assert config.describe(PLAIN, library, id="x").architecture == "x"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("configs = { x = { like = 'hub' } }\n", "configs.x: expected a line [configs.x]"),
        ("[configs.x.used]\na = 'dim'\n", "configs.x: expected a line [configs.x]"),
        ("[configs]\nx.like = 'hub'\n", "configs.x: expected a line [configs.x]"),
        (TABLE + "[pages.norm]\ntext = '''\n[configs.y]\n'''\n", "configs.y: the line [configs.y] is no table"),
        ("[configs.x]\nlike = 'hub'\nmodel_type = '''y'''\n", "configs.x: expected model_type and file on lines of their own"),
        ("[configs.x]\nlike = 'hub'\n\"model_type\" = 'y'\n", "configs.x: expected model_type and file on lines of their own"),
        ("[configs.x]\nlike = 'hub'\n\"file\" = 'params.json'\n", "configs.x: expected model_type and file on lines of their own"),
    ],
)  # fmt: skip
def test_a_table_that_the_scan_does_not_see_is_a_fault(text: str, words: str, overlay: Overlay) -> None:
    faults = check(overlay({"architectures/x.toml": f"{CHILD}{text}{SAMPLE}"})).faults
    assert any(fault.startswith(f"architectures/x.toml: {words}") for fault in faults), faults


def test_an_inherited_table_may_be_extended_without_a_line_of_its_own(overlay: Overlay) -> None:
    text = f"{CHILD}{TABLE}[configs.hub.used]\nwidth = 'dim'\n{SAMPLE}"
    library = overlay({"architectures/x.toml": text})
    assert check(library).faults == ()
    assert "hub" not in library.claims


# ---------------------------------------------------------------- several tables for one model_type


def two(overlay: Overlay, first: str = "", second: str = "where = { new = true }") -> Library:
    """Two architectures for one `model_type`."""
    other = (
        CHILD.replace('"x"', '"y"')
        + f'[configs.y]\nlike = "hub"\nmodel_type = "x"\nignored = ["new"]\n{second}\n'
    )
    return overlay(
        {
            "architectures/x.toml": f"{CHILD}{TABLE}ignored = ['new']\n{first}\n{SAMPLE}",
            "architectures/y.toml": f"{other}{SAMPLE}new = true\n",
        }
    )


@pytest.mark.parametrize(
    ("stated", "architecture"),
    [({"new": True}, "y"), ({"new": False}, "x"), ({}, "x"), ({"new": None}, "x"), ({"new": 1}, "x"), ({"new": "true"}, "x")],
)  # fmt: skip
def test_the_table_whose_values_are_stated_is_read(
    stated: dict[str, Any], architecture: str, overlay: Overlay
) -> None:
    """true is not 1."""
    assert config.describe(PLAIN | stated, two(overlay), id="a").architecture == architecture


def test_no_table_fits(overlay: Overlay) -> None:
    library = two(overlay, first="where = { new = false }")
    with pytest.raises(UndescribedConfigError, match="model_type 'x' is not described yet"):
        config.describe(PLAIN, library, id="a")


def test_two_claims_that_nothing_tells_apart_are_refused(overlay: Overlay) -> None:
    library = two(overlay, second="")
    with pytest.raises(SpecError) as caught:
        config.describe(PLAIN, library, id="a")
    for place in ("architectures/x.toml configs.x", "architectures/y.toml configs.y"):
        assert place in caught.value.message
    faults = [fault for fault in check(library).faults if "describes model_type 'x'" in fault]
    assert len(faults) == 1
    assert "architectures/x.toml" in faults[0]
    assert "architectures/y.toml" in faults[0]


def test_two_claims_that_where_tells_apart_are_no_fault(overlay: Overlay) -> None:
    assert check(two(overlay)).faults == ()


def test_two_claims_for_different_files_are_no_fault(overlay: Overlay) -> None:
    library = two(overlay, second='file = "params.json"')
    assert config.describe(PLAIN, library, id="a").architecture == "x"
    assert not [fault for fault in check(library).faults if "describes model_type" in fault]


# ---------------------------------------------------------------- strangers' files


@pytest.mark.parametrize(
    "broken", ["[[[", "\0", "id = 3\n" + TABLE, TABLE + "like = 1 2", CHILD + TABLE + "colour = 1"]
)
def test_a_broken_file_breaks_its_own_family_only(broken: str, overlay: Overlay) -> None:
    library = overlay({"architectures/x.toml": broken})
    assert config.describe(PLAIN | {"model_type": "llama"}, library, id="a").architecture == "llama"
    with pytest.raises((SpecError, UndescribedConfigError)):
        config.describe(PLAIN, library, id="a")
    assert any("x.toml" in fault for fault in check(library).faults)


def test_a_file_that_cannot_be_read_breaks_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "architectures" / "x.toml").mkdir(parents=True)
    (tmp_path / "architectures" / "y.toml").write_bytes(b" " * (toml_files.MOST_BYTES + 1))
    library = Library(tmp_path)
    assert config.describe(PLAIN | {"model_type": "llama"}, library, id="a").architecture == "llama"
    faults = " ".join(check(library).faults)
    assert "x.toml: cannot be read: Is a directory" in faults
    assert "y.toml: larger than" in faults


def test_all_files_together_are_bounded(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.toml").write_text(f"[configs.{name}]\n" + "#" * 100)
    paths = {name: tmp_path / f"{name}.toml" for name in "ab"}
    size = sum(path.stat().st_size for path in paths.values())
    assert registry.claims(paths, most=size).keys() == {"a", "b"}
    with pytest.raises(SpecError, match=r"b\.toml: the architecture files have too many bytes in total"):
        registry.claims(paths, most=size - 1)


@pytest.mark.parametrize(
    "line", ["[", "[configs.", " [", "\t", '[configs."', "model_type =", "[configs.a", "[ configs ", "]#"]
)
def test_the_scan_of_a_hostile_file_takes_time_in_proportion(line: str, tmp_path: Path) -> None:
    """The longest file allowed, as one line and as many. Quadratic, it would take hours: 2**36 steps."""
    from tests.bounds import bounded

    for text in (line * (2**18 // len(line)), f"{line}\n" * (2**18 // (len(line) + 1)), (line + " ") * 2**16):
        path = tmp_path / "x.toml"
        path.write_text(text[: 2**18])
        with bounded():
            registry.claims({"x": path}, most=2**20)
