"""The grammar holds what later families need: one architecture with all of it, counted and traced from data alone.

`tests/specs` is an overlay without a line of Python. It has

    two kinds of text layer in a pattern       every third looks at an image by cross-attention, the others attend to text
    two kinds of feed-forward                  dense in the first two layers, a mixture of experts after them
    a mixture of experts                       a router, nine routed experts of which a token visits four, a shared one
    a second tower                             eight layers over patches, on axes of its own, attending both ways
    names                                      one tensor for each expert, or one for all; packed and reordered weights

Every size is another, so that none can stand for another, and every expected figure is written out here.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest

from atlas import pages
from atlas.analyse import counts, parameters
from atlas.analyse.diff import diff
from atlas.analyse.flops import flops
from atlas.analyse.fused import fused
from atlas.analyse.memory import memory
from atlas.analyse.trace import Pass, Trace, trace
from atlas.errors import AtlasError
from atlas.graph import tensors
from atlas.graph.binding import bind
from atlas.graph.graph import Graph
from atlas.resolution import config
from atlas.resolution.resolve import resolve
from atlas.spec.library import Library

SPECS = Path(__file__).with_name("specs")

VOCABULARY, WIDTH, LAYERS = 101, 20, 7
HEADS, KV_HEADS, HEAD = 15, 5, 12
FFN, EXPERT_FFN, SHARED_FFN = 21, 16, 17
EXPERTS, CHOSEN = 9, 4
PATCHES, PATCH = 13, 14
V_LAYERS, V_WIDTH, V_FFN, V_HEADS, V_HEAD = 8, 18, 19, 10, 11

SETTINGS: dict[str, Any] = {
    "model_type": "patchwork",
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "head_dim": HEAD,
    "intermediate_size": FFN,
    "moe_intermediate_size": EXPERT_FFN,
    "shared_intermediate_size": SHARED_FFN,
    "num_experts": EXPERTS,
    "num_experts_per_tok": CHOSEN,
    "vocab_size": VOCABULARY,
    "cross_attention_every": 3,
    "num_dense_layers": 2,
    "num_patches": PATCHES,
    "patch_size": PATCH,
    "vision_num_layers": V_LAYERS,
    "vision_hidden_size": V_WIDTH,
    "vision_intermediate_size": V_FFN,
    "vision_num_heads": V_HEADS,
    "vision_head_dim": V_HEAD,
    "max_position_embeddings": 1000,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "torch_dtype": "bfloat16",
}

# Layers 2 and 5 are the third and the sixth; layers 0 and 1 come before the mixture of experts.
CROSS, SELF = [2, 5], [0, 1, 3, 4, 6]
DENSE, MOE = [0, 1], [2, 3, 4, 5, 6]

# One instance of every component.
Q = HEADS * HEAD * WIDTH  # 15 × 12 × 20
K = KV_HEADS * HEAD * WIDTH  # 5 × 12 × 20
V_Q = V_HEADS * V_HEAD * V_WIDTH  # 10 × 11 × 18
COMPONENTS = {
    "tok_embeddings": (1, VOCABULARY * WIDTH),
    "patch_embedding": (1, V_WIDTH * PATCH),
    "look_norm": (V_LAYERS, V_WIDTH),
    "look.wq": (V_LAYERS, V_Q),
    "look.wk": (V_LAYERS, V_Q),
    "look.wv": (V_LAYERS, V_Q),
    "look.wo": (V_LAYERS, V_Q),
    "think_norm": (V_LAYERS, V_WIDTH),
    "think.w1": (V_LAYERS, V_FFN * V_WIDTH),
    "think.w2": (V_LAYERS, V_FFN * V_WIDTH),
    "think.w3": (V_LAYERS, V_FFN * V_WIDTH),
    "vision_norm": (1, V_WIDTH),
    "bridge": (1, WIDTH * V_WIDTH),
    "cross_norm": (2, WIDTH),
    "cross_attention.wq": (2, Q),
    "cross_attention.wk": (2, K),
    "cross_attention.wv": (2, K),
    "cross_attention.wo": (2, Q),
    "gate": (2, 1),
    "attention_norm": (5, WIDTH),
    "attention.wq": (5, Q),
    "attention.wk": (5, K),
    "attention.wv": (5, K),
    "attention.wo": (5, Q),
    "ffn_norm": (7, WIDTH),
    "feed_forward.w1": (2, FFN * WIDTH),
    "feed_forward.w2": (2, FFN * WIDTH),
    "feed_forward.w3": (2, FFN * WIDTH),
    "router": (5, EXPERTS * WIDTH),
    "experts.w1": (5, EXPERTS * EXPERT_FFN * WIDTH),
    "experts.w2": (5, EXPERTS * EXPERT_FFN * WIDTH),
    "experts.w3": (5, EXPERTS * EXPERT_FFN * WIDTH),
    "shared_expert.w1": (5, SHARED_FFN * WIDTH),
    "shared_expert.w2": (5, SHARED_FFN * WIDTH),
    "shared_expert.w3": (5, SHARED_FFN * WIDTH),
    "norm": (1, WIDTH),
    "output": (1, VOCABULARY * WIDTH),
}
TOTAL = 195_748
"""2,020 + 252 + 8 × 8,982 + 18 + 360 + 2 × 9,621 + 5 × 9,620 + 2 × 1,280 + 5 × 9,860 + 20 + 2,020."""


@pytest.fixture(scope="module")
def patchwork() -> Library:
    return Library(SPECS)


@pytest.fixture(scope="module")
def graph(patchwork: Library) -> Graph:
    return bind(config.describe(SETTINGS, patchwork, id="patchwork"), patchwork)


def test_it_is_data_alone() -> None:
    assert {path.suffix for path in SPECS.rglob("*") if path.is_file()} == {".toml"}


def test_sizes_are_all_different(graph: Graph) -> None:
    """Every axis but the patches seen, which are the patches."""
    sizes = {axis: size for axis, size in graph.dims.items() if axis not in ("patches_seen", "one")}
    assert len(set(sizes.values())) == len(sizes)
    assert (sizes["group"], sizes["pair"], sizes["two"]) == (3, 6, 2)
    assert graph.dims["patches_seen"] == graph.dims["patches"] == PATCHES


# ---------------------------------------------------------------- layers


def test_layers_of_two_kinds_in_a_pattern(graph: Graph) -> None:
    walked = [(layer, block.id) for layer, block in graph.blocks_in_order()]
    expected: list[tuple[int | None, str]] = [(None, "tok_embeddings"), (None, "patch_embedding")]
    for layer in range(V_LAYERS):
        expected += [(layer, "look"), (layer, "think")]
    expected += [(None, "vision_norm"), (None, "bridge")]
    for layer in range(LAYERS):
        expected.append((layer, "cross" if layer in CROSS else "attention"))
        expected.append((layer, "dense" if layer in DENSE else "moe"))
    expected += [(None, "norm"), (None, "output")]
    assert walked == expected


# ---------------------------------------------------------------- counts


def test_every_component_is_counted(graph: Graph, patchwork: Library) -> None:
    found = counts.count(graph, patchwork, by="tensor")
    assert {row.id: (row.instances, row.parameters_per_instance) for row in found.components} == COMPONENTS
    by_hand = sum(instances * size for instances, size in COMPONENTS.values())
    assert found.total_parameters == found.logical_parameters == by_hand == TOTAL
    assert found.catalogue_parameters is None
    assert sum(row.parameters for row in found.components) == TOTAL
    assert sum(row.parameters for row in found.tensors) == TOTAL
    assert found.weight_bytes == 2 * TOTAL


def test_the_page_of_a_component_counts_it_in_every_block(graph: Graph, patchwork: Library) -> None:
    for component, (instances, size) in COMPONENTS.items():
        shown = pages.page(graph, patchwork, component)
        assert (shown.instances, shown.parameters_per_instance) == (instances, size), component
        assert shown.parameters == instances * size, component


def test_layer_by_layer(graph: Graph, patchwork: Library) -> None:
    layers = counts.count(graph, patchwork, by="layer").layers
    vision = 2 * V_WIDTH + 4 * V_Q + 3 * V_FFN * V_WIDTH
    first = {"self": WIDTH + 2 * Q + 2 * K, "cross": WIDTH + 2 * Q + 2 * K + 1}
    second = {
        "dense": WIDTH + 3 * FFN * WIDTH,
        "moe": WIDTH + EXPERTS * WIDTH + 3 * EXPERTS * EXPERT_FFN * WIDTH + 3 * SHARED_FFN * WIDTH,
    }
    assert vision == 8_982
    assert (first["self"], first["cross"], second["dense"], second["moe"]) == (9_620, 9_621, 1_280, 9_860)
    expected = [("vision", layer, vision) for layer in range(V_LAYERS)]
    expected += [
        (
            "layers",
            layer,
            first["cross" if layer in CROSS else "self"] + second["dense" if layer in DENSE else "moe"],
        )
        for layer in range(LAYERS)
    ]
    assert [(row.stack, row.layer, row.parameters) for row in layers] == expected


def test_active_parameters(graph: Graph) -> None:
    """What a text token passes through: four of nine experts, no vision tower, and of cross-attention the text's side.

    Keys and values of the image are made of the image: no text token passes through wk and wv of the two layers, through
    the bridge or through the tower. The gate, which is made of its weight alone, lets the text's branch in: it counts.
    """
    attention = 5 * (WIDTH + 2 * Q + 2 * K)
    cross = 2 * (WIDTH + 2 * Q + 1)
    dense = 2 * (WIDTH + 3 * FFN * WIDTH)
    moe = 5 * (WIDTH + EXPERTS * WIDTH + CHOSEN * 3 * EXPERT_FFN * WIDTH + 3 * SHARED_FFN * WIDTH)
    ends = VOCABULARY * WIDTH + WIDTH + VOCABULARY * WIDTH
    assert (attention, cross, dense, moe, ends) == (48_100, 14_442, 2_560, 25_300, 4_060)
    assert parameters.active(graph) == attention + cross + dense + moe + ends == 94_462


def test_calculations_name_all_factors(graph: Graph, patchwork: Library) -> None:
    how = {row.id: row.calculation for row in counts.count(graph, patchwork).components}
    assert how["experts.w2"] == "9 × 20 × 16 = 2,880"
    assert how["gate"] == "1"
    assert how["look.wo"] == "18 × 110 = 1,980"


@pytest.mark.parametrize(
    ("key", "value", "more"),
    [
        ("num_experts", 10, 5 * (WIDTH + 3 * EXPERT_FFN * WIDTH)),  # an expert, and its row of the router
        ("num_experts_per_tok", 5, 0),
        ("num_dense_layers", 3, 1_280 - 9_860),  # one mixture becomes a dense layer
        ("cross_attention_every", 2, 1),  # three cross layers: one gate more
        ("vision_num_layers", 9, 8_982),
        ("num_patches", 99, 0),
        ("moe_intermediate_size", 22, 5 * 9 * 3 * 6 * WIDTH),
    ],
)
def test_a_setting_changes_what_it_should(key: str, value: int, more: int, patchwork: Library) -> None:
    changed = bind(config.describe(SETTINGS | {key: value}, patchwork, id="changed"), patchwork)
    assert parameters.total(changed) == TOTAL + more


# ---------------------------------------------------------------- names


def names_by_hand(convention: str) -> dict[str, tuple[int, ...]]:
    """Every name and shape, spelt out."""
    found: dict[str, tuple[int, ...]] = {}
    q, k, v_q = HEADS * HEAD, KV_HEADS * HEAD, V_HEADS * V_HEAD
    if convention == "hf":
        found |= {"text.embed.weight": (VOCABULARY, WIDTH), "text.head.weight": (VOCABULARY, WIDTH)}
        found |= {"text.norm.weight": (WIDTH,), "vision.norm.weight": (V_WIDTH,)}
        found |= {"vision.patch.weight": (V_WIDTH, PATCH), "bridge.weight": (WIDTH, V_WIDTH)}
        for layer in range(V_LAYERS):
            at = f"vision.layers.{layer}"
            found |= {f"{at}.norm1.weight": (V_WIDTH,), f"{at}.norm2.weight": (V_WIDTH,)}
            found |= {f"{at}.attn.qkv.weight": (3 * v_q, V_WIDTH), f"{at}.attn.o.weight": (V_WIDTH, v_q)}
            found |= {f"{at}.mlp.gate.weight": (V_FFN, V_WIDTH), f"{at}.mlp.up.weight": (V_FFN, V_WIDTH)}
            found[f"{at}.mlp.down.weight"] = (V_WIDTH, V_FFN)
        for layer in range(LAYERS):
            at = f"text.layers.{layer}"
            if layer in CROSS:
                found |= {f"{at}.cross_norm.weight": (WIDTH,), f"{at}.cross.gate": (1,)}
                found |= {f"{at}.cross.q.weight": (q, WIDTH), f"{at}.cross.o.weight": (WIDTH, q)}
                found |= {f"{at}.cross.k.weight": (k, WIDTH), f"{at}.cross.v.weight": (k, WIDTH)}
            else:
                found[f"{at}.norm1.weight"] = (WIDTH,)
                found |= {f"{at}.attn.q.weight": (q, WIDTH), f"{at}.attn.o.weight": (WIDTH, q)}
                found |= {f"{at}.attn.k.weight": (k, WIDTH), f"{at}.attn.v.weight": (k, WIDTH)}
            if layer in DENSE:
                found[f"{at}.norm2.weight"] = (WIDTH,)
                found |= {f"{at}.mlp.gate_up.weight": (2 * FFN, WIDTH), f"{at}.mlp.down.weight": (WIDTH, FFN)}
            else:
                found |= {f"{at}.moe_norm.weight": (WIDTH,), f"{at}.moe.router.weight": (EXPERTS, WIDTH)}
                for expert in range(EXPERTS):
                    found[f"{at}.moe.experts.{expert}.gate_up.weight"] = (2 * EXPERT_FFN, WIDTH)
                    found[f"{at}.moe.experts.{expert}.down.weight"] = (WIDTH, EXPERT_FFN)
                for part in ("gate", "up"):
                    found[f"{at}.moe.shared.{part}.weight"] = (SHARED_FFN, WIDTH)
                found[f"{at}.moe.shared.down.weight"] = (WIDTH, SHARED_FFN)
        return found
    found |= {"tok_embeddings.weight": (VOCABULARY, WIDTH), "output.weight": (VOCABULARY, WIDTH)}
    found |= {"norm.weight": (WIDTH,), "vision.norm.weight": (V_WIDTH,)}
    found |= {"vision.patch.weight": (V_WIDTH, PATCH), "bridge.weight": (WIDTH, V_WIDTH)}
    for layer in range(V_LAYERS):
        at = f"vision.{layer}"
        found |= {f"{at}.look_norm.weight": (V_WIDTH,), f"{at}.think_norm.weight": (V_WIDTH,)}
        found |= {f"{at}.look.{matrix}.weight": (v_q, V_WIDTH) for matrix in ("wq", "wk", "wv")}
        found |= {f"{at}.look.wo.weight": (V_WIDTH, v_q), f"{at}.think.w2.weight": (V_WIDTH, V_FFN)}
        found |= {f"{at}.think.{matrix}.weight": (V_FFN, V_WIDTH) for matrix in ("w1", "w3")}
    for layer in range(LAYERS):
        at = f"layers.{layer}"
        found[f"{at}.ffn_norm.weight"] = (WIDTH,)
        if layer in CROSS:
            found |= {f"{at}.cross_norm.weight": (WIDTH,), f"{at}.cross.gate": (1,)}
            found |= {f"{at}.cross.wq.weight": (q, WIDTH), f"{at}.cross.wo.weight": (WIDTH, q)}
            found |= {f"{at}.cross.wk.weight": (k, WIDTH), f"{at}.cross.wv.weight": (k, WIDTH)}
        else:
            found |= {f"{at}.attention_norm.weight": (WIDTH,), f"{at}.attention.wq.weight": (q, WIDTH)}
            # For each key and value head the rows of its keys, then those of its values.
            found[f"{at}.attention.wkv.weight"] = (2 * k, WIDTH)
            found[f"{at}.attention.wo.weight"] = (WIDTH, q)
        if layer in DENSE:
            found |= {f"{at}.feed_forward.{matrix}.weight": (FFN, WIDTH) for matrix in ("w1", "w3")}
            found[f"{at}.feed_forward.w2.weight"] = (WIDTH, FFN)
        else:
            found[f"{at}.router_DE"] = (WIDTH, EXPERTS)
            found[f"{at}.experts.w13_eDF"] = (EXPERTS, WIDTH, 2 * EXPERT_FFN)
            found[f"{at}.experts.w2_eF_D"] = (EXPERTS * EXPERT_FFN, WIDTH)
            found |= {f"{at}.shared.{matrix}.weight": (SHARED_FFN, WIDTH) for matrix in ("w1", "w3")}
            found[f"{at}.shared.w2.weight"] = (WIDTH, SHARED_FFN)
    return found


@pytest.mark.parametrize("convention", ["hf", "meta"])
def test_names_and_shapes(convention: str, graph: Graph, patchwork: Library) -> None:
    expected = names_by_hand(convention)
    listed = list(tensors.expected(graph, convention))
    assert {tensor.name: tensor.shape for tensor in listed} == expected
    assert len(listed) == len(expected)
    assert sum(math.prod(shape) for shape in expected.values()) == TOTAL
    found = counts.count(graph, patchwork)
    assert found.by_convention[convention] == TOTAL
    assert parameters.stored(graph, convention) == (len(expected), TOTAL)


@pytest.mark.parametrize("convention", ["hf", "meta"])
def test_names_match_back(convention: str, graph: Graph) -> None:
    """Each name is matched by one row alone, at the numbers that stand in it, in their order."""
    rows = tensors.rows(graph, convention)
    for tensor in tensors.expected(graph, convention):
        matches = [(row, row.template.match(tensor.name)) for row in rows]
        ((row, indices),) = [(row, found) for row, found in matches if found is not None]
        assert row == tensor.row
        assert indices is not None
        assert row.template.expand(**indices) == tensor.name
        # A number between two dots is a layer's or an expert's; `wq.weight` and `w13` have none of those.
        assert list(indices.values()) == [int(n) for n in re.findall(r"(?<=\.)\d+(?=\.)", tensor.name)]


def test_how_packed_weights_lie(graph: Graph) -> None:
    rows = {row.template.text: row for row in tensors.rows(graph, "meta")}
    fused = rows["layers.{layer}.experts.w13_eDF"]
    assert [weight.id for weight in fused.weights] == ["experts.w1", "experts.w3"]
    assert fused.layouts == ((("n_experts",), ("dim",), ("expert_ffn_dim",)),) * 2
    assert fused.holds.packed_along == 2
    keys = rows["layers.{layer}.attention.wkv.weight"]
    assert keys.layouts == ((("n_kv_heads", "head_dim"), ("dim",)),) * 2
    alone = {row.template.text: row for row in tensors.rows(graph, "hf")}
    expert = alone["text.layers.{layer}.moe.experts.{expert}.gate_up.weight"]
    assert expert.indices == (("expert", EXPERTS),)
    assert expert.layers == ("layer", tuple(MOE))
    assert expert.layouts == ((("expert_ffn_dim",), ("dim",)),) * 2


def test_weights_of_different_layers_are_not_packed(overlay: Any) -> None:
    """Both stand in the text's layers, but in none of them together."""
    text = (SPECS / "architectures" / "patchwork.toml").read_text()
    old = '"layers.{layer}.attention.wq.weight"      = "attention.wq"'
    assert text.count(old) == 1
    packed = '"layers.{layer}.wq" = "attention.wq + cross_attention.wq = * dim"'
    folder = overlay({"architectures/patchwork.toml": text.replace(old, packed)}).folders[-1]
    library = Library(SPECS, folder)
    graph = bind(config.describe(SETTINGS, library, id="packed"), library)
    with pytest.raises(AtlasError, match="packs weights of different layers"):
        tensors.rows(graph, "meta")


