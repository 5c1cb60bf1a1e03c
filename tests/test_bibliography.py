"""Cites against the sources themselves: the lines of the installed packages hash to what is recorded, and no pin is lost."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlas.errors import SpecError
from atlas.evidence.bibliography import Lines, Place, catalogue_cite, evidence, place, relation
from atlas.spec.library import Library

PACKAGES = {"llama-models": "0.3.0", "fairscale": "0.4.13"}

# Pinned together, recorded apart: entries take values from the one or the other.
SPLIT = {"sku/vocabulary": ["LLAMA2_VOCAB_SIZE", "LLAMA3_VOCAB_SIZE"]}


Found = tuple[str, str, Lines, str]
"""What, source, lines, hash."""


def places(library: Library) -> Iterator[Found]:
    """Every place anything is cited from: of the bibliography, and of the catalogue's entries."""
    for name, cite in library.cites.items():
        for where in map(place, cite.at):
            yield name, where.source, where.lines, where.sha256
    for catalogue in map(library.catalogue, library.paths("catalogue")):
        for row in [entry.descriptor for entry in catalogue.entries] + list(catalogue.names):
            (where,) = map(place, catalogue_cite(catalogue, row).at)
            yield row, where.source, where.lines, where.sha256


def installed(library: Library, source: str) -> Path:
    """The file in the installed package, of the very version that is cited."""
    known = library.sources[source]
    try:
        version = metadata.version(known.package)
    except metadata.PackageNotFoundError:
        pytest.skip(f"{known.package} is not installed")
    if version != known.version:
        pytest.skip(f"{known.package} {version} is installed; cited is {known.version}")
    return Path(str(metadata.distribution(known.package).locate_file(known.package_path)))


def digest(lines: list[str], ranges: Lines) -> str:
    """Of the lines in order, each ended by one newline."""
    text = "".join(line + "\n" for first, last in ranges for line in lines[first - 1 : last])
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    "source",
    ["llama-models/model", "llama-models/sku_list", "llama-models/sku_types", "fairscale"],
)
def test_cited_lines_are_those_of_the_installed_package(source: str, library: Library) -> None:
    content = installed(library, source).read_bytes()
    known = library.sources[source]
    assert PACKAGES[known.package] == known.version
    assert hashlib.sha256(content).hexdigest() == known.file_sha256
    lines = content.decode().splitlines()
    assert len(lines) == known.lines
    checked = 0
    for name, where, ranges, sha256 in places(library):
        if where == source:
            assert digest(lines, ranges) == sha256, name
            checked += 1
    assert checked


def test_cited_lines_of_implementations(library: Library) -> None:
    """Whole classes and functions of the pinned transformers, if it is the one that is installed."""
    pinned = {name: source for name, source in library.sources.items() if source.role == "implementation"}
    assert len(pinned) > 40
    [(package, version)] = {(source.package, source.version) for source in pinned.values()}
    there = pytest.importorskip(package).__version__
    if there != version:
        pytest.skip(f"{package} {there} is installed, and {version} is cited")
    contents = {name: installed(library, name).read_bytes() for name in pinned}
    for name, content in contents.items():
        assert hashlib.sha256(content).hexdigest() == pinned[name].file_sha256, name
        assert len(content.decode().splitlines()) == pinned[name].lines, name
    for name, where, ranges, sha256 in places(library):
        if where in contents:
            lines = contents[where].decode().splitlines()
            assert digest(lines, ranges) == sha256, name
            assert lines[ranges[0][0] - 1].startswith(("class ", "def ", "@")), name


def test_every_packaged_source_is_checked(library: Library) -> None:
    packages = {
        source.package
        for source in library.sources.values()
        if source.package and source.role != "implementation"
    }
    assert packages == set(PACKAGES)


def test_no_pin_is_lost(library: Library, shared: Path) -> None:
    """Every fact pinned in evidence stands in our cites or the catalogue, with the same lines and the same hash."""
    pinned = json.loads((shared / "evidence" / "pins.json").read_text())
    ours = {(source, lines, sha256) for _, source, lines, sha256 in places(library)}
    missing = [
        pin["id"]
        for pin in pinned["pins"]
        if (pin["source"], tuple(map(tuple, pin["lines"])), pin["sha256"]) not in ours
    ]
    assert missing == list(SPLIT)
    assert len(pinned["pins"]) > 60


def test_the_pin_recorded_in_parts(library: Library, shared: Path) -> None:
    pinned = {pin["id"]: pin for pin in json.loads((shared / "evidence" / "pins.json").read_text())["pins"]}
    parts = {name: (lines, source) for name, source, lines, _ in places(library)}
    for pin, names in SPLIT.items():
        covered = [
            line for name in names for first, last in parts[name][0] for line in range(first, last + 1)
        ]
        wanted = [line for first, last in pinned[pin]["lines"] for line in range(first, last + 1)]
        assert covered == wanted
        assert {parts[name][1] for name in names} == {pinned[pin]["source"]}


def test_sources_are_those_pinned(library: Library, shared: Path) -> None:
    pinned = json.loads((shared / "evidence" / "pins.json").read_text())["sources"]
    both = set(pinned) & set(library.sources)
    assert {"llama3", "llama-models/model", "fairscale"} <= both
    for name in both:
        ours, theirs = library.sources[name], pinned[name]
        assert (ours.file_sha256, ours.lines) == (theirs["file_sha256"], theirs["lines"]), name
        assert ours.revision == theirs["revision"], name
        assert ours.path == theirs.get("repo_path", theirs["path"]), name


