"""The description files as they stand: all load, every word is known and used, every fact is cited, every conflict is real."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from atlas import dtypes, spec
from atlas.errors import AtlasError, SpecError
from atlas.evidence.bibliography import place
from atlas.grammar import shapes
from atlas.grammar.names import holding
from atlas.graph.graph import Graph
from atlas.resolution import catalogued
from atlas.spec.library import Library, builtin_folder, read_toml

FILES = sorted(str(path.relative_to(builtin_folder())) for path in builtin_folder().rglob("*.toml"))
OPEN_SIZES = {"past"}
"""What a size may depend on that is no axis: the positions cached before a pass."""


@pytest.fixture(scope="module")
def components(library: Library) -> list[spec.Component]:
    return [library.component(name) for name in library.paths("components")]


@pytest.fixture(scope="module")
def architectures(library: Library) -> list[spec.Architecture]:
    return [library.architecture(name) for name in library.paths("architectures")]


@pytest.fixture(scope="module")
def described(library: Library) -> list[tuple[spec.Family, spec.Entry]]:
    """The models that have an entry of Meta's catalogue."""
    return [
        (family, entry)
        for family in catalogued_families(library)
        for entry in family.models
        if entry.architecture
    ]


def catalogued_families(library: Library) -> list[spec.Family]:
    return [library.family(name) for name in library.paths("catalogue")]


# ---------------------------------------------------------------- every file


@pytest.mark.parametrize("file", FILES)
def test_every_file_loads_and_is_called_what_it_is(file: str, library: Library) -> None:
    folder, _, name = file.removesuffix(".toml").rpartition("/")
    read: Mapping[str, Callable[[str], Any]] = {
        "components": library.component,
        "architectures": library.architecture,
        "models": library.family,
        "catalogue": library.catalogue,
        "quantisations": lambda name: next(each for each in library.quantisations() if each.id == name),
        "topics": lambda name: next(each for each in library.topics() if each.id == name),
        "bibliography": lambda name: library.paths("bibliography")[name] and library.sources,
        "": lambda name: getattr(library, name),
    }
    found = read[folder](name)
    assert found
    if folder in ("components", "architectures", "models"):
        assert found.id == name


@pytest.mark.parametrize("file", FILES)
def test_no_file_holds_another_files_code(file: str) -> None:
    """A description says what a source shows in words of its own: none of it is Python."""
    text = (builtin_folder() / file).read_text()
    assert not re.search(r"\bself\.|\bdef \w+\(|\breturn \w|nn\.Module|torch\.\w+\(", text)


def test_nothing_else_lies_there() -> None:
    assert {path.suffix for path in builtin_folder().rglob("*") if path.is_file()} == {".toml"}
    assert {Path(file).parts[0] for file in FILES} == {
        "axes.toml",
        "undescribed.toml",
        "bibliography",
        "components",
        "architectures",
        "quantisations",
        "topics",
        "catalogue",
        "models",
    }


# ---------------------------------------------------------------- axes


def words_of(text: str) -> list[str]:
    return re.findall(r"[a-z_]\w*", text)


def axes_used(
    library: Library, components: Iterable[spec.Component], architectures: Iterable[spec.Architecture]
) -> Iterator[str]:
    for axis in library.axes.values():
        yield from words_of(axis.size or "")
        yield from words_of(axis.parts or "")
    for component in components:
        written = [*component.ports.values(), *(weight.shape for weight in component.weights.values())]
        written += [step.shape for step in component.steps]
        for text in written:
            yield from shapes.atoms(shapes.parse(text))
        yield from (step.over for step in component.steps if step.over)
    for architecture in architectures:
        for entry in architecture.inputs.values():
            yield from shapes.atoms(shapes.parse(entry.shape))
        for derived, text in architecture.derived.items():
            yield from (derived, *(word for word in words_of(text) if word not in architecture.numbers))
        for stack in architecture.stacks.values():
            yield from (stack.over, *stack.axes, *stack.axes.values())
        for block in architecture.blocks.values():
            for node in block:
                yield from (*node.axes, *node.axes.values())
        for convention in architecture.conventions.values():
            for row in convention.tensors.values():
                held = row.holds if isinstance(row, spec.Row) else row
                for text in [held] if isinstance(held, str) else held:
                    layout = holding(text).layout or ()
                    yield from (axis for axis in shapes.atoms(layout) if axis != shapes.REST)
        for variant in architecture.variants.values():
            yield from (*variant.axes, *variant.axes.values())
        for part in architecture.graph:
            if part.node is not None:
                yield from (*part.node.axes, *part.node.axes.values())
        for table in architecture.configs.values():
            names = [
                name
                for names in table.used.values()
                for name in ([names] if isinstance(names, str) else names)
            ]
            yield from (name for name in names if name in library.axes)