# ---------------------------------------------------------------- FLOPs


def flops_by_hand(batch: int, positions: int, past: int) -> dict[str, int]:
    """2 for each multiply-add of every matrix product, by component, over all layers."""
    keys = past + positions
    text, image = batch * positions, batch * PATCHES
    q, k, v_q = HEADS * HEAD, KV_HEADS * HEAD, V_HEADS * V_HEAD
    return {
        "patch_embedding": 2 * image * PATCH * V_WIDTH,
        "look.wq": V_LAYERS * 2 * image * V_WIDTH * v_q,
        "look.wk": V_LAYERS * 2 * image * V_WIDTH * v_q,
        "look.wv": V_LAYERS * 2 * image * V_WIDTH * v_q,
        "look": V_LAYERS * 2 * (2 * batch * V_HEADS * PATCHES * PATCHES * V_HEAD),
        "look.wo": V_LAYERS * 2 * image * v_q * V_WIDTH,
        "think.w1": V_LAYERS * 2 * image * V_WIDTH * V_FFN,
        "think.w3": V_LAYERS * 2 * image * V_WIDTH * V_FFN,
        "think.w2": V_LAYERS * 2 * image * V_FFN * V_WIDTH,
        "bridge": 2 * image * V_WIDTH * WIDTH,
        "cross_attention.wq": 2 * 2 * text * WIDTH * q,
        "cross_attention.wk": 2 * 2 * image * WIDTH * k,
        "cross_attention.wv": 2 * 2 * image * WIDTH * k,
        "cross_attention": 2 * 2 * (2 * batch * HEADS * positions * PATCHES * HEAD),
        "cross_attention.wo": 2 * 2 * text * q * WIDTH,
        "attention.wq": 5 * 2 * text * WIDTH * q,
        "attention.wk": 5 * 2 * text * WIDTH * k,
        "attention.wv": 5 * 2 * text * WIDTH * k,
        "attention": 5 * 2 * (2 * batch * HEADS * positions * keys * HEAD),
        "attention.wo": 5 * 2 * text * q * WIDTH,
        "feed_forward.w1": 2 * 2 * text * WIDTH * FFN,
        "feed_forward.w3": 2 * 2 * text * WIDTH * FFN,
        "feed_forward.w2": 2 * 2 * text * FFN * WIDTH,
        "router": 5 * 2 * text * WIDTH * EXPERTS,
        "experts.w1": 5 * 2 * text * CHOSEN * WIDTH * EXPERT_FFN,
        "experts.w3": 5 * 2 * text * CHOSEN * WIDTH * EXPERT_FFN,
        "experts.w2": 5 * 2 * text * CHOSEN * EXPERT_FFN * WIDTH,
        "shared_expert.w1": 5 * 2 * text * WIDTH * SHARED_FFN,
        "shared_expert.w3": 5 * 2 * text * WIDTH * SHARED_FFN,
        "shared_expert.w2": 5 * 2 * text * SHARED_FFN * WIDTH,
        "output": 2 * text * WIDTH * VOCABULARY,
    }


