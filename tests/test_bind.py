"""One test for each way a description can be wrong: it is refused when bound, with what was written and why it fails.

Each takes the atlas's own files, changes one thing in one of them, and lays that file over the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from atlas.analyse import counts
from atlas.analyse.diff import diff
from atlas.analyse.memory import memory
from atlas.analyse.trace import Pass, trace
from atlas.errors import AtlasError, ConfigError, SpecError
from atlas.graph.binding import bind
from atlas.graph.graph import Graph
from atlas.resolution import config
from atlas.resolution.model import Model
from atlas.spec.library import Library, builtin_folder

LLAMA = "architectures/decoder.toml"
ATTENTION = "components/attention.toml"
NORM = "components/rms_norm.toml"
GLU = "components/glu.toml"
LINEAR = "components/linear.toml"

STACK = '{ stack = "layers", of = "tok_embeddings" }'
FINAL_NORM = '{ id = "norm", is = "rms_norm", of = "layers" }'
LAYERS = 'layers = [[{ block = "attention" }], [{ block = "feed_forward" }]]'

Change = tuple[str, str, str]
"""File, what stands there, what stands there instead."""

WRONG: dict[str, tuple[list[Change], str]] = {
    # ---- the file itself
    "a stray key": (
        [(LLAMA, 'id      = "decoder"', 'id      = "decoder"\ncolour = "red"')],
        "architectures/decoder.toml: colour: extra inputs are not permitted, found 'red'",
    ),
    "a stray key in a step": (
        [(NORM, 'op          = "rms"', 'op          = "rms"\nepsilon = 1e-5')],
        "components/rms_norm.toml: steps.0.epsilon: extra inputs are not permitted, found 1e-05",
    ),
    "a wrong type": (
        [(LLAMA, 'n_kv_heads = "n_heads"', "n_kv_heads = 8")],
        "derived.n_kv_heads: input should be a valid string, found 8",
    ),
    "a number as a string": (
        [(GLU, "bias = false", 'bias = false }\nsteps = "none" # ')],
        "not TOML",
    ),
    "operands that are no list": (
        [(NORM, 'of          = ["x"]', 'of          = "x"')],
        "steps.0.of: input should be a valid list, found 'x'",
    ),
    "a missing field": (
        [(GLU, 'op     = "mul"\n', "")],
        "component glu: hidden: has neither op nor use, expected one of them",
    ),
    "two faults are both said": (
        [(NORM, 'of          = ["x"]', 'of          = "x"'), (NORM, 'over        = "dim"', "over        = 1")],
        "steps.0.of: input should be a valid list, found 'x'; steps.0.over: input should be a valid string",
    ),
    # ---- the vocabulary
    "an unknown axis in a weight": (
        [(ATTENTION, '[weights.wq]\nshape   = "(n_heads head_dim) dim"', '[weights.wq]\nshape   = "(n_heads head_width) dim"')],
        "architecture llama: attention: head_width: no such axis in axes.toml",
    ),
    "an unknown axis in a step": (
        [(NORM, 'over        = "dim"\nshape       = "... dim"', 'over        = "dim"\nshape       = "batch position dim"')],
        "attention_norm: position: no such axis in axes.toml",
    ),
    "an unknown axis in an input": (
        [(LLAMA, '[inputs.tokens]\nshape   = "batch positions"', '[inputs.tokens]\nshape   = "batch places"')],
        "inputs.tokens: places: no such axis in axes.toml",
    ),
    "an unknown axis that is derived": (
        [(LLAMA, 'head_dim = "dim / n_heads"', 'head_dim = "dim / n_heads", head_width = "dim / n_heads"')],
        "derived: head_width: no such axis in axes.toml",
    ),
    "an unknown axis renamed by a node": (
        [(LLAMA, FINAL_NORM, FINAL_NORM.replace(" }", ', axes = { dmi = "dim" } }'))],
        "norm: axes: dmi: no such axis in axes.toml",
    ),
    "an axis renamed to an unknown one by a stack": (
        [(LLAMA, 'over   = "n_layers"', 'over   = "n_layers"\naxes = { ffn_dim = "inner" }')],
        "layers: axes: inner: no such axis in axes.toml",
    ),
    "a shape that is none": (
        [(GLU, '[weights.w2]\nshape   = "dim ffn_dim"', '[weights.w2]\nshape   = "(dim ffn_dim"')],
        "shape '(dim ffn_dim': '(' is not closed",
    ),
    # ---- ports and operands
    "a port of another shape": (
        [(LLAMA, FINAL_NORM, FINAL_NORM.replace('"layers"', '"tokens"'))],
        "norm: x expects (batch dim), tokens is (batch positions)",
    ),
    "too many operands for a component": (
        [(LLAMA, FINAL_NORM, FINAL_NORM.replace('"layers"', '["layers", "tokens"]'))],
        "norm: is rms_norm of x; given layers, tokens",
    ),
    "too few operands for a component": (
        [(LLAMA, 'is = "add", of = ["x", "attention"]', 'is = "add", of = "x"')],
        "h: is add of x, y; given x",
    ),
    "a node of nothing": (
        [(LLAMA, FINAL_NORM, FINAL_NORM.replace('"layers"', '"layer"'))],
        "norm: is of 'layer', which no earlier node sets",
    ),
    "a node of itself": (
        [(LLAMA, FINAL_NORM, FINAL_NORM.replace('"layers"', '"norm"'))],
        "norm: is of 'norm', which no earlier node sets",
    ),
    "a node of what comes after it": (
        [(LLAMA, 'id = "attention_norm", is = "rms_norm", of = "x"', 'id = "attention_norm", is = "rms_norm", of = "h"')],
        "attention_norm: is of 'h', which no earlier node sets",
    ),
    "a node of what another block makes inside": (
        [(LLAMA, 'id = "ffn_norm", is = "rms_norm", of = "x"', 'id = "ffn_norm", is = "rms_norm", of = "attention"')],
        "ffn_norm: is of 'attention', which no earlier node sets",
    ),
    "a component there is none of": (
        [(LLAMA, 'is = "glu"', 'is = "gul"')],
        "components/gul.toml: no such description",
    ),
    "a step of something unknown": (
        [(GLU, 'of     = ["x", "w3"]', 'of     = ["x", "w4"]')],
        "component glu: up: 'w4' is not a port, weight or earlier step",
    ),
    "a step of a later step": (
        [(GLU, 'of     = ["gate"]', 'of     = ["hidden"]')],
        "component glu: opened: 'hidden' is not a port, weight or earlier step",
    ),
    "an operand chosen by no index": (
        [(GLU, 'of     = ["x", "w3"]', 'of     = ["x", "w3[gate]"]')],
        "component glu: up: 'w3[gate]': gate does not contain indices along an axis of w3",
    ),
    "an operand chosen by something unknown": (
        [(GLU, 'of     = ["x", "w3"]', 'of     = ["x", "w3[best]"]')],
        "component glu: up: 'best' is not a port, weight or earlier step",
    ),
    # ---- operations
    "an unknown operation": (
        [(NORM, 'op          = "rms"', 'op          = "rmz"')],
        "component rms_norm: normed (at llama.attention_norm): unknown operation 'rmz'; expected one of contract",
    ),
    "a wrong number of operands": (
        [(GLU, 'of     = ["x", "w3"]', 'of     = ["x"]')],
        "component glu: up (at llama.feed_forward): contract takes 2 operands, given 1",
    ),
    "a reduction without its axis": (
        [(NORM, 'over        = "dim"\n', "")],
        "rms needs the axis it runs over (`over`)",
    ),
    "a result the operands cannot give": (
        [(GLU, 'of     = ["x", "w3"]\nshape  = "... ffn_dim"', 'of     = ["x", "w3"]\nshape  = "... head_dim"')],
        "component glu: up (at llama.feed_forward): contract cannot give (batch positions head_dim): no operand has head_dim",
    ),
    "an operand transposed": (
        [(GLU, 'of     = ["hidden", "w2"]', 'of     = ["x", "w2"]')],
        "contract cannot give (batch positions dim): ffn_dim is in one operand only and not in the result",
    ),
    "a dtype that is none": (
        [(NORM, 'dtype       = "F32"', 'dtype       = "float32"')],
        "component rms_norm: normed: 'float32' is neither A nor a dtype; there are BOOL",
    ),
    "arithmetic in a dtype that is none": (
        [(LINEAR, 'computed_in = "F32"', 'computed_in = "FP32"')],
        "component linear: logits: 'FP32' is neither A nor a dtype",
    ),
    "an input of a dtype that is none": (
        [(LLAMA, 'dtype   = "I64"', 'dtype   = "long"')],
        "inputs.tokens: 'long' is neither A nor a dtype",
    ),
    # ---- parameters and conditions
    "a parameter the component has not": (
        [(LLAMA, 'with = { act = "act", bias = "mlp_bias" }', 'with = { baes = "mlp_bias" }')],
        "feed_forward: glu has no parameter baes",
    ),
    "a choice there is none of": (
        [(LLAMA, 'with = { act = "act", bias = "mlp_bias" }', 'with = { act = "step" }')],
        "feed_forward: act is one of 'silu', 'gelu', 'gelu_tanh', 'relu', 'relu_squared', 'sigmoid', 'tanh', not 'step'",
    ),
    "a parameter that follows from nothing": (
        [(LLAMA, 'with = { act = "act", bias = "mlp_bias" }', 'with = { bias = "ffn_bias" }')],
        "feed_forward needs ffn_bias: 'ffn_bias': ffn_bias has no value here",
    ),
    "a step by something unknown": (
        [(NORM, 'by          = "eps"', 'by          = "epsilon"')],
        "component rms_norm: normed: there is no parameter 'epsilon'",
    ),
    "a condition on something unknown": (
        [(GLU, 'title = "Gate bias"\nwhen  = "bias"', 'title = "Gate bias"\nwhen  = "baes"')],
        "when = 'baes': nothing is called 'baes'",
    ),
    # ---- layers
    "a block there is none of": (
        [(LLAMA, '[{ block = "feed_forward" }]', '[{ block = "feedforward" }]')],
        "layers: unknown block 'feedforward'",
    ),
    "a stack there is none of": (
        [(LLAMA, STACK, STACK.replace('"layers"', '"layer"'))],
        "graph: unknown stack 'layer'",
    ),
    "a stack of nothing": (
        [(LLAMA, STACK, STACK.replace("tok_embeddings", "embeddings"))],
        "layers: is of 'embeddings', which no earlier node sets",
    ),
    "a part that is a node and a stack": (
        [(LLAMA, STACK, f'{{ node = {FINAL_NORM}, stack = "layers", of = "tok_embeddings" }}')],
        "graph: each part must be a node, or a stack with `of`",
    ),
    "a graph of nothing": (
        [(LLAMA, "\ngraph = [", "\ngraph = []\nstray = [")],
        "graph: list should have at least 1 item after validation, not 0, found []",
    ),
    "a block of nothing": (
        [(LLAMA, "[blocks]", "[blocks]\nidle = []")],
        "blocks.idle: list should have at least 1 item after validation, not 0, found []",
    ),
    "a layer of nothing": (
        [(LLAMA, LAYERS, "layers = []")],
        "stacks.layers.layers: list should have at least 1 item after validation, not 0, found []",
    ),
    "a choice of nothing": (
        [(LLAMA, LAYERS, "layers = [[]]")],
        "stacks.layers.layers.0: list should have at least 1 item after validation, not 0, found []",
    ),
    "a component whose steps are all left out": (
        [
            (LLAMA, 'id = "out", is = "add", of = ["x", "feed_forward"]', 'id = "out", is = "idle", of = "x"'),
            ("components/idle.toml", "", 'id = "idle"\nin = { x = "batch positions dim" }\nparams = { on = false }\nsteps = [{ id = "s", op = "cast", of = ["x"], shape = "batch positions dim", when = "on" }]'),
        ],
        "out: no step of idle applies under these conditions",
    ),
    "a part that is neither node nor stack": (
        [(LLAMA, STACK, '{ stack = "layers" }')],
        "graph: each part must be a node, or a stack with `of`",
    ),
    "a stack over an axis that counts nothing": (
        [(LLAMA, 'over   = "n_layers"', 'over   = "dim"')],
        "layers: over 'dim': expected an axis with an `index` in axes.toml",
    ),
    "a stack over an unknown axis": (
        [(LLAMA, 'over   = "n_layers"', 'over   = "depth"')],
        "layers: over 'depth': expected an axis with an `index` in axes.toml",
    ),
    "no block fits": (
        [(LLAMA, LAYERS, 'layers = [[{ block = "attention", first = "2" }], [{ block = "feed_forward" }]]')],
        "layers: no rule of a block matches layer 2",
    ),
    "every layer but none": (
        [(LLAMA, LAYERS, 'layers = [[{ block = "attention", every = "0" }], [{ block = "feed_forward" }]]')],
        "layers: attention: every = '0' is 0, expected 1 or more",
    ),
    "layers the model does not list": (
        [(LLAMA, LAYERS, 'layers = [[{ block = "attention", at = "global_layers" }], [{ block = "feed_forward" }]]')],
        "layers: attention: a test's configuration has no list of layers called 'global_layers'",
    ),
    "a pattern of unknown length": (
        [(LLAMA, LAYERS, 'layers = [[{ block = "attention", every = "period" }], [{ block = "feed_forward" }]]')],
        "'period': period has no value here",
    ),
    "a block that hands on another shape": (
        [(LLAMA, '  { id = "out", is = "add", of = ["x", "feed_forward"] },', '  { id = "out", is = "linear", of = "feed_forward" },')],
        "feed_forward: its result is (batch positions vocab_size), but its input is (batch positions dim)",
    ),
    # ---- one name, one node
    "one block in two places of a layer": (
        [(LLAMA, LAYERS, 'layers = [[{ block = "attention" }], [{ block = "attention" }]]')],
        "attention_norm: is in two places of the graph; rename one of them",
    ),
    "one node in two blocks of a layer": (
        [(LLAMA, 'id = "out", is = "add"', 'id = "h", is = "add"')],
        "h: is in two places of the graph; rename one of them",
    ),
    "one node twice in a block": (
        [(LLAMA, '{ id = "out", is = "add", of = ["x", "feed_forward"] }', '{ id = "ffn_norm", is = "add", of = ["x", "feed_forward"] }')],
        "feed_forward: two of its nodes are called 'ffn_norm'",
    ),
    "one node at the top and in a layer": (
        [(LLAMA, FINAL_NORM, FINAL_NORM + ' },\n  { node = { id = "ffn_norm", is = "rms_norm", of = "norm" }')],
        "ffn_norm: is in two places of the graph; rename one of them",
    ),
    "one name for a node and a block": (
        [(LLAMA, "[blocks]", '[blocks]\nnorm = [{ id = "n", is = "rms_norm", of = "x" }]')],
        "norm: is also the name of a block; rename one of them",
    ),
    "one stack twice": (
        [(LLAMA, STACK, f'{STACK},\n  {{ stack = "layers", of = "layers" }}')],
        "layers: is in two places of the graph; rename one of them",
    ),
    "one weight in two shapes": (
        [
            (LLAMA, LAYERS, 'layers = [[{ block = "attention" }], [{ block = "narrow", first = "1" }, { block = "feed_forward" }]]'),
            (LLAMA, "[blocks]", '[blocks]\nnarrow = [{ id = "feed_forward", is = "glu", of = "x", axes = { ffn_dim = "vocab_size" } }]'),
        ],
        "feed_forward.w1: is in two blocks with different shapes, (vocab_size dim) and (ffn_dim dim); rename one of the nodes",
    ),
    # ---- ties
    "a tie to nothing": (
        [(LLAMA, '{ "output.weight" = "tok_embeddings.weight" }', '{ "output.weight" = "embeddings.weight" }')],
        "ties: embeddings.weight: no component declares it",
    ),
    "a tie of nothing": (
        [(LLAMA, '{ "output.weight" = "tok_embeddings.weight" }', '{ "head.weight" = "tok_embeddings.weight" }')],
        "ties: head.weight: no component declares it",
    ),
    "a tie of two shapes": (
        [(LLAMA, '{ "output.weight" = "tok_embeddings.weight" }', '{ "output.weight" = "norm.weight" }')],
        "ties: output.weight and norm.weight differ in shape, (vocab_size dim) and (dim)",
    ),
}  # fmt: skip


def changed(changes: list[Change], overlay: Callable[[Mapping[str, str]], Library]) -> Library:
    """The atlas's own files with these changes; each of them finds its place exactly once, so none is idle."""
    texts: dict[str, str] = {}
    for file, old, new in changes:
        path = builtin_folder() / file
        text = texts.get(file) or (path.read_text() if path.is_file() else "")
        # A component may say the same of several things: what is changed is the first.
        assert old in text, f"{file} does not say {old!r}"
        texts[file] = text.replace(old, new, 1)
        assert texts[file] != text
    return overlay(texts)