def test_every_axis_used_is_known_and_every_axis_known_is_used(
    library: Library, components: list[spec.Component], architectures: list[spec.Architecture]
) -> None:
    used = set(axes_used(library, components, architectures)) - OPEN_SIZES - {shapes.LEADING}
    assert used == set(library.axes)


def test_symbols_and_placeholders_mean_one_axis_each(library: Library) -> None:
    symbols = [axis.symbol for axis in library.axes.values()]
    assert len(set(symbols)) == len(symbols)
    indices = [axis.index for axis in library.axes.values() if axis.index]
    assert indices == ["layer", "head", "kv_head", "expert"]
    assert all(axis.meaning for axis in library.axes.values())


def test_products_of_axes_end_in_simple_ones(library: Library) -> None:
    assert library.parts == {
        "n_heads": ("n_kv_heads", "group"),
        "head_dim": ("two", "pair"),
        "q_dim": ("n_heads", "head_dim"),
        "kv_dim": ("n_kv_heads", "head_dim"),
        "n_linear_value_heads": ("n_linear_key_heads", "value_group"),
        "n_global_heads": ("n_global_kv_heads", "global_group"),
    }


# ---------------------------------------------------------------- words


def test_every_component_and_step_says_what_it_does(components: list[spec.Component]) -> None:
    for component in components:
        for field in ("title", "summary", "expression", "text", "latex"):
            assert getattr(component, field), f"{component.id}: {field}"
        for step in component.steps:
            for field in ("symbol",) if step.use else ("text", "latex", "symbol"):
                assert getattr(step, field), f"{component.id}.{step.id}: {field}"


def all_words(
    components: Iterable[spec.Component], architectures: Iterable[spec.Architecture]
) -> Iterator[tuple[str, str]]:
    for component in components:
        yield component.id, component.latex
        yield from ((f"{component.id}.{step.id}", step.latex) for step in component.steps)
    for architecture in architectures:
        yield from ((f"{architecture.id}.{name}", page.latex) for name, page in architecture.pages.items())


def test_latex_is_balanced(components: list[spec.Component], architectures: list[spec.Architecture]) -> None:
    for where, latex in all_words(components, architectures):
        depth = 0
        for character in latex.replace(r"\{", "").replace(r"\}", ""):
            depth += (character == "{") - (character == "}")
            assert depth >= 0, where
        assert depth == 0, where
        opened, closed = (len(re.findall(rf"\\{word}(?![a-z])", latex)) for word in ("left", "right"))
        assert opened == closed, where
        assert "\t" not in latex, where
        assert "\f" not in latex, where


def test_dtypes_are_codes(components: list[spec.Component], architectures: list[spec.Architecture]) -> None:
    codes = {"A", *dtypes.BITS}
    for component in components:
        for step in component.steps:
            assert {step.dtype, step.computed_in} <= codes
    assert all(entry.dtype in codes for a in architectures for entry in a.inputs.values())


def test_every_page_is_of_something_there_is(library: Library, graph_of: Callable[[str], Graph]) -> None:
    graph = graph_of("llama3.1-8b")
    nodes = {node.id for block in graph.blocks for node in block.nodes}
    weights = {weight.component for weight in graph.weights.values()}
    assert set(library.architecture("llama").pages) <= nodes | weights


# ---------------------------------------------------------------- cites


