"""What one description has for many families: used components, variants of blocks, conditions, and values that may be absent.

Each test takes the base architecture, changes one thing in it, and binds a model of 48 = 12 heads × 4, 6 of them of keys and
values, 3 layers and a feed-forward of 80.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from atlas.errors import AtlasError, ConfigError, SpecError
from atlas.grammar import shapes
from atlas.graph import tensors
from atlas.graph.binding import bind
from atlas.graph.graph import Graph, Step
from atlas.spec.library import Library, builtin_folder
from tests.bounds import bounded
from tests.test_bind import model

Overlay = Callable[[Mapping[str, str]], Library]

BASE = (builtin_folder() / "architectures" / "decoder.toml").read_text()
LAYERS = 'layers = [[{ block = "attention" }], [{ block = "feed_forward" }]]'


def changed(overlay: Overlay, *changes: tuple[str, str], end: str = "", **files: str) -> Library:
    """The base architecture with texts replaced, each found exactly once, and tables added."""
    text = BASE
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    more = {f"components/{name}.toml": content for name, content in files.items()}
    return overlay({"architectures/decoder.toml": f"{text}\n{end}", **more})


def bound(library: Library, **change: Any) -> Graph:
    return bind(model(library, architecture="decoder", **change), library)


MY_WINDOW = "numbers = {", "numbers = { my_window = 7,"


def steps(graph: Graph) -> dict[str, Step]:
    return {step.id: step for block in graph.blocks for node in block.nodes for step in node.steps}


def attention(stated: str) -> tuple[str, str]:
    """The change that gives the attention these parameters and no others."""
    node = re.search(r'is = "attention", of = "attention_norm", with = \{[^}]*\}', BASE)
    assert node is not None
    return node[0], f'is = "attention", of = "attention_norm", with = {{ {stated} }}'


# ---------------------------------------------------------------- components that use components

NORMED = """
id   = "normed"
in   = { x = "batch positions dim" }
params = { eps = 0.5 }
weights.w = { shape = "(n_heads head_dim) dim" }
steps = [
  { id = "q", op = "contract", of = ["x", "w"], shape = "batch positions n_heads head_dim", symbol = "q" },
  { id = "q_norm", use = "rms_norm", of = ["q"], with = { eps = "eps" }, axes = { dim = "head_dim" }, out = "q", shape = "batch positions n_heads head_dim", symbol = "q", title = "Normalised queries" },
  { id = "sum", op = "sum", of = ["q"], over = "head_dim", shape = "batch positions n_heads" },
  { id = "spread", op = "mul", of = ["x", "sum"], shape = "batch positions n_heads dim" },
  { id = "y", op = "sum", of = ["spread"], over = "n_heads", shape = "batch positions dim" },
]
"""
NORMED_NODE = (
    'is = "glu", of = "ffn_norm", with = { act = "act", bias = "mlp_bias" }',
    'is = "normed", of = "ffn_norm"',
)


def test_a_used_component_brings_its_steps_and_weights(overlay: Overlay) -> None:
    graph = bound(changed(overlay, NORMED_NODE, normed=NORMED))
    found = steps(graph)
    assert [id for id in found if id.startswith("feed_forward")] == [
        "feed_forward.q", "feed_forward.q_norm.normed", "feed_forward.q_norm.rounded", "feed_forward.q_norm.scaled",
        "feed_forward.sum", "feed_forward.spread", "feed_forward.y",
    ]  # fmt: skip
    normed, last = found["feed_forward.q_norm.normed"], found["feed_forward.q_norm.scaled"]
    assert (normed.over, normed.by) == (
        "head_dim",
        0.5,
    )  # the axis renamed, and the parameter of the component around
    assert [operand.name for operand in normed.of] == ["feed_forward.q"]
    assert normed.shape == shapes.parse("batch positions n_heads head_dim")
    assert (last.sets, last.words.title) == ("feed_forward.q", "Normalised queries")
    assert [operand.name for operand in found["feed_forward.sum"].of] == ["feed_forward.q"]
    weight = graph.weights["feed_forward.q_norm"]
    assert (weight.component, weight.node, weight.shape) == (
        "feed_forward.q_norm",
        "feed_forward",
        (("head_dim",),),
    )
    assert graph.size(weight) == 4


def test_a_used_components_equations_have_the_symbols_of_the_place(overlay: Overlay) -> None:
    found = steps(bound(changed(overlay, NORMED_NODE, normed=NORMED)))
    assert found["feed_forward.q_norm.normed"].words.text == "u = q / √(mean(q²) + ε)"
    assert found["feed_forward.q_norm.scaled"].words.text == "q = g ⊙ û"
    assert found["feed_forward.q_norm.normed"].words.latex == (
        r"u = \frac{q}{\sqrt{\operatorname{mean}(q^2) + \varepsilon}}"
    )


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('use = "rms_norm"', 'use = "rms_norm", op = "rms"', "component normed: q_norm: has both op and use"),
        ('use = "rms_norm", ', "", "component normed: q_norm: has neither op nor use"),
        ('use = "rms_norm"', 'use = "normal"', "components/normal.toml: no such description"),
        ('with = { eps = "eps" }', "with = { gain_ = 1 }", "feed_forward.q_norm: rms_norm has no parameter gain_"),
        ('with = { eps = "eps" }', 'with = { gain = "twice" }', "architecture decoder: feed_forward.q_norm: gain is one of 'plain', 'one_plus', "),
        ('axes = { dim = "head_dim" }', 'axes = { dim = "width" }', "feed_forward.q_norm: axes: width: no such axis"),
        (', axes = { dim = "head_dim" }', "", "feed_forward.q_norm: x expects (batch positions n_heads dim), feed_forward.q is (batch positions n_heads head_dim)"),
        ('of = ["q"], with', 'of = ["q", "x"], with', "feed_forward.q_norm: is rms_norm of x; given feed_forward.q, ffn_norm"),
        ('n_heads head_dim", symbol = "q", title', 'n_heads", symbol = "q", title', "q_norm: rms_norm gives (batch positions n_heads head_dim), declared is (batch positions n_heads)"),
        ('{ id = "sum", op', '{ id = "q_norm", op', "component normed: q_norm: two weights or steps have this id"),
        ('weights.w = { shape', 'weights.q_norm = { shape = "dim" }\nweights.w = { shape', "component normed: q_norm: two weights or steps have this id"),
        ('weights.w = { shape = "(n_heads', 'weights.w = { shape = "... (n_heads', "component normed: w: '...' in the shape of a weight"),
    ],
)  # fmt: skip
def test_what_cannot_be_used(old: str, new: str, words: str, overlay: Overlay) -> None:
    assert NORMED.count(old) == 1
    with pytest.raises(AtlasError) as caught:
        bound(changed(overlay, NORMED_NODE, normed=NORMED.replace(old, new)))
    assert words in caught.value.message
    assert "\n" not in caught.value.message


def nested(name: str, inner: str, times: int) -> str:
    used = ",\n".join(
        f'{{ id = "s{i}", use = "{inner}", of = ["x"], shape = "batch positions dim", when = "on" }}'
        for i in range(times)
    )
    last = '{ id = "last", op = "cast", of = ["x"], shape = "batch positions dim" }'
    return f'id = "{name}"\nin = {{ x = "batch positions dim" }}\nparams = {{ on = true }}\nsteps = [{used}, {last}]'


def test_a_component_that_uses_itself_ends(overlay: Overlay) -> None:
    library = changed(overlay, NORMED_NODE, normed=nested("normed", "normed", 1))
    with bounded(), pytest.raises(SpecError, match="components use each other more than 4 deep"):
        bound(library)


@pytest.mark.parametrize("on", ["true", "false"])
def test_components_that_multiply_each_other_are_bounded(on: str, overlay: Overlay) -> None:
    """200 uses of 200 uses, and so on: whether they are present or not, this is refused and not tried."""
    files = {f"c{i}": nested(f"c{i}", f"c{i + 1}", 200) for i in range(2)} | {
        "c2": nested("c2", "rms_norm", 1)
    }
    files["normed"] = nested("normed", "c0", 200).replace("on = true", f"on = {on}")
    with bounded(), pytest.raises(SpecError, match=r"more than 20,000 steps|more than 10,000 weights"):
        bound(changed(overlay, NORMED_NODE, **files))


# ---------------------------------------------------------------- given: parameters of every node that is a component


def test_given_is_for_every_node_and_every_use_and_the_nodes_own_wins(overlay: Overlay) -> None:
    own = (
        'id = "norm", is = "rms_norm", of = "layers"',
        'id = "norm", is = "rms_norm", of = "layers", with = { eps = 3.0 }',
    )
    library = changed(overlay, own, attention('qk_norm = "head"'), end="[given.rms_norm]\neps = 2.0\n")
    by = {id: step.by for id, step in steps(bound(library)).items() if step.op == "rms"}
    assert by == {
        "attention_norm.normed": 2.0, "attention.q_norm.normed": 2.0, "attention.k_norm.normed": 2.0,
        "ffn_norm.normed": 2.0, "norm.normed": 3.0,
    }  # fmt: skip


def test_given_a_parameter_there_is_none_of(overlay: Overlay) -> None:
    with pytest.raises(SpecError, match=r"decoder: given\.rms_norm: rms_norm has no parameter epsilon"):
        bound(changed(overlay, end="[given.rms_norm]\nepsilon = 2.0\n"))


# ---------------------------------------------------------------- flags, numbers and words


def test_a_number_of_the_configuration_comes_before_the_architectures(overlay: Overlay) -> None:
    """A default that wins silently would hide a window."""
    library = changed(overlay, attention('window = "my_window"'), MY_WINDOW)
    numbers = {"norm_eps": 1e-5, "rope_theta": 1e4}
    assert steps(bound(library, numbers=numbers))["attention.masked"].by == 7
    assert steps(bound(library, numbers=numbers | {"my_window": 5.0}))["attention.masked"].by == 5


def test_a_choice_may_name_a_flag(overlay: Overlay) -> None:
    library = changed(overlay)
    assert steps(bound(library))["feed_forward.opened"].by == "silu"  # the architecture's flag `act`
    flags = {"tied": False, "act": "gelu_tanh"}
    assert steps(bound(library, flags=flags))["feed_forward.opened"].by == "gelu_tanh"
    with pytest.raises(SpecError, match=r"feed_forward: act is one of 'silu', .*, not 'step'"):
        bound(library, flags=flags | {"act": "step"})


@pytest.mark.parametrize("window", [-1, 2.5, True, "silu"])
def test_a_window_is_a_whole_number(window: object, overlay: Overlay) -> None:
    library = changed(overlay, attention('window = "my_window"'), MY_WINDOW)
    with pytest.raises(ConfigError, match=r"m: attention: a window of .* positions, expected a whole number"):
        bound(library, flags={"my_window": window})


def test_a_rotation_has_a_share_pairs_and_the_settings_of_a_kind_of_layer(overlay: Overlay) -> None:
    library = changed(overlay, attention('share = 0.5, pairs = "neighbours", rope = "sliding_attention"'))
    step = steps(bound(library))["attention.q_rotated"]
    assert (step.share, step.pairs, step.rope) == (0.5, "neighbours", "sliding_attention")
    with pytest.raises(
        ConfigError,
        match=r"head_dim \(width of a head\) is 4, of which the share 0.25 rotates: attention rotates 1 entries",
    ):
        bound(changed(overlay, attention("share = 0.25")))


def test_a_node_has_its_parameters(overlay: Overlay) -> None:
    """For notes that depend on them; one that no present step needs may have no value."""
    graph = bound(changed(overlay, attention('rotary = false, qk_norm = "head"')), numbers={"norm_eps": 1e-5})
    params = {node.id: node.params for block in graph.blocks for node in block.nodes}
    assert (params["attention"]["qk_norm"], params["attention"]["scale"]) == ("head", 0.5)
    assert params["norm"]["gain"] == "plain"
    with pytest.raises(ConfigError, match="attention needs rope_theta"):
        params["attention"]["theta"]


def test_what_a_step_keeps_has_a_shape(overlay: Overlay) -> None:
    kept = NORMED.replace('id = "sum", op', 'id = "sum", state = "batch n_heads head_dim", op')
    found = steps(bound(changed(overlay, NORMED_NODE, normed=kept)))
    assert found["feed_forward.sum"].state == shapes.parse("batch n_heads head_dim")
    assert found["feed_forward.q"].state is None


# ---------------------------------------------------------------- nodes and layers with conditions


def test_a_node_may_be_absent(overlay: Overlay) -> None:
    """A shared branch that a model may lack: its node, its weights and its names go with it."""
    branch = 'id = "out", is = "add", of = ["x", "feed_forward"] }'
    library = changed(
        overlay,
        (branch, f'id = "aside", is = "glu", of = "x", when = "aside and not lean", axes = {{ ffn_dim = "vocab_size" }} }},\n  {{ {branch}'),
        end='[conventions.hf.tensors]\n"a.{layer}.1" = "aside.w1"\n"a.{layer}.2" = "aside.w2"\n"a.{layer}.3" = "aside.w3"\n'.replace("[conventions.hf.tensors]", "[conventions.other]\ntitle = 'x'\nlike = 'hf'\n[conventions.other.tensors]"),
    )  # fmt: skip
    for flags, there in (
        ({"aside": False, "lean": False}, False),
        ({"aside": True, "lean": True}, False),
        ({"aside": True, "lean": False}, True),
    ):
        graph = bound(library, flags=flags)
        assert ("aside.w1" in graph.weights) is there
        assert ("a.2.1" in {each.name for each in tensors.expected(graph, "other")}) is there
    with pytest.raises(
        SpecError, match="decoder: aside: when = 'aside and not lean': nothing is called 'aside'"
    ):
        bound(library)


def layers_of(library: Library, **change: Any) -> str:
    """The second letter of the first block in each of seven layers."""
    graph = bound(library, dims={"n_layers": 7}, **change)
    return "".join(block.id[-1] for _, block in graph.blocks_in_order() if block.id.startswith("block_"))


BLOCKS = (
    "[blocks]",
    '[blocks]\nblock_a = [{ id = "a", is = "rms_norm", of = "x" }]\nblock_b = [{ id = "b", is = "rms_norm", of = "x" }]',
)


@pytest.mark.parametrize(
    ("choices", "change", "expected"),
    [
        ('{ block = "block_a", at = "kinds=slide" }, { block = "block_b" }', {"lists": {"kinds": ("slide", "full") * 3 + ("slide",)}}, "abababa"),
        ('{ block = "block_a", at = "kinds=slide" }, { block = "block_b", at = "kinds=full" }', {"lists": {"kinds": ("full",) * 6 + ("slide",)}}, "bbbbbba"),
        ('{ block = "block_a", when = "wide" }, { block = "block_b" }', {"flags": {"wide": True}}, "aaaaaaa"),
        ('{ block = "block_a", when = "wide" }, { block = "block_b" }', {"flags": {"wide": False}}, "bbbbbbb"),
        ('{ block = "block_a", when = "wide", every = "2" }, { block = "block_b" }', {"flags": {"wide": True}}, "bababab"),
        ('{ block = "block_a", first = "2" }, { block = "block_b", first = "4" }, { block = "block_a" }', {}, "aabbaaa"),
    ],
)  # fmt: skip
def test_layers_by_words_and_conditions(
    choices: str, change: dict[str, Any], expected: str, overlay: Overlay
) -> None:
    library = changed(
        overlay,
        (LAYERS, f'layers = [[{choices}], [{{ block = "attention" }}], [{{ block = "feed_forward" }}]]'),
        BLOCKS,
    )
    assert layers_of(library, **change) == expected


@pytest.mark.parametrize(
    ("kinds", "words"),
    [
        (("slide",) * 6, "m: kinds has 6 entries, and there are 7 layers"),
        (("slide",) * 6 + ("chunk",), "no rule of a block matches layer 6, whose kinds is 'chunk'"),
    ],
)
def test_words_of_layers_that_do_not_fit(kinds: tuple[str, ...], words: str, overlay: Overlay) -> None:
    choices = '{ block = "block_a", at = "kinds=slide" }, { block = "block_b", at = "kinds=full" }'
    library = changed(overlay, (LAYERS, f"layers = [[{choices}]]"), BLOCKS)
    with pytest.raises(AtlasError) as caught:
        layers_of(library, lists={"kinds": kinds}, optional=frozenset({"n_heads", "n_kv_heads", "ffn_dim"}))
    assert words in caught.value.message


# ---------------------------------------------------------------- variants

SLIDING = """
[variants.sliding]
of = "attention"
with.attention = { window = 5 }
"""
TWO_KINDS = (
    LAYERS,
    'layers = [[{ block = "sliding", every = "2" }, { block = "attention" }], [{ block = "feed_forward" }]]',
)


def test_a_variant_is_the_block_with_other_parameters(overlay: Overlay) -> None:
    graph = bound(changed(overlay, TWO_KINDS, end=SLIDING))
    windows = {
        block.id: (
            list(block.layers or ()),
            [step.by for node in block.nodes for step in node.steps if step.op == "mask"],
        )
        for block in graph.blocks
        if block.id in ("attention", "sliding")
    }
    assert windows == {"sliding": ([1], [5]), "attention": ([0, 2], [0])}
    assert graph.times("attention") == 3  # one node in both, so its weights have one name
    assert len(list(tensors.expected(graph, "hf"))) == 3 * 9 + 3


def test_a_variant_with_other_shapes_has_other_nodes(overlay: Overlay) -> None:
    """Its weights have the same names in the checkpoint, in other layers."""
    wide = SLIDING + 'axes = { ffn_dim = "wide_ffn" }\n'
    wide = wide.replace('of = "attention"', 'of = "feed_forward"').replace(
        "attention = { window = 5 }", 'feed_forward = { act = "relu" }'
    )
    choice = (
        TWO_KINDS[0],
        'layers = [[{ block = "attention" }], [{ block = "sliding", every = "2" }, { block = "feed_forward" }]]',
    )
    axes = {"axes.toml": 'wide_ffn = { meaning = "mine", symbol = "w", size = "2 * ffn_dim" }'}
    rows = [(f'= "feed_forward.w{i}"', f'= ["feed_forward.w{i}", "wide.w{i}"]') for i in (1, 2, 3)]

    def made(text: str, *more: tuple[str, str]) -> Library:
        changed(overlay, choice, *more, end=text)
        return overlay(axes)

    with pytest.raises(
        SpecError,
        match=r"feed_forward\.w1: is in two blocks with different shapes, \(wide_ffn dim\) and \(ffn_dim dim\)",
    ):
        bound(made(wide))
    named = wide + 'nodes = { feed_forward = "wide" }\n'
    with pytest.raises(SpecError, match=r"no name for wide\.w1, wide\.w2, wide\.w3"):
        tensors.rows(bound(made(named)), "hf")
    graph = bound(made(named, *rows))
    assert steps(graph)["wide.opened"].by == "relu"
    shape = {each.name: each.shape for each in tensors.expected(graph, "hf") if "gate_proj" in each.name}
    assert shape == {
        "model.layers.0.mlp.gate_proj.weight": (80, 48),
        "model.layers.1.mlp.gate_proj.weight": (160, 48),
        "model.layers.2.mlp.gate_proj.weight": (80, 48),
    }


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('of = "attention"', 'of = "attentive"', "sliding: of = 'attentive': there is no such block"),
        ("with.attention =", "with.attn =", "sliding: with: attention has no node attn"),
        ("window = 5", "widow = 5", "attention: attention has no parameter widow"),
        ("with.attention", 'nodes = { attn = "b" }\nwith.attention', "sliding: nodes: attention has no node attn"),
        ("with.attention", 'nodes = { attention = "h" }\nwith.attention', "sliding: two of its nodes are called 'h'"),
        ("with.attention", 'nodes = { attention = "ffn_norm" }\nwith.attention', "ffn_norm: is in two places of the graph"),
        ("with.attention", 'axes = { head_dim = "width" }\nwith.attention', "sliding: axes: width: no such axis"),
    ],
)  # fmt: skip
def test_a_variant_that_is_none(old: str, new: str, words: str, overlay: Overlay) -> None:
    assert SLIDING.count(old) == 1
    with pytest.raises(SpecError) as caught:
        bound(changed(overlay, TWO_KINDS, end=SLIDING.replace(old, new)))
    assert words in caught.value.message


def test_a_variant_has_a_name_of_its_own(overlay: Overlay) -> None:
    block = "[blocks]", '[blocks]\nsliding = [{ id = "a", is = "rms_norm", of = "x" }]'
    with pytest.raises(
        SpecError, match="sliding: is the name of a block and of a variant; rename one of them"
    ):
        bound(changed(overlay, TWO_KINDS, block, end=SLIDING))


def test_a_share_of_an_axis_may_be_nothing_else_than_a_number(overlay: Overlay) -> None:
    with pytest.raises(ConfigError, match=r"m: attention needs 2 \* head_dim / 3: .* does not divide by 3"):
        bound(changed(overlay, attention('share = "2 * head_dim / 3"')))


# ---------------------------------------------------------------- what nothing needs, and what nothing reads


def test_what_no_present_step_reads_need_not_be_there(overlay: Overlay) -> None:
    """48 does not divide by 7 and there is no θ: neither matters where nothing rotates and no weight has heads."""
    plain = (LAYERS, 'layers = [[{ block = "feed_forward" }]]')
    dims, numbers = {"n_heads": 7, "n_kv_heads": 3}, {"norm_eps": 1e-5}
    graph = bound(changed(overlay, plain), dims=dims, numbers=numbers)
    assert "head_dim" not in graph.dims
    with pytest.raises(
        ConfigError,
        match=r"m: head_dim \(width of a head\) cannot be derived: 'dim / n_heads': 48 does not divide by 7",
    ):
        bound(changed(overlay), dims=dims, numbers=numbers)
    assert bound(changed(overlay, attention("rotary = false")), numbers=numbers).dims["head_dim"] == 4
    with pytest.raises(ConfigError, match="attention needs rope_theta"):
        bound(changed(overlay), numbers=numbers)


def test_a_derived_size_may_use_numbers(overlay: Overlay) -> None:
    derived = ('head_dim = "dim / n_heads" }', 'head_dim = "dim / n_heads", ffn_dim = "dim * expansion" }')
    numbers = {"norm_eps": 1e-5, "rope_theta": 1e4}
    dims = {"ffn_dim": None}
    library = changed(overlay, derived)
    assert bound(library, dims=dims, numbers=numbers | {"expansion": 2.5}).dims["ffn_dim"] == 120
    with pytest.raises(
        ConfigError, match=r"ffn_dim .* cannot be derived: 'dim \* expansion' gives 62.4, expected an integer"
    ):
        bound(library, dims=dims, numbers=numbers | {"expansion": 1.3})


def test_a_dimension_that_nothing_reads_is_refused(overlay: Overlay) -> None:
    plain = (LAYERS, 'layers = [[{ block = "feed_forward" }]]')
    library = changed(overlay, plain)
    with pytest.raises(ConfigError) as caught:
        bound(library, optional=frozenset())
    assert caught.value.message == (
        "m: n_heads (query heads) is 12, n_kv_heads (key and value heads) is 6, which nothing in the description of decoder reads"
    )
    assert bound(library, optional=frozenset({"n_heads", "n_kv_heads"})).dims["n_heads"] == 12
    assert bound(changed(overlay), optional=frozenset()).dims["n_heads"] == 12


# ---------------------------------------------------------------- learned positions

PLACES = """
[inputs.places]
shape  = "positions"
symbol = "t"
dtype  = "I64"
value  = "positions"
"""


def test_the_numbers_of_positions_are_an_input(overlay: Overlay) -> None:
    node = '{ stack = "layers", of = "tok_embeddings" }'
    table = (
        '{ node = { id = "place", is = "embedding", of = "places", axes = { vocab_size = "ffn_dim" } } },\n  '
    )
    graph = bound(changed(overlay, (node, table + node), end=PLACES))
    assert graph.blocks[1].nodes[0].shape == shapes.parse("positions dim")
    assert graph.inputs["places"].value == "positions"


@pytest.mark.parametrize(
    ("old", "new"), [('"positions"\nsymbol', '"batch positions"\nsymbol'), ('"I64"', '"I32"')]
)
def test_the_numbers_of_positions_have_one_shape(old: str, new: str, overlay: Overlay) -> None:
    with pytest.raises(
        SpecError, match=r"inputs\.places: the numbers of positions are \(positions\) in I64, declared is"
    ):
        bound(changed(overlay, end=PLACES.replace(old, new)))