def made(settings: Mapping[str, Any], library: Library) -> Graph:
    return bind(config.describe(settings, library, id="a test's configuration"), library)


@pytest.mark.parametrize("way", WRONG)
def test_a_wrong_description_is_refused(
    way: str, small: dict[str, Any], overlay: Callable[[Mapping[str, str]], Library]
) -> None:
    changes, words = WRONG[way]
    with pytest.raises(AtlasError) as caught:
        made(small, changed(changes, overlay))
    assert words in caught.value.message
    assert "\n" not in caught.value.message
    assert isinstance(caught.value, SpecError | ConfigError)


def test_the_description_as_it_stands_is_not(
    small: dict[str, Any], overlay: Callable[[Mapping[str, str]], Library]
) -> None:
    """So that none of the above fails for another reason: a copy of every file, laid over, binds."""
    paths = {file: builtin_folder() / file for changes, _ in WRONG.values() for file, _, _ in changes}
    library = overlay({file: path.read_text() for file, path in paths.items() if path.is_file()})
    assert made(small, library).dims["n_layers"] == 3


# ---------------------------------------------------------------- axes that contradict each other


def axis(name: str, more: str) -> str:
    return f"{name} = {{ meaning = 'mine', symbol = '{name}', {more} }}"


@pytest.mark.parametrize(
    ("axes", "dims", "words"),
    [
        (axis("n_heads", "is = 'n_kv_heads two'"), {"n_kv_heads": 4}, "n_heads (mine) is 12, but n_kv_heads × two is 8"),
        (axis("group", "size = 'head_dim / 3'"), {}, "group (mine) cannot be derived: 'head_dim / 3': 4 does not divide by 3"),
        (axis("pair", "size = 'head_dim - 4'"), {}, "pair (mine) is 0, expected a positive integer"),
        (axis("group", "size = '2 +'"), {}, "group (mine) cannot be derived: '2 +' is not arithmetic on named axes"),
    ],
)  # fmt: skip
def test_sizes_that_cannot_be(
    axes: str,
    dims: dict[str, int],
    words: str,
    library: Library,
    overlay: Callable[[Mapping[str, str]], Library],
) -> None:
    with pytest.raises(AtlasError) as caught:
        bind(model(library, dims=dims), overlay({"axes.toml": axes}))
    assert words in caught.value.message


