"""Descriptions made to hang, to grow or to break the reader: each ends at once in an error that names the file."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import atlas
from atlas.cli.options import library_of
from atlas.errors import AtlasError, SpecError, UsageError
from atlas.grammar import shapes
from atlas.grammar.names import Template, holding
from atlas.graph.check import check
from atlas.resolution.catalogue_import.reader import read_catalogue
from atlas.spec import library as libraries
from atlas.spec import toml_files as toml_text
from atlas.spec.config_tables import config_table
from atlas.spec.library import Library, builtin_folder
from tests.bounds import bounded

Overlay = Callable[[Mapping[str, str]], Library]
AXIS = '[zz]\nmeaning = "x"\nsymbol = "x"\n'


def chain(links: int, each: str) -> str:
    """Axes each made of the next, `{}` in what they are made of."""
    text = "".join(
        f'[a{i}]\nmeaning = "x"\nsymbol = "x"\nis = "{each.format(f"a{i + 1}")}"\n' for i in range(links)
    )
    return text + f'[a{links}]\nmeaning = "x"\nsymbol = "x"\n'


HOSTILE_AXES = {
    "decimal": (AXIS + "size = " + "9" * 5000, "not TOML within the limits"),
    "hexadecimal": (AXIS + "size = 0x" + "f" * 6000, "more than 64 bits"),
    "65 bits": (AXIS + "size = 18446744073709551616", "zz.size: an integer of more than 64 bits"),
    "infinity": (AXIS + "size = inf", "not a finite number"),
    "not a number": (AXIS + "size = nan", "not a finite number"),
    "large float": (AXIS + "size = 1e999", "not a finite number"),
    "date": (AXIS + "size = 1979-05-27", "dates and times"),
    "impossible date": (AXIS + "size = 1979-13-27", "not TOML"),
    "dotted key": ("[" + "a." * 3000 + "b]", "nested"),
    "long dotted key": ("[" + "a." * 100_000 + "b]", "a line of 200,003 bytes"),
    "nested arrays": ("a = " + "[" * 4000 + "]" * 4000, "not TOML"),
    "long text": ("a = '''" + "xxxxxxx\n" * 2000 + "'''", "a string of 16,000 characters"),
    "null byte": ("a = '\0'", "not TOML"),
    "byte order mark": ("\ufeff" + AXIS, "not TOML"),
    "made of two of each": (chain(40, "{0} {0}"), "more than"),
    "made of 33": (chain(1, " ".join(["{0}"] * 33)), "more than 32 axes"),
    "long chain": (chain(3000, "{0}"), "more than 8 deep"),
    "circle": (chain(1, "{0}") + 'is = "a0"\n', "a0 is made of a1 is made of a0"),
}


@pytest.mark.parametrize("kind", HOSTILE_AXES)
def test_axes_that_are_no_vocabulary(kind: str, overlay: Overlay) -> None:
    text, words = HOSTILE_AXES[kind]
    with bounded(), pytest.raises(SpecError, match=r"axes\.toml") as caught:
        _ = overlay({"axes.toml": text}).parts
    assert words in caught.value.message
    assert len(caught.value.message) < 3000


@pytest.mark.parametrize(
    "size",
    [
        "(((((10**64)**64)**64)**64)**64)**64",
        "2**64 * 2**64 * 2**64 * 2**64 * 2**64",
        "(2**60)**5",
        "1e999",
        "1e999-1e999",
        "1e308*10",
        "9" * 900,
        "-" * 900 + "1",
        "+".join(["1"] * 2000),
        "2**48 + 1",
        "0",
        "-1",
        "1\0",
    ],
)
def test_sizes_beyond_any(size: str, overlay: Overlay) -> None:
    size = size.replace("\0", "\\u0000")
    with bounded():
        faults = check(overlay({"axes.toml": AXIS + f'size = "{size}"\n'})).faults
    assert faults
    assert all("zz" in fault or "x" in fault for fault in faults)


def test_a_value_is_bounded_on_the_way_and_not_only_at_the_end() -> None:
    assert shapes.evaluate("2**64 / 2**60", {}) == 16
    assert shapes.evaluate("(2**64)**3 / 2**64", {}) == 2**128
    for text in ("(2**64)**4 * 0", "0 * 1e999", "2**64 * 2**64 * 2**64 * 2**64 * 0"):
        with pytest.raises(SpecError):
            shapes.evaluate(text, {})


@pytest.mark.parametrize(
    "lines", ["[[1]]", "[[1, 2, 3]]", "[]", "[[]]", "[[0, 1]]", "[[-1, 2]]", "[[1, 1000000000]]", "[1, 2]"]
)
def test_lines_of_a_catalogue_that_are_no_ranges(lines: str, overlay: Overlay) -> None:
    text = (builtin_folder() / "catalogue" / "llama3.toml").read_text()
    old = next(line for line in text.splitlines() if line.startswith("lines = "))
    library = overlay({"catalogue/llama3.toml": text.replace(old, f"lines = {lines}", 1)})
    with pytest.raises(SpecError, match=r"llama3\.toml: .*lines"):
        library.catalogue("llama3")


@pytest.mark.parametrize(
    "at",
    ["x 5-1 sha256:" + "0" * 64, "x " + "9" * 5000 + " sha256:" + "0" * 64, "x 1" + ",1" * 40_000, ""],
)
def test_places_that_are_none(at: str, overlay: Overlay) -> None:
    written = at[:9000]
    library = overlay({"bibliography/x.toml": f'[cites.x]\nclaim = "x"\nat = ["{written}"]\n'})
    with bounded():
        assert any("place" in fault and len(fault) < 400 for fault in check(library).faults)


@pytest.mark.parametrize("name", ["../../secret", "/etc/secret", "a" * 300, "\\u0000", "x/../glu", "."])
def test_a_name_never_leads_out_of_its_folder(name: str, overlay: Overlay, tmp_path: Path) -> None:
    (tmp_path / "secret.toml").write_text("id = 'secret'")
    text = (builtin_folder() / "architectures" / "decoder.toml").read_text()
    assert 'is = "glu"' in text
    glu = (
        builtin_folder() / "components" / "glu.toml"
    ).read_text()  # so that the folder is there to lead out of
    library = overlay(
        {
            "architectures/decoder.toml": text.replace('is = "glu"', f'is = "{name}"'),
            "components/glu.toml": glu,
        }
    )
    with bounded():
        faults = check(library).faults
    assert faults
    assert all("no such description" in fault for fault in faults)


def test_tables_that_are_like_one_another_for_ever(overlay: Overlay) -> None:
    tables = "".join(f'[configs.c{i}]\nlike = "c{i + 1}"\n' for i in range(2000)) + "[configs.c2000]\n"
    text = (builtin_folder() / "architectures" / "llama.toml").read_text()
    library = overlay({"architectures/llama.toml": f"{text}\n{tables}"})
    with pytest.raises(SpecError, match="extend each other"):
        config_table(library.architecture("llama"), "c0")


# ---------------------------------------------------------------- what lies where a file should


@pytest.mark.parametrize("where", ["axes.toml", "components/x.toml"])
@pytest.mark.parametrize("kind", ["fifo", "folder", "device", "circle", "large", "bytes"])
def test_what_is_no_description_file(tmp_path: Path, where: str, kind: str) -> None:
    path = tmp_path / where
    path.parent.mkdir(exist_ok=True)
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind in ("device", "circle"):
        path.symlink_to("/dev/zero" if kind == "device" else path)
    elif kind == "large":
        with path.open("wb") as file:
            file.truncate(2**40)
    else:
        path.write_bytes(b"\xff" * 100)
    with bounded():
        library = Library(tmp_path)
        with pytest.raises(SpecError, match=path.name.replace(".", r"\.")):
            _ = library.component("x") if "components" in where else library.axes


def test_a_file_where_a_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "components").write_text("x")
    with pytest.raises(SpecError, match="components: cannot be read: Not a directory"):
        Library(tmp_path).paths("components")


def test_a_folder_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is there and cannot be read is told: the answer would be that of another description."""

    def refuse(_path: object) -> object:
        raise PermissionError(13, "Permission denied")

    library = Library(tmp_path)
    monkeypatch.setattr(os, "scandir", refuse)  # as root nothing is forbidden
    with pytest.raises(SpecError, match="Permission denied"):
        library.paths("components")


