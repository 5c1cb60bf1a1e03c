"""Names of checkpoints: conventions built like others, names apart, one name for several nodes, and names looked up."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from atlas.errors import SpecError
from atlas.grammar.names import Template
from atlas.graph import rows as bound_rows
from atlas.graph import tensors
from atlas.graph.binding import bind
from atlas.graph.graph import Graph
from atlas.resolution import config
from atlas.spec.library import Library
from tests.bounds import bounded
from tests.test_bind import model
from tests.test_bind_options import LAYERS, attention, bound, changed
from tests.test_grammar_holds import SETTINGS, SPECS

Overlay = Callable[[Mapping[str, str]], Library]

FUSED = """
[conventions.fused]
title = "Fused"
like  = "hf"
[conventions.fused.tensors]
"model.layers.{layer}.mlp.gate_up" = "feed_forward.w1 + feed_forward.w3 = * dim"
"""


def shapes_of(graph: Graph, convention: str) -> dict[str, tuple[int, ...]]:
    return {each.name: each.shape for each in tensors.expected(graph, convention)}


# ---------------------------------------------------------------- conventions like others


def test_a_convention_like_another_has_its_other_rows(overlay: Overlay) -> None:
    graph = bound(changed(overlay, end=FUSED))
    hub, fused = shapes_of(graph, "hf"), shapes_of(graph, "fused")
    assert fused.keys() - hub.keys() == {f"model.layers.{i}.mlp.gate_up" for i in range(3)}
    assert hub.keys() - fused.keys() == {
        f"model.layers.{i}.mlp.{w}_proj.weight" for i in range(3) for w in ("gate", "up")
    }
    assert fused["model.layers.1.mlp.gate_up"] == (160, 48)
    assert sum(map(math.prod, hub.values())) == sum(map(math.prod, fused.values()))


def test_a_convention_like_another_has_its_prefix_and_may_state_its_own(overlay: Overlay) -> None:
    """A base model's names have no prefix; which depends on the flag `head` in both."""
    headless = {"flags": {"tied": False, "head": "off"}}
    graph = bound(changed(overlay, end=FUSED), **headless)
    assert "layers.0.mlp.gate_up" in shapes_of(graph, "fused")
    own = bound(changed(overlay, end=FUSED.replace("like  =", 'prefix = ""\nlike  =')), **headless)
    assert "model.layers.0.mlp.gate_up" in shapes_of(own, "fused")


@pytest.mark.parametrize(
    ("like", "words"),
    [
        ("hub", "decoder: conventions.fused: like = 'hub': there is no such convention"),
        ("fused", "decoder: conventions.fused: like: fused is like fused"),
        ("other", "decoder: conventions.other: like: fused is like other is like fused"),
    ],
)
def test_a_convention_like_none(like: str, words: str, overlay: Overlay) -> None:
    end = (
        FUSED.replace('"hf"', f'"{like}"')
        + '[conventions.other]\ntitle = "x"\nlike = "fused"\ntensors = {}\n'
    )
    graph = bound(changed(overlay, end=end))
    with pytest.raises(SpecError) as caught:
        tensors.rows(graph, "fused")
    assert words in caught.value.message


# ---------------------------------------------------------------- rows of the architecture that this one is built like

HEIR = """
id = "heir"
like = "decoder"
title = "Heir"
blocks.feed_forward = [
  { id = "ffn_norm", is = "rms_norm", of = "x" },
  { id = "out", is = "add", of = ["x", "ffn_norm"] },
]
"""


def heir(overlay: Overlay, more: str = "") -> Graph:
    return bound_as("heir", overlay({"architectures/heir.toml": HEIR + more}))


def bound_as(architecture: str, library: Library) -> Graph:
    return bind(model(library, architecture=architecture), library)


def test_inherited_rows_of_what_is_not_here_are_left_out(overlay: Overlay) -> None:
    """Seven weights of an attention block's layer and one of the other; no row of the feed-forward that is gone."""
    found = shapes_of(heir(overlay), "hf")
    assert len(found) == 3 * (1 + 4 + 1) + 3
    assert not [name for name in found if ".mlp." in name]


def test_own_rows_of_what_is_not_here_are_refused(overlay: Overlay) -> None:
    row = '[conventions.hf.tensors]\n"model.layers.{layer}.x" = "feed_forward.w1"\n'
    with pytest.raises(
        SpecError,
        match=r"'model\.layers\.\{layer\}\.x' contains feed_forward\.w1, which no component declares",
    ):
        tensors.rows(heir(overlay, row), "hf")


def test_an_own_row_takes_a_weight_from_the_inherited_one(overlay: Overlay) -> None:
    row = '[conventions.hf.tensors]\n"model.layers.{layer}.ln.weight" = "attention_norm.weight"\n'
    found = shapes_of(heir(overlay, row), "hf")
    assert "model.layers.2.ln.weight" in found
    assert "model.layers.2.input_layernorm.weight" not in found


# ---------------------------------------------------------------- one name for nodes in different layers