# ---------------------------------------------------------------- a model the architecture cannot be bound to


def model(library: Library, **change: Any) -> Model:
    dims = {
        "dim": 48,
        "ffn_dim": 80,
        "n_layers": 3,
        "n_heads": 12,
        "n_kv_heads": 6,
        "vocab_size": 100,
    } | change.pop("dims", {})
    settings: dict[str, Any] = {
        "id": "m",
        "name": "M",
        "architecture": "llama",
        "dims": {axis: size for axis, size in dims.items() if size is not None},
        "numbers": {"norm_eps": 1e-5, "rope_theta": 10000.0},
        "flags": {"tied": False, "attention_bias": False, "mlp_bias": False},
        "optional": frozenset(dims),
    }
    return Model(**(settings | change))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"dims": {"vocab_size": None}}, "m: vocab_size (rows of the token embedding, scores of the output) is not given"),
        ({"dims": {"ffn_dim": None}}, "m: ffn_dim (width inside the feed-forward) is not given"),
        ({"dims": {"n_layers": None}}, "m: n_layers (layers) is not given"),
        ({"dims": {"ffn_dim": 0}}, "m: ffn_dim (width inside the feed-forward) is 0, expected a positive integer"),
        ({"dims": {"dim": -48, "head_dim": 4}}, "m: dim (width of the residual stream) is -48, expected a positive integer"),
        ({"dims": {"n_kv_heads": 5}}, "m: group (query heads that share one key and value head) cannot be derived: 'n_heads / n_kv_heads': 12 does not divide by 5"),
        ({"dims": {"dim": 50}}, "m: head_dim (width of a head) cannot be derived: 'dim / n_heads': 50 does not divide by 12"),
        ({"dims": {"head_dim": 5}}, "m: head_dim (width of a head) is 5: attention rotates 5 entries, expected planes of two"),
        ({"dims": {"n_layers": 1_025}}, "m: n_layers is 1,025; at most 1,024 can be described"),
        ({"dims": {"group": 3}}, "m: n_heads (query heads) is 12, but n_kv_heads × group is 18"),
        ({"dims": {"hidden_size": 48}}, "dims of m: hidden_size: no such axis in axes.toml"),
        ({"architecture": "bert"}, "architectures/bert.toml: no such description"),
        ({"numbers": {"norm_eps": 1e-5}}, "m: attention needs rope_theta: 'rope_theta': rope_theta has no value here"),
    ],
)  # fmt: skip
def test_a_model_that_does_not_fit(change: dict[str, Any], words: str, library: Library) -> None:
    with pytest.raises(AtlasError) as caught:
        bind(model(library, **change), library)
    assert words in caught.value.message