@pytest.mark.parametrize(("batch", "positions", "past"), [(1, 1, 0), (25, 26, 3), (2, 1, 300)])
def test_flops(batch: int, positions: int, past: int, graph: Graph) -> None:
    expected = flops_by_hand(batch, positions, past)
    found = flops(graph, batch=batch, positions=positions, past=past)
    assert {row.id: row.flops for row in found.components} == expected
    assert found.total_flops == sum(expected.values())
    assert trace(graph, Pass(batch, positions, past)).total_flops == sum(expected.values())


def test_bytes_of_experts_are_those_visited(graph: Graph) -> None:
    """One token reads the four matrices it visits; many read all nine, once."""
    per_layer = {}
    for positions in (1, 26):
        found = {row.id: row for row in flops(graph, positions=positions).components}
        per_layer[positions] = found["experts.w1"].bytes // 5
    matrix = EXPERT_FFN * WIDTH * 2
    assert per_layer[1] == WIDTH * 2 + CHOSEN * matrix + CHOSEN * EXPERT_FFN * 2
    assert per_layer[26] == 26 * WIDTH * 2 + EXPERTS * matrix + 26 * CHOSEN * EXPERT_FFN * 2


def test_flops_in_symbols(graph: Graph) -> None:
    """The image costs the same however long the text is; the text's attention goes with its own length."""
    formula = trace(graph).total_flops_formula
    for batch, positions, past in ((1, 1, 0), (25, 26, 3)):
        values = {"B": batch, "T": positions, "S": positions + past}
        assert eval(formula, {}, values) == sum(flops_by_hand(batch, positions, past).values())
    assert [term.partition("*")[2] for term in formula.split(" + ")] == ["B", "B*T", "B*T*S"]