# ---------------------------------------------------------------- how a place is written

HASH = "0" * 63 + "f"


@given(
    st.from_regex(r"[a-z][a-z0-9/._-]{0,20}", fullmatch=True),
    st.lists(st.tuples(st.integers(1, 10**5), st.integers(0, 50)), min_size=1, max_size=5),
)
def test_a_place_is_read_back(source: str, spans: list[tuple[int, int]]) -> None:
    lines = tuple((first, first + more) for first, more in spans)
    written = ",".join(f"{first}-{last}" if last > first else f"{first}" for first, last in lines)
    assert place(f"{source} {written} sha256:{HASH}") == Place(source, lines, HASH)
    assert place(source) == Place(source)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "llama3 12",
        f"llama3 sha256:{HASH}",
        f"llama3 12- sha256:{HASH}",
        f"llama3 -12 sha256:{HASH}",
        f"llama3 1-2-3 sha256:{HASH}",
        f"llama3 1,,2 sha256:{HASH}",
        f"llama3 12 sha256:{HASH[1:]}",
        f"llama3 12 sha256:{HASH.upper()}",
        f"llama3 12 {HASH}",
        f"llama3  12 sha256:{HASH}",
        f"llama3 12–13 sha256:{HASH}",
    ],
)
def test_places_that_are_none(text: str) -> None:
    with pytest.raises(SpecError, match="expected a source, its lines and their hash") as caught:
        place(text)
    assert repr(text) in caught.value.message


@pytest.mark.parametrize("lines", ["5-4", "0", "0-3", "1-2,9-8"])
def test_lines_that_are_none(lines: str) -> None:
    with pytest.raises(SpecError, match=f"{lines} are not valid line ranges"):
        place(f"llama3 {lines} sha256:{HASH}")


# ---------------------------------------------------------------- how directly a claim is borne out


@pytest.mark.parametrize(
    ("source", "family", "expected"),
    [
        ("llama3", "llama3", "direct"),
        ("llama3", "llama3.1", "contextual"),  # a predecessor's code
        ("llama-models/model", "llama3.1", "direct"),
        ("llama-models/model", "llama2", "contextual"),
        ("llama-models/sku_list", "llama2", "direct"),
        ("fairscale", "llama3", "operation"),
        ("fairscale", "llama2", "operation"),
        ("hub/llama-2-13b", "llama2", "contextual"),  # a copy
        ("llama3", "", "contextual"),  # a configuration of nobody's family
    ],
)
def test_relations(source: str, family: str, expected: str, library: Library) -> None:
    assert relation(library.sources[source], family) == expected


def test_the_most_direct_comes_first(library: Library) -> None:
    found = evidence(["linear-storage", "rms-norm"], library, "llama3.1")
    assert [(item.relation, item.source) for item in found] == [
        ("direct", "llama-models/model"),
        ("contextual", "llama3"),
        ("operation", "fairscale"),
    ]
    assert found[0].lines == ((31, 42),)
    assert found[0].where == "model.py 31–42"
    assert found[2].where == "layers.py 258–262, 286–290, 345–349, 374–380"


def test_a_cite_counts_once(library: Library) -> None:
    assert len(evidence(["rms-norm", "rms-norm"], library, "llama3")) == 2


def test_entries_of_the_catalogue_are_cites(library: Library) -> None:
    (item,) = evidence(["catalogue/Llama3.2-1B"], library, "llama3.2")
    assert (item.relation, item.source, item.lines) == ("direct", "llama-models/sku_list", ((329, 346),))
    (item,) = evidence(["catalogue/arch_args_1b"], library, "llama3.2")
    assert item.lines == ((608, 620),)


def test_cites_that_are_none(library: Library) -> None:
    with pytest.raises(SpecError, match="no cite is called 'hearsay' in the bibliography"):
        evidence(["hearsay"], library)
    with pytest.raises(SpecError, match=r"the catalogue has neither an entry nor a name 'Llama3\.1-9B'"):
        catalogue_cite(library.catalogue("llama3.1"), "Llama3.1-9B")


def test_issue_lines_of_the_seed_are_within_the_file(library: Library) -> None:
    """Two pages of the site before cited line 303 of a file that has 302."""
    ends = [last for _, source, lines, _ in places(library) if source == "llama3" for _, last in lines]
    assert max(ends) == library.sources["llama3"].lines == 302


def test_a_fault_in_a_file_without_the_id_does_not_matter(tmp_path: Path) -> None:
    folder = tmp_path / "bibliography"
    folder.mkdir()
    (folder / "anew.toml").write_text("[cites.x\n")
    (folder / "transformers.bloom.toml").write_text(
        '[cites."transformers/bloom/head"]\nclaim = "Another."\nat = ["transformers/bloom"]\n'
    )
    library = Library(tmp_path)
    assert library.cite("rms-norm").at
    assert library.cite("transformers/bloom/head").claim == "Another."
    with pytest.raises(SpecError, match=r"anew\.toml: not TOML"):
        library.cite("cites.x")
    with pytest.raises(SpecError, match=r"anew\.toml: not TOML"):
        _ = library.cites