TWO = (
    "[blocks]",
    '[blocks]\nother = [{ id = "other_norm", is = "rms_norm", of = "x" }, { id = "plain", is = "glu", of = "other_norm" }]',
)
IN_TURN = (
    LAYERS,
    'layers = [[{ block = "attention" }], [{ block = "other", every = "2" }, { block = "feed_forward" }]]',
)
ONE_NAME = (
    ('= "ffn_norm.weight"', '= ["ffn_norm.weight", "other_norm.weight"]'),
    *((f'= "feed_forward.w{i}"', f'= ["feed_forward.w{i}", "plain.w{i}"]') for i in (1, 2, 3)),
)


def test_one_name_for_nodes_in_different_layers(overlay: Overlay) -> None:
    graph = bound(changed(overlay, IN_TURN, TWO, *ONE_NAME))
    assert len(shapes_of(graph, "hf")) == 3 * 9 + 3
    rows = [row for row in tensors.rows(graph, "hf") if "gate_proj.weight" in row.template.text]
    assert [(row.weights[0].id, row.layers) for row in rows] == [
        ("feed_forward.w1", ("layer", (0, 2))),
        ("plain.w1", ("layer", (1,))),
    ]
    names = tensors.Names(tensors.rows(graph, "hf"))
    assert [names.row(f"model.layers.{i}.mlp.gate_proj.weight") for i in range(3)] == [
        rows[0],
        rows[1],
        rows[0],
    ]
    assert names.get("model.layers.1.mlp.gate_proj.weight") == (rows[1], {"layer": 1})


def test_one_name_for_two_weights_of_a_layer_is_refused(overlay: Overlay) -> None:
    graph = bound(
        changed(
            overlay,
            ('= "attention.wv"', '= ["attention.wv", "feed_forward.w2"]'),
            ('"model.layers.{layer}.mlp.down_proj.weight"            = "feed_forward.w2"\n', ""),
        )
    )
    with pytest.raises(
        SpecError, match=r"is the name of attention\.wv and of feed_forward\.w2 in the same layer"
    ):
        tensors.rows(graph, "hf")


def test_used_components_have_names(overlay: Overlay) -> None:
    """A weight of a used component is called by its step; the misspelt one is refused."""
    heads = attention('qk_norm = "head"')
    row = '.self_attn.k_norm.weight"         = "attention.k_norm"'
    found = shapes_of(bound(changed(overlay, heads)), "hf")
    assert found["model.layers.0.self_attn.q_norm.weight"] == (4,)
    assert found["model.layers.2.self_attn.k_norm.weight"] == (4,)
    off = shapes_of(bound(changed(overlay)), "hf")  # the weight is declared, and absent here
    assert found.keys() - off.keys() == {
        f"model.layers.{i}.self_attn.{w}_norm.weight" for i in range(3) for w in "qk"
    }
    for change in ((), (heads,)):
        graph = bound(changed(overlay, *change, (row, row.replace("attention.k_norm", "attention.k_nrm"))))
        with pytest.raises(SpecError, match=r"contains attention\.k_nrm, which no component declares"):
            tensors.rows(graph, "hf")


# ---------------------------------------------------------------- apart


def apart(overlay: Overlay, patterns: Mapping[str, str], **change: object) -> tensors.Apart:
    lines = "".join(f'"{pattern}" = "{what}"\n' for pattern, what in patterns.items())
    return tensors.Apart(bound(changed(overlay, end=f"[conventions.hf.apart]\n{lines}"), **change), "hf")


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("model.layers.{n_layers}.*", "model.layers.3.mlp.w", True),
        ("model.layers.{n_layers}.*", "model.layers.2.mlp.w", False),
        ("model.layers.{n_layers}.*", "model.layers.31.mlp.w", False),
        ("model.layers.{n_layers}.*", "xmodel.layers.3.mlp.w", False),
        ("model.layers.{n_layers + 1}.*", "model.layers.4.w", True),
        ("model.layers.*.inv_freq", "model.layers.7.rotary.inv_freq", True),
        ("model.layers.*.inv_freq", "model.layers..inv_freq", True),
        ("model.layers.*.inv_freq", "model.layers.inv_freq", False),
        ("model.layers.*.inv_freq", "model.layers.0.inv_freq.x", False),
        ("a*b*a", "aba", True),
        ("a*b*a", "aa", False),
        ("a*a", "a", False),
        ("a.b", "a.b", True),
        ("a.b", "axb", False),
        ("*", "anything", True),
    ],
)
def test_names_apart(pattern: str, name: str, fits: bool, overlay: Overlay) -> None:
    assert apart(overlay, {pattern: "of more tokens"}).what(name) == ("of more tokens" if fits else None)


def test_names_apart_have_no_prefix_where_no_name_has(overlay: Overlay) -> None:
    found = apart(overlay, {"model.mtp.*": "x"}, flags={"tied": False, "head": "off"})
    assert (found.what("mtp.w"), found.what("model.mtp.w")) == ("x", None)


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("a.{layers}.*", "conventions.hf.apart: 'a.{layers}.*': 'layers': layers has no value here"),
        ("a.{n_layers * 0.5}.*", "n_layers * 0.5 is 1.5, expected an integer"),
        ("a.{}", "is not arithmetic on named axes"),
        ("a" * 1_001, "a pattern of 1,001 characters, expected at most 1,000"),
    ],
)
def test_patterns_that_are_none(pattern: str, words: str, overlay: Overlay) -> None:
    with pytest.raises(SpecError) as caught:
        apart(overlay, {pattern: "x"})
    assert words in caught.value.message