# ---------------------------------------------------------------- the trace


@pytest.fixture(scope="module")
def traced(graph: Graph) -> Trace:
    return trace(graph)


def test_shapes_of_both_towers(traced: Trace) -> None:
    shapes = {step.id: step.shape for step in traced.steps}
    assert shapes["patch_embedding.embedded"] == ("B", 13, 18)
    assert shapes["vision.7.look.q"] == ("B", 13, 10, 11)
    assert shapes["vision.7.look.keys"] == ("B", 13, 10, 11)
    assert shapes["vision.7.look.weights"] == ("B", 10, 13, 13)
    assert shapes["vision.7.think.hidden"] == ("B", 13, 19)
    assert shapes["bridge.projected"] == ("B", 13, 20)
    assert shapes["layers.2.cross_attention.k"] == ("B", 13, 5, 12)
    assert shapes["layers.2.cross_attention.scores"] == ("B", 15, "T", 13)
    assert shapes["layers.2.gate.opening"] == (1,)
    assert shapes["layers.2.gate.amount"] == ()
    assert shapes["layers.3.attention.scores"] == ("B", 15, "T", "S")
    assert shapes["layers.1.feed_forward.hidden"] == ("B", "T", 21)
    assert shapes["layers.3.router.logits"] == ("B", "T", 9)
    assert shapes["layers.3.router.chosen"] == ("B", "T", 4)
    assert shapes["layers.3.experts.gate"] == ("B", "T", 4, 16)
    assert shapes["layers.3.experts.down"] == ("B", "T", 4, 20)
    assert shapes["layers.3.experts.summed"] == ("B", "T", 20)
    assert shapes["layers.3.shared_expert.up"] == ("B", "T", 17)
    assert traced.logits.shape == ("B", "T", 101)