def cited(table: object) -> Iterator[str]:
    """Every name in every list called `cites`, wherever it stands."""
    if isinstance(table, dict):
        for key, value in table.items():
            if key == "cites":
                yield from value
            elif key == "evidence":
                yield from (cite for cites in value.values() for cite in cites)
            else:
                yield from cited(value)
    elif isinstance(table, list):
        for value in table:
            yield from cited(value)


@pytest.fixture(scope="module")
def references() -> dict[str, set[str]]:
    """Cite -> the files that name it."""
    found: dict[str, set[str]] = {}
    for file in FILES:
        if not file.startswith("bibliography/"):
            for name in cited(read_toml(builtin_folder() / file)):
                found.setdefault(name, set()).add(file)
    return found


def test_every_cite_exists_and_is_used(library: Library, references: dict[str, set[str]]) -> None:
    assert set(references) == set(library.cites)


def test_every_source_exists_and_is_used(library: Library) -> None:
    used = {place(text).source for cite in library.cites.values() for text in cite.at}
    used |= {library.catalogue(name).source for name in library.paths("catalogue")}
    assert used == set(library.sources)


def test_lines_are_in_the_file(library: Library) -> None:
    """A published configuration is cited by its values; everything else by lines, and those are in the file."""
    for name, cite in library.cites.items():
        for where in map(place, cite.at):
            source = library.sources[where.source]
            assert bool(where.lines) == bool(source.lines), name
            assert bool(cite.values) != bool(where.lines), name
            within(where.lines, source, name)
    for catalogue in map(library.catalogue, library.paths("catalogue")):
        for entry in catalogue.entries:
            within(entry.lines, library.sources[catalogue.source], entry.descriptor)
            assert re.fullmatch(r"[0-9a-f]{64}", entry.sha256), entry.descriptor
        for name, named in catalogue.names.items():
            within(named.lines, library.sources[catalogue.source], name)
            assert re.fullmatch(r"[0-9a-f]{64}", named.sha256), name


def within(lines: Iterable[Iterable[int]], source: spec.Source, what: str) -> None:
    """In order, none twice, and none beyond the file's end."""
    before = 0
    for first, last in lines:
        assert before < first <= last <= source.lines, what
        before = last


def test_sources_are_fixed(library: Library) -> None:
    """At a commit, never at a branch; a file that lines are cited of has its length and its hash."""
    for name, source in library.sources.items():
        assert re.fullmatch(r"[0-9a-f]{7,40}", source.revision) or source.version, name
        assert re.fullmatch(r"[\w.-]+/[\w.-]+", source.repo), name
        assert source.title, name
        assert bool(source.lines) == bool(source.file_sha256), name
        if source.file_sha256:
            assert re.fullmatch(r"[0-9a-f]{64}", source.file_sha256), name
        assert bool(source.package) == bool(source.version) == bool(source.package_path), name


def test_a_source_describes_families_there_are(library: Library) -> None:
    families = set(library.paths("models"))
    for name, source in library.sources.items():
        assert set(source.describes) <= families, name
        assert not (source.role == "dependency" and source.describes), name
    catalogue = library.sources["llama-models/sku_list"]
    assert set(catalogue.describes) == set(library.paths("catalogue"))


def test_no_claim_is_twice(library: Library) -> None:
    claims = [cite.claim for cite in library.cites.values()]
    assert len(set(claims)) == len(claims)
    assert all(cite.at for cite in library.cites.values())


# ---------------------------------------------------------------- conflicts