def test_absent_dimensions_follow(library: Library) -> None:
    graph = bind(model(library, dims={"n_kv_heads": None}), library)
    assert graph.dims["n_kv_heads"] == 12
    assert graph.dims["group"] == 1
    assert (graph.dims["head_dim"], graph.dims["pair"], graph.dims["two"]) == (4, 2, 2)


def test_a_given_dimension_comes_before_what_would_follow(library: Library) -> None:
    assert bind(model(library, dims={"head_dim": 10}), library).dims["head_dim"] == 10


# ---------------------------------------------------------------- renaming an axis within the graph


def one_component(shape: str) -> dict[str, str]:
    """An architecture of one component: looks vectors up, gives an axis of them another name, and multiplies the two."""
    return {
        "axes.toml": axis("twin", "size = 'dim'"),
        "components/gram.toml": f"""
            id = "gram"
            in = {{ x = "batch positions" }}
            weights.weight = {{ shape = "vocab_size dim" }}
            steps = [
              {{ id = "vectors", op = "take", of = ["x", "weight"], shape = "batch positions dim" }},
              {{ id = "again", op = "rename", of = ["vectors"], shape = "{shape}" }},
              {{ id = "products", op = "contract", of = ["vectors", "again"], shape = "batch dim twin" }},
            ]
        """,
        "architectures/one.toml": """
            id = "one"
            title = "One"
            summary = "One component."
            inputs.tokens = { shape = "batch positions", symbol = "I", dtype = "I64" }
            graph = [{ node = { id = "only", is = "gram", of = "tokens" } }]
            conventions.hf = { title = "Files", tensors = { "w" = "only.weight" } }
        """,
    }