def test_axes_are_named_as_their_tower_names_them(traced: Trace) -> None:
    axes = {step.id: step.axes for step in traced.steps}
    assert axes["vision.0.look.weights"] == ("batch", "n_vision_heads", "patches", "patches_seen")
    assert axes["vision.0.think.hidden"] == ("batch", "patches", "vision_ffn_dim")
    assert axes["layers.2.cross_attention.weights"] == ("batch", "n_heads", "positions", "patches")
    assert axes["layers.2.experts.hidden"] == ("batch", "positions", "n_experts_per_token", "expert_ffn_dim")


def test_dtypes(traced: Trace) -> None:
    found = {step.id: (step.dtype, step.computed_in) for step in traced.steps}
    assert found["layers.3.router.chosen"][0] == "I64"
    assert found["layers.3.router.share"] == ("F32", "F32")
    assert found["layers.3.experts.share_rounded"] == ("BF16", "BF16")
    assert found["vision.0.look.weights"] == ("F32", "F32")
    assert found["vision.0.look.mixed"] == ("BF16", "BF16")
    assert found["output.logits"] == ("F32", "F32")


def test_what_a_step_reads(traced: Trace) -> None:
    """The cross-attention reads the other tower, the experts read inner symbols of the router."""
    inputs = {step.id: step.inputs for step in traced.steps}
    assert inputs["vision.0.look_norm.normed"] == ("x",)
    assert inputs["layers.5.cross_attention.k"] == ("bridge", "cross_attention.wk")
    assert inputs["layers.5.cross_attention.scores"] == ("cross_attention.q", "cross_attention.k")
    assert inputs["layers.5.experts.gate"] == ("ffn_norm", "experts.w1")
    assert inputs["layers.5.experts.share_rounded"] == ("router.share",)
    assert inputs["layers.5.both.sum"] == ("experts", "shared_expert")
    assert inputs["norm.normed"] == ("layers",)