def test_more_files_and_bytes_than_any_description_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "components").mkdir()
    for i in range(20):
        (tmp_path / "components" / f"x{i}.toml").write_text("#" * 1000)
    monkeypatch.setattr(toml_text, "MOST_FILES", 19)
    with pytest.raises(SpecError, match="more than 19 description files"):
        Library(tmp_path).paths("components")
    monkeypatch.setattr(libraries, "MOST_BYTES", 1500)
    (tmp_path / "axes.toml").write_text("#" * 501)
    with pytest.raises(SpecError, match="more than 1,500 bytes"):
        _ = Library(tmp_path).axes  # after the atlas's own, which have 1,771


@pytest.mark.parametrize(
    "name", ["a" * 300, "x/" * 3000, "a\0b", "\ud800", "absent", "file", "circle", "fifo"]
)
def test_specs_that_are_no_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(UsageError, match="--specs"):
        library_of([tmp_path / name])
    for ask in (
        lambda: atlas.load("llama3.1-8b", specs=[tmp_path / name]),
        lambda: atlas.models(specs=str(tmp_path / name)),
        lambda: atlas.verify(tmp_path, specs=tmp_path / name),
        lambda: atlas.run("llama3.1-8b", specs=tmp_path / name),
    ):
        with pytest.raises(UsageError, match="--specs"):
            ask()
    with contextlib.suppress(AtlasError):
        _ = Library(tmp_path / name).axes
        _ = Library(tmp_path / name).paths("components")