def test_an_axis_may_get_another_name_of_the_same_size(
    library: Library, overlay: Callable[[Mapping[str, str]], Library]
) -> None:
    """So that two operands can have the same vectors on different axes: 2 × B × T × 48 × 48 FLOPs."""
    graph = bind(model(library, architecture="one"), overlay(one_component("batch positions twin")))
    assert graph.blocks[0].nodes[0].shape == (("batch",), ("dim",), ("twin",))
    found = trace(graph, Pass(batch=5, positions=7))
    assert found.total_flops == 2 * 5 * 7 * 48 * 48
    assert found.logits.shape == (5, 48, 48)


def test_an_architecture_may_name_its_tensors_in_one_way_only(
    library: Library, overlay: Callable[[Mapping[str, str]], Library]
) -> None:
    """Whatever that way is called: what is stored, in bytes and in differences, is what it names."""
    files = one_component("batch positions twin")
    files["architectures/one.toml"] = files["architectures/one.toml"].replace(
        "conventions.hf", "conventions.own"
    )
    graph = bind(model(library, architecture="one"), overlay(files))
    found = counts.count(graph, library)
    assert (found.stored_elements, found.by_convention) == (100 * 48, {"own": 100 * 48})
    assert memory(graph, context=1).weights_bytes == 2 * 100 * 48
    assert diff(graph, graph).same_tensors


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ("batch positions ffn_dim", "cannot rename dim to ffn_dim: their sizes are 48 and 80"),
        ("batch keys dim", "cannot rename positions to keys: their sizes are free and free"),
        ("batch positions dim", "no axis is renamed"),
        ("batch positions", "its operand has the axes (batch positions dim)"),
    ],
)
def test_an_axis_may_not_change_its_size_by_a_name(
    shape: str, words: str, library: Library, overlay: Callable[[Mapping[str, str]], Library]
) -> None:
    with pytest.raises(SpecError) as caught:
        bind(model(library, architecture="one"), overlay(one_component(shape)))
    assert words in caught.value.message