def test_kinds_of_layer_in_the_trace(traced: Trace) -> None:
    def layers_with(node: str) -> list[int]:
        return sorted(
            {step.layer for step in traced.steps if step.layer is not None and f".{node}." in step.id}
        )

    assert layers_with("attention") == SELF
    assert layers_with("cross_attention") == CROSS
    assert layers_with("feed_forward") == DENSE
    assert layers_with("router") == layers_with("experts") == layers_with("shared_expert") == MOE
    assert layers_with("look") == list(range(V_LAYERS))
    assert len({step.id for step in traced.steps}) == len(traced.steps)
    assert sum(step.parameters for step in traced.steps) == TOTAL


# ---------------------------------------------------------------- memory and differences


def test_only_the_texts_own_layers_cache(graph: Graph) -> None:
    """Five layers × keys and values × 5 heads of 12 × 2 bytes; neither cross-attention nor the tower grows with the text."""
    found = memory(graph, batch=3, context=40)
    assert found.kv_bytes_per_token == 5 * 2 * 5 * 12 * 2 == 1_200
    assert found.kv_bytes == 3 * 40 * 1_200
    assert found.kv_reserved_bytes == 3 * 1_000 * 1_200
    assert found.weights_bytes == 2 * TOTAL


def test_the_largest_activation_may_be_the_towers(graph: Graph) -> None:
    """One text position: the tower's attention weights, 10 × 13 × 13 in float32, are the largest while the text is short."""
    found = memory(graph, batch=3, context=40, attention="eager")
    assert found.activation_bytes == 3 * V_HEADS * PATCHES * PATCHES * 4
    assert "look.weights" in found.calculations["activation"]
    longer = memory(graph, batch=3, context=400, attention="eager")
    assert longer.activation_bytes == 3 * HEADS * 400 * 4
    assert "attention.weights" in longer.calculations["activation"]