def test_a_pattern_of_many_stars_takes_no_time(overlay: Overlay) -> None:
    found = apart(overlay, {"a*" * 400 + "b": "x"})
    with bounded():
        assert found.what("a" * 100_000) is None


# ---------------------------------------------------------------- names looked up


@pytest.fixture(scope="module")
def experts() -> Graph:
    library = Library(SPECS)
    return bind(config.describe(SETTINGS, library, id="patchwork"), library)


@pytest.mark.parametrize("convention", ["hf", "meta"])
def test_every_name_is_found_with_its_row_and_indices(convention: str, experts: Graph) -> None:
    """As a search through all rows finds it."""
    rows = tensors.rows(experts, convention)
    names = tensors.Names(rows)
    assert list(names) == [name for row in rows for name, _ in row.names()]
    assert len(names) == sum(row.count for row in rows)
    for name in names:
        (row,) = [row for row in rows if row.template.match(name) is not None]
        assert names.get(name) == names.alike(name) == (row, row.template.match(name))
        assert names.row(name) is row
        assert name in names


def test_names_that_are_not_there(experts: Graph) -> None:
    names = tensors.Names(tensors.rows(experts, "hf"))
    for name in ("", "text.layers.7.norm2.weight", "text.layers.02.attn.q.weight", "text.norm.weight "):
        assert names.get(name) is names.row(name) is None
        assert name not in names
    found = names.alike("text.layers.99.moe.experts.500.down.weight")
    assert found is not None
    assert found[0].weights[0].id == "experts.w2"
    assert found[1] == {"layer": 99, "expert": 500}
    assert names.alike("text.layers.9.nothing") is None


def test_indices_in_another_order_and_percent_signs(experts: Graph) -> None:
    """A name may count experts before layers, or one index twice, and may contain what formats a text."""
    row = next(row for row in tensors.rows(experts, "hf") if row.weights[0].id == "experts.w2")
    for text in ("e.{expert}.l.{layer}.%d", "100%.{layer}.{expert}.{layer}"):
        turned = replace(row, template=Template(text))
        assert list(turned.names()) == [
            (Template(text).expand(layer=i, expert=e), {"layer": i, "expert": e})
            for i in (2, 3, 4, 5, 6)
            for e in range(9)
        ]
        names = tensors.Names([turned])
        assert names.get(Template(text).expand(layer=4, expert=8)) == (turned, {"layer": 4, "expert": 8})


def test_a_name_of_two_rows_is_refused(experts: Graph) -> None:
    rows = tensors.rows(experts, "hf")
    layers = next(row for row in rows if row.template.text == "text.layers.{layer}.moe_norm.weight")
    single = next(row for row in rows if row.layers is None)
    literal = replace(single, template=Template("text.layers.3.moe_norm.weight"))
    with pytest.raises(SpecError) as caught:
        tensors.Names([layers, literal])
    assert caught.value.message == (
        "'text.layers.3.moe_norm.weight': text.layers.3.moe_norm.weight is also a name of "
        "'text.layers.{layer}.moe_norm.weight'"
    )
    with pytest.raises(SpecError, match="is also a name of"):
        tensors.Names([single, single])


def test_more_names_than_any_model_has(experts: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    count = sum(row.count for row in tensors.rows(experts, "hf"))
    experts.rows.clear()
    monkeypatch.setattr(bound_rows, "MOST_NAMES", count - 1)
    with pytest.raises(SpecError, match=f"conventions.hf: {count:,} tensors; the limit is {count - 1:,}"):
        tensors.rows(experts, "hf")
    monkeypatch.setattr(bound_rows, "MOST_NAMES", count)
    assert len(list(tensors.expected(experts, "hf"))) == count


def test_the_layer_of_every_tensor(experts: Graph) -> None:
    for tensor in tensors.expected(experts, "hf"):
        indices = tensor.row.template.match(tensor.name)
        assert indices is not None
        word = tensor.row.layers[0] if tensor.row.layers else ""
        assert tensor.layer == indices.get(word)


def test_names_with_several_indices(experts: Graph) -> None:
    """2 layers × 3 × 4: the last index runs fastest."""
    single = next(row for row in tensors.rows(experts, "hf") if row.layers is None)
    row = replace(
        single, template=Template("{layer}.{a}.{b}"), layers=("layer", (5, 8)), indices=(("a", 3), ("b", 4))
    )
    names = tensors.Names([single, row])
    assert len(names) == 1 + 2 * 3 * 4
    for layer in (5, 8):
        for a in range(3):
            for b in range(4):
                assert names.get(f"{layer}.{a}.{b}") == (row, {"layer": layer, "a": a, "b": b})
    assert names.get("5.3.0") is names.get("6.0.0") is None
