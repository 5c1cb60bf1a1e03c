"""The small configurations of the architectures: each is described, bound and named; and what the check of them refuses."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Any

import pytest

from atlas.errors import AtlasError
from atlas.grammar.shapes import atoms
from atlas.graph import tensors
from atlas.graph.binding import bind
from atlas.graph.check import check
from atlas.graph.graph import Graph
from atlas.resolution import config, config_table
from atlas.spec.library import Library
from tests.samples import SAMPLES, Sample

Overlay = Callable[[Mapping[str, str]], Library]

ALIKE = {
    frozenset(pair)
    for pair in [
        ("dim", "embed_dim"),  # the embedding's width is that of the stream, if nothing else is stated
        ("n_heads", "rope_dim"),
        ("n_heads", "rotary_dim"),
        ("head_dim", "n_experts"),
        ("n_kv_heads", "n_linear_key_heads"),
    ]
}
"""Axes of weights that have one size in some architecture's first sample. A transposed shape of the two would not show there."""


@pytest.fixture(scope="module")
def known(library: Library) -> dict[str, Graph]:
    """Name of a sample -> its graph."""
    return {
        each.name: bind(config.describe(each.settings, library, id=each.name), library) for each in SAMPLES
    }


def test_every_architecture_with_a_model_type_has_a_sample(library: Library) -> None:
    owners = {claim.architecture for claims in library.claims.values() for claim in claims}
    assert {each.architecture for each in SAMPLES} == owners
    assert len(owners) > 40


def test_every_model_type_has_a_sample(library: Library) -> None:
    described = set(config_table.described(library))
    assert {each.settings["model_type"] for each in SAMPLES} == described


def test_a_sample_is_understood(sample: Sample, known: dict[str, Graph]) -> None:
    """It states no unknown key, and nothing that is not described."""
    model = known[sample.name].model
    assert model.architecture == sample.architecture
    assert (model.unknown, model.gaps, model.warnings) == ((), (), ())


def test_a_sample_is_named_in_every_convention(sample: Sample, known: dict[str, Graph]) -> None:
    """No name is there twice, and the tensors of each convention have as many entries as those of the first."""
    graph = known[sample.name]
    sizes = set()
    for convention, table in graph.architecture.conventions.items():
        found = list(tensors.expected(graph, convention))
        names = [each.name for each in found]
        assert len(set(names)) == len(names) > 0, convention
        if not (table.stores_tied and graph.model.flags.get("tied")):
            sizes.add(sum(math.prod(each.shape) for each in found))
    assert len(sizes) == 1


def test_sizes_of_a_first_sample_differ(sample: Sample, known: dict[str, Graph], library: Library) -> None:
    """With two axes of one size, a description that mixes them up binds and runs."""
    if not sample.first:
        return
    graph = known[sample.name]
    used = {axis for weight in graph.weights.values() for axis in atoms(weight.shape)}
    used |= {part for axis in used for part in library.parts.get(axis, ())}
    sizes = {axis: size for axis, size in graph.model.dims.items() if axis in used}
    alike = {frozenset(pair) for pair in combinations(sizes, 2) if sizes[pair[0]] == sizes[pair[1]]}
    assert alike <= ALIKE


def test_an_even_number_of_entries_rotates(sample: Sample, known: dict[str, Graph]) -> None:
    dims = known[sample.name].model.dims
    for axis in ("head_dim", "rope_dim", "rotary_dim"):
        assert dims.get(axis, 2) % 2 == 0, axis


def test_the_base_states_every_size_and_all_differ(library: Library) -> None:
    stated = library.architecture("decoder").sample
    sizes = [value for value in stated.values() if isinstance(value, int) and not isinstance(value, bool)]
    assert len(sizes) == 8  # dim, layers, heads, kv heads, head width, ffn, vocabulary, context
    assert len(set(sizes)) == 8
    assert stated["head_dim"] * stated["num_attention_heads"] != stated["hidden_size"]
    assert stated["num_attention_heads"] % stated["num_key_value_heads"] == 0


def test_parameters_of_the_base_sample_by_hand(known: dict[str, Graph]) -> None:
    """d 48, 3 layers, 6 heads and 2 key and value heads of 10, f 88, V 131, nothing tied."""
    attention = 48 * 60 + 2 * 48 * 20 + 60 * 48
    layer = attention + 3 * 48 * 88 + 2 * 48
    found = sum(math.prod(each.shape) for each in tensors.expected(known["llama"], "hf"))
    assert found == 2 * 131 * 48 + 3 * layer + 48