# ---------------------------------------------------------------- names of tensors


@pytest.mark.parametrize(
    "text",
    [
        "{a}1{b}",
        "{a}{b}",
        "{a}" + "".join(f".{{b{i}}}" for i in range(9)),
        "{a²}",
        "{0}",
        "{a.b}",
        "{a!r}",
        "{",
        "{{a}}",
    ],
)
def test_templates_that_could_match_in_many_ways_or_are_none(text: str) -> None:
    with pytest.raises(SpecError):
        Template(text)


def test_an_index_of_thousands_of_digits_is_no_index() -> None:
    template = Template("layers.{layer}.w")
    assert template.match(f"layers.{'9' * 18}.w") == {"layer": 10**18 - 1}
    assert template.match(f"layers.{'9' * 5000}.w") is None
    with bounded():
        assert Template("{a}.{b}.{c}.{d}x").match("1." * 20_000) is None


@pytest.mark.parametrize(
    "text",
    [
        "a.b + " * 2000 + "a.b = *",
        "a.b = " + "x " * 2000,
        "a.b = " + "x " * 33,
    ],
)
def test_holdings_beyond_any_tensor(text: str) -> None:
    with bounded():
        with pytest.raises(SpecError) as caught:
            holding(text)
        assert len(caught.value.message) < 300


# ---------------------------------------------------------------- Meta's catalogue


@pytest.mark.parametrize("kind", ["fifo", "large", "deep", "warning"])
def test_a_catalogue_that_is_none(tmp_path: Path, kind: str, recwarn: pytest.WarningsRecorder) -> None:
    (tmp_path / "sku_types.py").write_text("")
    path = tmp_path / "sku_list.py"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "large":
        with path.open("wb") as file:
            file.truncate(2**40)
    elif kind == "deep":
        path.write_text("x = a" + ".a" * 60_000)
    else:
        path.write_text("x = '\\d'\ny = 1 is 2\n")
    with bounded(), pytest.raises(AtlasError):
        read_catalogue(tmp_path)
    assert not recwarn.list