def test_every_conflict_is_one(library: Library, described: list[tuple[spec.Family, spec.Entry]]) -> None:
    """The catalogue's value is not the one used, and both are said, with a reason and a cite."""
    seen = 0
    for family, entry in described:
        model = catalogued.describe(family, entry, library)
        assert (model.warnings, model.gaps) == ((), ()), entry.id
        for conflict in model.conflicts:
            assert conflict.catalogue != conflict.used, f"{entry.id}: {conflict.field}"
            assert conflict.why, f"{entry.id}: {conflict.field}"
            assert conflict.cites, f"{entry.id}: {conflict.field}"
            seen += 1
        assert len({conflict.field for conflict in model.conflicts}) == len(model.conflicts)
    assert seen > 40


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"field": "n_kv_head", "used": 32}, "conflict n_kv_head: the catalogue entry has no such argument"),
        (
            {"field": "lora_args", "absent": True},
            "conflict lora_args: the catalogue entry has no such argument",
        ),
        (
            {"field": "rope_scaling.factor", "used": "32"},
            "conflict rope_scaling.factor: used = '32', expected a number",
        ),
        ({"field": "vocab_size", "used": -1}, "vocab_size is -1"),
    ],
)
def test_a_conflict_with_nothing_is_refused(
    change: dict[str, Any], words: str, library: Library, described: list[tuple[spec.Family, spec.Entry]]
) -> None:
    family, entry = described[0]
    conflict = spec.Conflict(**{"why": "because", "cites": ["rope-scaling"]} | change)
    with pytest.raises(AtlasError) as caught:
        catalogued.describe(family, entry.model_copy(update={"conflicts": [conflict]}), library)
    assert words in caught.value.message


def test_a_model_without_an_entry_is_refused(
    library: Library, described: list[tuple[spec.Family, spec.Entry]]
) -> None:
    family, entry = described[0]
    with pytest.raises(SpecError, match=f"model {entry.id}: the catalogue has no entry 'Llama9'"):
        catalogued.describe(family, entry.model_copy(update={"catalogue": "Llama9"}), library)


# What issue 2 says of the catalogue's entries: (model, field, what the catalogue says, what is used).
KNOWN_CONFLICTS = [
    *((f"llama2-7b{suffix}", "n_kv_heads", 8, 32) for suffix in ("", "-chat")),
    *((f"llama2-7b{suffix}", "ffn_dim_multiplier", 1.3, None) for suffix in ("", "-chat")),
    *((f"llama2-7b{suffix}", "rope_theta", 500000.0, 10000.0) for suffix in ("", "-chat")),
    *((f"llama2-13b{suffix}", "n_kv_heads", 8, 40) for suffix in ("", "-chat")),
    *((f"llama2-13b{suffix}", "ffn_dim_multiplier", 1.3, None) for suffix in ("", "-chat")),
    *((f"llama2-13b{suffix}", "rope_theta", 500000.0, 10000.0) for suffix in ("", "-chat")),
    *((f"llama2-70b{suffix}", "rope_theta", 500000.0, 10000.0) for suffix in ("", "-chat")),
    ("llama2-70b-chat", "multiple_of", 256, 4096),
    ("llama-guard-2-8b", "vocab_size", 32000, 128256),
    ("llama-guard-2-8b", "multiple_of", 256, 1024),
    ("llama-guard-2-8b", "max_seq_length", 4096, 8192),
    *((f"llama3.2-{size}{suffix}", "tie_word_embeddings", None, True) for size in ("1b", "3b") for suffix in ("", "-instruct")),
    *((f"llama3.2-{size}{suffix}", "rope_scaling.factor", 8.0, 32.0) for size in ("1b", "3b") for suffix in ("", "-instruct")),
    ("llama-guard-3-8b", "use_scaled_rope", False, True),
]  # fmt: skip


@pytest.mark.parametrize(("name", "field", "catalogue", "used"), KNOWN_CONFLICTS)
def test_the_known_conflicts(
    name: str, field: str, catalogue: object, used: object, graph_of: Callable[[str], Graph]
) -> None:
    found = {conflict.field: conflict for conflict in graph_of(name).model.conflicts}
    assert (found[field].catalogue, found[field].used) == (catalogue, used)