def test_fused_attention_writes_no_scores_in_any_tower(graph: Graph) -> None:
    """Neither the text's self- and cross-attention nor the tower's: every softmax over keys, and not the router's."""
    unwritten = fused(graph).unwritten
    steps = [step for block in graph.blocks for node in block.nodes for step in node.steps]
    softmaxes = {step.id for step in steps if step.op == "softmax"}
    assert {id for id in softmaxes if "router" not in id} <= unwritten
    assert not any("router" in id for id in unwritten)
    assert {step.id.rpartition(".")[2] for step in steps if step.id in unwritten} >= {"scores", "weights"}
    assert all(step.id not in unwritten for step in steps if step.weights)


def test_a_difference_of_pattern(graph: Graph, patchwork: Library) -> None:
    other = bind(config.describe(SETTINGS | {"num_dense_layers": 3}, patchwork, id="other"), patchwork)
    found = diff(graph, other)
    assert [(each.name, each.a, each.b) for each in found.settings] == [("n_dense_layers", 2, 3)]
    changed = {row.id: (row.a, row.b) for row in found.components}
    assert changed["router"] == (5 * 180, 4 * 180)
    assert changed["feed_forward.w1"] == (2 * 420, 3 * 420)
    assert "ffn_norm" not in changed
    assert "text.layers.2.mlp.down.weight" in found.tensors.only_b
    assert "text.layers.2.moe.experts.8.down.weight" in found.tensors.only_a