def test_layer_norms_in_place_of_root_mean_squares(overlay: Overlay) -> None:
    """The second base differs by one bias for each norm: 2 in a layer, and the final one."""
    text = 'id = "x"\nlike = "{}"\n[configs.x]\nlike = "hub"\n[configs.x.defaults]\nnorm_eps = 1e-5\nrope_theta = 1e4\n[sample]\nmodel_type = "x"\n'
    count = {}
    for base in ("decoder", "ln_decoder"):
        library = overlay({"architectures/x.toml": text.format(base)})
        [settings] = library.samples(library.architecture("x")).values()
        graph = bind(config.describe(settings, library, id="x"), library)
        count[base] = sum(math.prod(each.shape) for each in tensors.expected(graph, "hf"))
    assert count["ln_decoder"] - count["decoder"] == 48 * (3 * 2 + 1)


# ---------------------------------------------------------------- how samples are written

CHILD = 'id = "x"\nlike = "decoder"\n[configs.x]\nlike = "hub"\n'


def samples(overlay: Overlay, text: str) -> dict[str, dict[str, Any]]:
    library = overlay({"architectures/x.toml": CHILD + text})
    return library.samples(library.architecture("x"))


def test_a_sample_is_inherited_key_by_key(overlay: Overlay) -> None:
    base = Library().architecture("decoder").sample
    found = samples(overlay, '[sample]\nmodel_type = "x"\nhidden_size = 52\n')
    assert found == {"x": {**base, "model_type": "x", "hidden_size": 52}}


def test_further_samples_state_what_differs(overlay: Overlay) -> None:
    found = samples(
        overlay,
        '[sample]\nmodel_type = "x"\nwindow = 3\n[samples.wide]\nwindow = "absent"\nhead_dim = "null"\nhidden_size = 60\n',
    )
    assert list(found) == ["x", "x-wide"]
    assert found["x"]["window"] == 3
    assert "window" not in found["x-wide"]
    assert found["x-wide"]["head_dim"] is None
    assert found["x-wide"]["hidden_size"] == 60
    assert found["x-wide"]["vocab_size"] == found["x"]["vocab_size"]


def test_further_samples_are_not_inherited(overlay: Overlay) -> None:
    files = {
        "architectures/y.toml": 'id = "y"\nlike = "decoder"\nbase = true\n[samples.other]\nhead_dim = 4\n',
        "architectures/x.toml": CHILD.replace("decoder", "y") + '[sample]\nmodel_type = "x"\n',
    }
    library = overlay(files)
    assert list(library.samples(library.architecture("x"))) == ["x"]


@pytest.mark.parametrize("base", ["decoder", "ln_decoder", "moe_decoder", "mlp_decoder"])
def test_a_base_has_none_to_check(base: str, library: Library) -> None:
    assert library.architecture(base).base
    assert library.samples(library.architecture(base)) == {}


# ---------------------------------------------------------------- what the check refuses


def faults(overlay: Overlay, text: str) -> list[str]:
    found = check(overlay({"architectures/x.toml": text})).faults
    return [fault for fault in found if "architectures/x.toml" in fault or "architecture x" in fault]


GOOD = CHILD + '[sample]\nmodel_type = "x"\n'


def test_a_good_one_has_no_fault(overlay: Overlay) -> None:
    assert faults(overlay, GOOD) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (GOOD.replace('like = "decoder"\n', 'like = "decoder"\nwithout = ["sample"]\n', 1).split("[sample]")[0], "there is no [sample]"),
        (CHILD, "sample x: model_type is missing"),
        (CHILD + '[sample]\nmodel_type = "llama"\n', "sample x describes llama"),
        (GOOD + "hidden_size = 0\n", "sample x: hidden_size is 0"),
        (GOOD + "num_key_value_heads = 4\n", "n_heads"),
        (GOOD + '[configs.y]\nlike = "x"\n', "no sample has model_type 'y', which configs.y describes"),
        (GOOD + '[configs.y]\nlike = "x"\nmodel_type = "x"\nwhere = { new = true }\nignored = ["new"]\n', "no sample has model_type 'x', which configs.y describes"),
        (GOOD + '[conventions.hf.tensors]\n"model.norm.weight" = "nothing.weight"\n', "nothing"),
        (GOOD + '[samples.wrong]\nvocab_size = "many"\n', "sample x-wrong: vocab_size"),
    ],
)  # fmt: skip
def test_a_sample_that_cannot_be_used_is_a_fault(text: str, words: str, overlay: Overlay) -> None:
    found = faults(overlay, text)
    assert any(words in fault for fault in found), found


def test_a_second_model_type_with_a_sample_is_no_fault(overlay: Overlay) -> None:
    text = GOOD + '[samples.other]\nmodel_type = "y"\n[configs.y]\nlike = "x"\n'
    assert faults(overlay, text) == []


def test_a_sample_without_a_model_type_is_told_and_not_guessed(overlay: Overlay) -> None:
    library = overlay({"architectures/x.toml": CHILD})
    [settings] = library.samples(library.architecture("x")).values()
    with pytest.raises(AtlasError, match="model_type is missing"):
        config.describe(settings, library, id="x")