def test_what_the_conflicts_give(graph_of: Callable[[str], Graph]) -> None:
    """The dimensions as released, by the issue, and their settings."""
    dims = graph_of("llama2-7b").dims
    assert (dims["n_kv_heads"], dims["ffn_dim"]) == (32, 11_008)
    dims = graph_of("llama2-13b-chat").dims
    assert (dims["n_kv_heads"], dims["ffn_dim"]) == (40, 13_824)
    assert graph_of("llama2-70b-chat").dims["ffn_dim"] == 28_672
    assert graph_of("llama-guard-2-8b").dims["vocab_size"] == 128_256
    assert graph_of("llama-guard-2-8b").model.context_length == 8_192
    assert graph_of("llama-guard-3-8b").model.rope["factor"] == 8.0
    assert graph_of("llama-guard-3-1b").model.rope["factor"] == 8.0
    assert graph_of("llama-guard-3-1b").model.flags["tied"] is False
    assert graph_of("llama3.2-3b").model.rope["factor"] == 32.0
    assert graph_of("llama3.1-405b:bf16-mp16").dims["n_kv_heads"] == 16
    assert {graph_of(name).model.dtype for name in ("llama2-7b", "llama2-13b", "llama2-70b")} == {"F16"}


def test_a_conflict_over_the_id_is_the_id_used(
    library: Library, described: list[tuple[spec.Family, spec.Entry]]
) -> None:
    """Where the catalogue's Hub id is not that of the weights, the model's id is the published one."""
    for family, entry in described:
        row = catalogued.catalogue_row(library.catalogue(family.id), entry)
        by_field = {conflict.field: conflict for conflict in entry.conflicts}
        if entry.hub_id != row.huggingface_repo:
            assert by_field["huggingface_repo"].used == entry.hub_id, entry.id
        else:
            assert "huggingface_repo" not in by_field, entry.id
        stored = {"bf16": "BF16", "fp16": "F16"}[row.quantization_format]
        assert (stored != entry.dtype) == ("quantization_format" in by_field), entry.id


# ---------------------------------------------------------------- published values


def test_a_models_dimensions_are_those_published(
    library: Library,
    described: list[tuple[spec.Family, spec.Entry]],
    bound: Callable[..., Graph],
    graph_of: Callable[[str], Graph],
) -> None:
    """Read as the config.json it was, the cite gives the model: dimensions, ties, theta, scaling, dtype, context.

    A source's title ends in the publisher's id; a chat or instruct model has the dimensions of its base.
    """
    for name, cite in library.cites.items():
        if "hidden_size" not in cite.values:
            continue
        publisher = library.sources[cite.at[0]].title.rpartition(" ")[2]
        values = {"vocab_size": 128256, "model_type": "llama"} | cite.values
        graph = bound(values)
        theirs = graph.model
        matching = 0
        for _, entry in described:
            if publisher in (entry.hub_id, (entry.hub_id or "").replace("-chat", "")):
                ours = graph_of(entry.id)
                assert ours.dims == graph.dims, (entry.id, name)
                assert ours.model.context_length == theirs.context_length, (entry.id, name)
                if "tie_word_embeddings" in values:
                    assert ours.model.flags == theirs.flags, (entry.id, name)
                if "rope_theta" in values:
                    assert ours.model.numbers["rope_theta"] == theirs.numbers["rope_theta"], (entry.id, name)
                    assert ours.model.rope == theirs.rope, (entry.id, name)
                if theirs.dtype_stated:
                    assert ours.model.dtype == theirs.dtype, (entry.id, name)
                matching += 1
        assert matching, name


def test_published_values_are_those_in_evidence(library: Library, shared: Path) -> None:
    """Each value a cite repeats is the value read in the copy, where that was written down."""
    import json

    facts = json.loads((shared / "evidence" / "hub-configs.json").read_text())["facts"]
    by_publisher = {fact["publisher"].split()[0]: fact["values"] for fact in facts}
    compared = 0
    for name, cite in library.cites.items():
        if not cite.values:
            continue
        title = library.sources[cite.at[0]].title
        values = next((v for who, v in by_publisher.items() if title.endswith(f" {who}")), None)
        for key, value in (cite.values if values else {}).items():
            if values and key in values:
                assert values[key] == value, (name, key)
                compared += 1
    assert compared > 40