# ---------------------------------------------------------------- as any other model


def test_it_is_read_from_a_file_like_any_other(
    patchwork: Library, library: Library, write_config: Any
) -> None:
    path = str(write_config(SETTINGS))
    assert parameters.total(bind(resolve(path, patchwork), patchwork)) == TOTAL
    with pytest.raises(AtlasError, match="model_type 'patchwork' is not described yet"):
        resolve(path, library)


def test_the_atlas_own_models_are_as_they_were(patchwork: Library) -> None:
    assert parameters.total(bind(resolve("llama3.1-8b", patchwork), patchwork)) == 8_030_261_248


LISTED = [
    ('{ block = "cross", every = "cross_every" }', '{ block = "cross", at = "cross_layers" }'),
    (
        'cross_attention_every         = "cross_every"',
        'cross_attention_layers        = "cross_layers"',
    ),
]


@pytest.fixture
def listing(overlay: Any) -> Library:
    """The same architecture, whose cross-attention layers a configuration lists one by one."""
    text = (SPECS / "architectures" / "patchwork.toml").read_text()
    for old, new in LISTED:
        assert text.count(old) == 1
        text = text.replace(old, new)
    folder = overlay({"architectures/patchwork.toml": text}).folders[-1]
    return Library(SPECS, folder)


def listed(layers: Any) -> dict[str, Any]:
    settings = {key: value for key, value in SETTINGS.items() if key != "cross_attention_every"}
    return settings | {"cross_attention_layers": layers}


@pytest.mark.parametrize("layers", [[2, 5], [5, 2], [0, 1, 6], [6], []])
def test_layers_may_be_listed_one_by_one(layers: list[int], listing: Library) -> None:
    """Each cross-attention layer has one number more, its gate, than a layer of self-attention."""
    graph = bind(config.describe(listed(layers), listing, id="listed"), listing)
    found = [layer for layer, block in graph.blocks_in_order() if block.id == "cross"]
    assert found == sorted(layers)
    assert parameters.total(graph) == TOTAL - 2 + len(layers)


def test_other_layers_are_a_difference(listing: Library) -> None:
    one, other = (
        bind(config.describe(listed(layers), listing, id="listed"), listing) for layers in ([2, 5], [1, 4])
    )
    found = diff(one, other)
    assert [(each.name, each.a, each.b) for each in found.settings] == [("cross_layers", (2, 5), (1, 4))]
    assert found.totals["a"] == found.totals["b"]
    assert {name.split(".")[2] for name in found.tensors.only_b} == {"1", "2", "4", "5"}


@pytest.mark.parametrize(
    ("layers", "words"),
    [
        ([2, 7], "listed: cross_layers names layer 7, and there are 7, counted from 0"),
        ([-1], "listed: cross_attention_layers is [-1], expected a list of layer numbers"),
        ([2.0], "expected a list of layer numbers"),
        ([True], "expected a list of layer numbers"),
        (["2"], "expected a list of layer numbers"),
        (3, "cross_attention_layers is 3, expected a list of layer numbers"),
        (None, "listed has no list of layers called 'cross_layers'"),
    ],
)
def test_lists_that_are_none(layers: Any, words: str, listing: Library) -> None:
    with pytest.raises(AtlasError) as caught:
        bind(config.describe(listed(layers), listing, id="listed"), listing)
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("num_experts_per_tok", "num_experts_per_tok is missing: experts that a token visits"),
        ("num_patches", "num_patches is missing"),
    ],
)
def test_what_is_missing_is_named(key: str, words: str, patchwork: Library) -> None:
    with pytest.raises(AtlasError, match=words):
        config.describe({k: v for k, v in SETTINGS.items() if k != key}, patchwork, id="m")