# ---------------------------------------------------------------- layers that are not alike


def kinds(library: Library, layers: str, overlay: Any, **change: Any) -> list[str]:
    """Which block stands first in each of seven layers."""
    changes = [
        (LLAMA, LAYERS, f'layers = [[{layers}], [{{ block = "feed_forward" }}]]'),
        (LLAMA, "[blocks]", '[blocks]\na = [{ id = "a", is = "rms_norm", of = "x" }]\nb = [{ id = "b", is = "rms_norm", of = "x" }]\nc = [{ id = "c", is = "rms_norm", of = "x" }]'),
    ]  # fmt: skip
    graph = bind(model(library, dims={"n_layers": 7}, **change), changed(changes, overlay))
    return [
        block.id
        for layer, block in graph.blocks_in_order()
        if layer is not None and block.id != "feed_forward"
    ]


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        ('{ block = "a" }', "aaaaaaa"),
        ('{ block = "a" }, { block = "b" }', "aaaaaaa"),
        ('{ block = "a", first = "3" }, { block = "b" }', "aaabbbb"),
        ('{ block = "a", every = "3" }, { block = "b" }', "bbabbab"),
        ('{ block = "a", every = "1" }, { block = "b" }', "aaaaaaa"),
        ('{ block = "a", first = "2" }, { block = "b", every = "2" }, { block = "c" }', "aacbcbc"),
        ('{ block = "a", first = "5", every = "2" }, { block = "b" }', "bababbb"),
        ('{ block = "a", at = "special" }, { block = "b" }', "abbbabb"),
        ('{ block = "a", first = "n_first" }, { block = "b" }', "aaaabbb"),
        ('{ block = "a", first = "n_layers - 1" }, { block = "b" }', "aaaaaab"),
        ('{ block = "a", first = "0" }, { block = "b" }', "bbbbbbb"),
    ],
)
def test_the_first_block_that_fits(
    layers: str, expected: str, library: Library, overlay: Callable[[Mapping[str, str]], Library]
) -> None:
    numbers = {"norm_eps": 1e-5, "rope_theta": 1e4, "n_first": 4}
    found = kinds(library, layers, overlay, numbers=numbers, lists={"special": (0, 4)})
    assert "".join(found) == expected