# ---------------------------------------------------------------- files that are wrong


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a = [1,\n= 2", "not TOML: .*line 2, column 1"),
        ("[a]\nmeaning = 'x'\nsymbol = 3", "a: symbol: input should be a valid string, found 3"),
        ("[a]\nmeaning = 'x'", "a: symbol: field required"),
        (
            "[a]\nmeaning = 'x'\nsymbol = 'y'\nsise = '2'",
            "a: sise: extra inputs are not permitted, found '2'",
        ),
        ("a = 1", "a: the table: input should be a valid dictionary"),
    ],
)
def test_a_wrong_axis_is_said_with_its_file(
    text: str, words: str, overlay: Callable[[Mapping[str, str]], Library]
) -> None:
    with pytest.raises(SpecError, match=words) as caught:
        _ = overlay({"axes.toml": text}).axes
    assert "axes.toml" in caught.value.message
    assert "\n" not in caught.value.message


def test_a_file_that_is_not_utf_8(tmp_path: Path) -> None:
    (tmp_path / "axes.toml").write_bytes(b"a = '\xff'")
    with pytest.raises(SpecError, match=r"axes\.toml: not TOML: .*utf-8"):
        _ = Library(tmp_path).axes


def test_a_file_nested_beyond_reason(tmp_path: Path) -> None:
    (tmp_path / "axes.toml").write_text("a = " + "[" * 10_000 + "]" * 10_000)
    with pytest.raises(SpecError, match=r"axes\.toml: not TOML"):
        _ = Library(tmp_path).axes


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "components").mkdir()
    (tmp_path / "components" / "glu.toml").symlink_to(tmp_path / "nowhere")
    assert Library(tmp_path).component("glu").id == "glu"  # a link to nothing is no file
    with pytest.raises(SpecError, match=r"nowhere: cannot be read: No such file or directory"):
        read_toml(tmp_path / "nowhere")


def test_what_is_not_there_is_said_with_what_is(library: Library) -> None:
    with pytest.raises(SpecError, match=r"components/atention\.toml: no such description") as caught:
        library.component("atention")
    assert "attention" in caught.value.hint
    with pytest.raises(SpecError, match=r"architectures/bert\.toml: no such description"):
        library.architecture("bert")
    with pytest.raises(SpecError, match="somewhere: no source is called 'gossip' in the bibliography"):
        library.source("gossip", "somewhere")
    with pytest.raises(SpecError, match="no cite is called 'hearsay' in the bibliography"):
        library.cite("hearsay")


def test_a_file_is_called_what_it_calls_itself(overlay: Callable[[Mapping[str, str]], Library]) -> None:
    text = (builtin_folder() / "components" / "glu.toml").read_text()
    with pytest.raises(SpecError, match=r"gated\.toml: id is 'glu', expected the file's name, 'gated'"):
        overlay({"components/gated.toml": text}).component("gated")


@pytest.mark.parametrize(
    ("axes", "words"),
    [
        ("a = { meaning = '', symbol = '', is = 'b dim' }", "a is made of b, which is not an axis"),
        ("a = { meaning = '', symbol = '', is = 'dim a' }", "a is made of a"),
        (
            "a = { meaning = '', symbol = '', is = 'b' }\nb = { meaning = '', symbol = '', is = 'a' }",
            "a is made of b is made of a",
        ),
    ],
)
def test_axes_made_of_themselves_or_nothing(
    axes: str, words: str, overlay: Callable[[Mapping[str, str]], Library]
) -> None:
    with pytest.raises(SpecError, match=words):
        _ = overlay({"axes.toml": axes}).parts


def test_a_further_folder_adds_and_takes_the_place(overlay: Callable[[Mapping[str, str]], Library]) -> None:
    glu = (builtin_folder() / "components" / "glu.toml").read_text()
    library = overlay(
        {
            "axes.toml": "width = { meaning = 'mine', symbol = 'w' }\ndim = { meaning = 'theirs', symbol = 'D' }",
            "components/glu.toml": glu.replace("Feed-forward (SwiGLU)", "Mine"),
        }
    )
    assert library.axes["width"].meaning == "mine"
    assert library.axes["dim"].meaning == "theirs"
    assert library.axes["ffn_dim"].symbol == "f"
    assert library.component("glu").title == "Mine"
    assert library.component("linear").id == "linear"
    assert "glu" in library.paths("components")
    assert Library().component("glu").title == "Feed-forward (SwiGLU)"
