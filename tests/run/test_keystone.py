"""The keystone: what is observed at run time is what the description declares, step by step; and this can fail.

A matrix product's program is its declared shape, so a wrong declaration may well compute what it says. Such a one shows in
the logits: every planted fault has to be refused, to show in what is observed, or to miss transformers' logits.
"""
# ruff: noqa: E402  what needs torch is imported after the question whether it is there

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip(
    "torch", reason="`atlas run` needs the extra: pip install 'open-model-atlas[run]'"
)

from safetensors.torch import save_file

from atlas.analyse.trace import Pass
from atlas.errors import RunError, SpecError
from atlas.execution import kernels
from atlas.execution.devices import FLOATS
from atlas.execution.observer import Observer
from atlas.execution.random_weights import RandomWeights
from atlas.execution.runner import Runner
from atlas.execution.state import KVCache
from atlas.graph.binding import bind
from atlas.graph.graph import Graph
from atlas.resolution import config
from atlas.spec.library import Library, builtin_folder

BATCH, POSITIONS, PAST = 6, 7, 4
SAMPLES = {
    name: settings
    for id in sorted(Library().paths("architectures"))
    for name, settings in Library().samples(Library().architecture(id)).items()
}
"""Name -> a small configuration of an architecture, sizes all different, with every option in one of them."""


def observed(graph: Graph, *, fuse: bool = False) -> Observer:
    """Two passes over seeded random weights; the second, which reads the first one's cache, is observed."""
    dtype, device = FLOATS[graph.model.dtype], torch.device("cpu")
    weights = RandomWeights(graph, dtype=dtype, device=device, seed=0)
    runner = Runner(graph, weights, dtype=dtype, device=device, fuse=fuse)
    tokens = torch.randint(graph.dims["vocab_size"], (BATCH, PAST + POSITIONS))
    cache = KVCache(PAST + POSITIONS)
    observer = Observer(graph, Pass(BATCH, POSITIONS, PAST))
    runner(tokens[:, :PAST], cache=cache)
    runner(tokens[:, PAST:], past=PAST, cache=cache, observe=observer)
    return observer


@pytest.mark.parametrize("dtype", ["F32", "BF16", "F16", "F64"])
@pytest.mark.parametrize("switched", [False, True], ids=["plain", "every flag on"])
def test_every_step_is_what_the_trace_declares(
    shrink: Callable[..., Graph], switched: bool, dtype: str
) -> None:
    flags = dict.fromkeys(("tied", "attention_bias", "attention_out_bias", "mlp_bias"), switched)
    _is_as_declared(observed(shrink("llama", dtype=dtype, **flags)))


def _is_as_declared(observer: Observer) -> None:
    assert observer.steps.mismatches == ()
    assert observer.steps.observed == observer.steps.declared
    assert observer.confirmed


@pytest.mark.parametrize("dtype", ["F32", "BF16"])
@pytest.mark.parametrize("sample", SAMPLES)
def test_every_step_of_every_architecture_is_what_the_trace_declares(
    library: Library, sample: str, dtype: str
) -> None:
    model = replace(config.describe(SAMPLES[sample], library, id=sample), dtype=dtype)
    _is_as_declared(observed(bind(model, library)))


def test_with_fused_attention_every_component_is_still_observed(shrink: Callable[..., Graph]) -> None:
    observer = observed(shrink("llama"), fuse=True)
    assert observer.confirmed
    # Inside the one call, in each of 3 layers: scores, scaled, masked, softmax, cast.
    assert observer.steps.declared - observer.steps.observed == 15


def catalogued() -> list[str]:
    """A model of every size in the catalogue; tuned ones have their base model's."""
    library, found = Library(), {}
    for family in map(library.family, library.paths("catalogue")):
        rows = {row.descriptor: row for row in library.catalogue(family.id).entries}
        for entry in family.models:
            if entry.architecture:
                found.setdefault(str(rows[entry.catalogue].arch_args), entry.id)
    return sorted(found.values())


@pytest.mark.parametrize("model", catalogued())
def test_at_its_true_size_every_step_of_a_catalogued_model_is_as_declared(
    graph_of: Callable[[str], Graph], model: str
) -> None:
    """On torch's `meta` device, where tensors have shapes and dtypes and no numbers."""
    observer = nowhere(graph_of(model), fuse=False)
    assert observer.confirmed
    assert observer.steps.observed == observer.steps.declared


@pytest.mark.parametrize("fuse", [False, True])
def test_on_another_device_nothing_is_left_on_the_cpu(shrink: Callable[..., Graph], fuse: bool) -> None:
    assert nowhere(shrink("llama", attention_bias=True, mlp_bias=True), fuse=fuse).confirmed


def nowhere(graph: Graph, *, fuse: bool) -> Observer:
    """One pass on the `meta` device, observed; torch refuses tensors of two devices in one operation."""
    dtype, device = FLOATS[graph.model.dtype], torch.device("meta")
    weights = RandomWeights(graph, dtype=dtype, device=device, seed=0)
    runner = Runner(graph, weights, dtype=dtype, device=device, fuse=fuse)
    observer = Observer(graph, Pass(BATCH, POSITIONS, PAST))
    tokens = torch.zeros(BATCH, POSITIONS, dtype=torch.long)
    logits = runner(tokens, past=PAST, cache=KVCache(PAST + POSITIONS), observe=observer)
    assert logits.device == device
    return observer


def test_a_pass_in_which_a_component_was_not_observed_is_not_confirmed(shrink: Callable[..., Graph]) -> None:
    graph = shrink("llama")
    observer = Observer(graph, Pass(1, POSITIONS, 0))
    weights = RandomWeights(graph, dtype=torch.float32, device=torch.device("cpu"), seed=0)
    runner = Runner(graph, weights, dtype=torch.float32, device=torch.device("cpu"), fuse=False)
    skipped = "layers.1.attention.projected"
    tokens = torch.randint(67, (1, POSITIONS))
    runner(tokens, observe=lambda step, made: None if step == skipped else observer(step, made))
    assert not observer.confirmed


# ---- and it can fail: faults planted in the description

Edits = dict[str, list[tuple[str, str]]]


def drop(step: str, component: str) -> tuple[str, str]:
    """The edit that takes a whole step out of a component."""
    text = (builtin_folder() / "components" / f"{component}.toml").read_text(encoding="utf-8")
    found = [part for part in text.split("\n[[steps]]")[1:] if f'"{step}"' in part.split("\n")[1]]
    return "\n[[steps]]" + found[0], ""


@pytest.fixture
def planted(overlay: Callable[..., Library]) -> Callable[[Edits], Library]:
    """Edits of description files, each of text that is there -> a library with them over the atlas's own."""

    def make(edits: Edits) -> Library:
        files = {}
        for file, changes in edits.items():
            text = (builtin_folder() / file).read_text(encoding="utf-8")
            for old, new in changes:
                assert old in text, old
                text = text.replace(old, new)
            files[file] = text
        return overlay(files)

    return make


ATTENTION, GLU, NORM = (f"components/{name}.toml" for name in ("attention", "glu", "rms_norm"))
LLAMA, DECODER = "architectures/llama.toml", "architectures/decoder.toml"
SCORES = "batch n_heads positions keys"

IN_WHAT_IS_OBSERVED: dict[str, Edits] = {
    "a norm that stays in float32": {NORM: [drop("rounded", "rms_norm"), ('"rounded"', '"normed"')]},
    "attention weights not cast back": {ATTENTION: [drop("weights_rounded", "attention")]},
    "a product said to be float32": {GLU: [('op     = "mul"\n', 'op     = "mul"\ndtype  = "F32"\n')]},
}


@pytest.mark.parametrize("fault", IN_WHAT_IS_OBSERVED)
def test_a_wrong_dtype_shows(
    shrink: Callable[..., Graph], planted: Callable[[Edits], Library], fault: str
) -> None:
    graph = shrink("llama", using=planted(IN_WHAT_IS_OBSERVED[fault]), dtype="BF16")
    try:
        confirmed = observed(graph).confirmed
    except RunError:  # bfloat16 times float32 is no product in torch
        confirmed = False
    assert not confirmed


IN_THE_LOGITS: dict[str, Edits] = {
    "an add for a mul": {GLU: [('op     = "mul"', 'op     = "add"')]},
    "gate and up the wrong way round": {GLU: [('of     = ["x", "w1"]', 'of     = ["x", "W"]'), ('of     = ["x", "w3"]', 'of     = ["x", "w1"]'), ('of     = ["x", "W"]', 'of     = ["x", "w3"]')]},
    "v for k": {ATTENTION: [('of = ["q", "keys"]', 'of = ["q", "values"]')]},
    "k for v": {ATTENTION: [('of = ["weights", "values"]', 'of = ["weights", "keys"]')]},
    "scores normalised over positions": {ATTENTION: [('over = "keys"', 'over = "positions"')]},
    "no mask": {ATTENTION: [drop("masked", "attention")]},
    "no scale": {ATTENTION: [drop("scaled", "attention")]},
    "keys not rotated": {ATTENTION: [drop("k_rotated", "attention")]},
    "values rotated": {ATTENTION: [('of = ["k"]\nshape = "batch positions', 'of = ["v"]\nshape = "batch positions'), ]},
    "no first norm": {DECODER: [('is = "attention", of = "attention_norm"', 'is = "attention", of = "x"')]},
    "a residual left out": {DECODER: [('of = ["x", "feed_forward"]', 'of = ["feed_forward", "feed_forward"]')]},
    "w2 for w1": {GLU: [('of     = ["x", "w1"]', 'of     = ["x", "w2"]')]},
}  # fmt: skip

REFUSED: dict[str, Edits] = {
    "scores transposed where they are made": {ATTENTION: [(f'of = ["q", "keys"]\nshape = "{SCORES}"', 'of = ["q", "keys"]\nshape = "batch n_heads keys positions"')]},
    "a head's width summed away": {ATTENTION: [('of = ["x", "wv"]\nshape = "batch positions n_kv_heads head_dim"', 'of = ["x", "wv"]\nshape = "batch positions n_kv_heads"')]},
    "only the queries' rows in Meta's order": {DECODER: [('q_proj.weight"         = "attention.wq"', 'q_proj.weight"         = "attention.wq = (n_heads pair two) dim"')]},
}  # fmt: skip


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Path], Any, Any]:
    """The same model in the Hub's layout and in Meta's, ids, and the logits transformers gives for them."""
    transformers = pytest.importorskip(
        "transformers", reason="the planted faults are held against its logits"
    )
    torch.manual_seed(7)
    config = transformers.LlamaConfig(
        hidden_size=36,
        intermediate_size=44,
        vocab_size=67,
        num_hidden_layers=3,
        num_attention_heads=12,
        num_key_value_heads=3,
        head_dim=10,
        initializer_range=0.3,
        tie_word_embeddings=False,
    )
    model = transformers.LlamaForCausalLM(config).eval()
    hub, meta = tmp_path_factory.mktemp("hub"), tmp_path_factory.mktemp("meta")
    model.save_pretrained(hub)
    shutil.copy(hub / "config.json", meta)
    save_file(metas(model.state_dict()), meta / "model.safetensors")
    tokens = torch.randint(67, (1, 13))
    with torch.inference_mode():
        return {"hf": hub, "meta": meta}, tokens, model(tokens).logits


def metas(weights: dict[str, Any]) -> dict[str, Any]:
    """The Hub's tensors under Meta's names, the two halves of every head's rows interleaved."""
    words = {
        "model.": "", "embed_tokens": "tok_embeddings", "lm_head": "output", "self_attn": "attention",
        "input_layernorm": "attention_norm", "post_attention_layernorm": "ffn_norm", "mlp": "feed_forward",
        "q_proj": "wq", "k_proj": "wk", "v_proj": "wv", "o_proj": "wo",
        "gate_proj": "w1", "down_proj": "w2", "up_proj": "w3",
    }  # fmt: skip
    found = {}
    for name, tensor in weights.items():
        for old, new in words.items():
            name = name.replace(old, new)
        if name.endswith(("wq.weight", "wk.weight")):
            tensor = tensor.reshape(-1, 2, 5, 36).transpose(1, 2).reshape(-1, 36)
        found[name] = tensor.contiguous()
    return found


def apart(logits: Any, expected: Any) -> float:
    return float((logits - expected).abs().max())


@pytest.mark.parametrize("fuse", [False, True], ids=["as declared", "fused"])
@pytest.mark.parametrize("layout", ["hf", "meta"])
def test_the_description_as_it_stands_gives_the_reference_logits(
    logits_of: Callable[..., Any], reference: tuple[dict[str, Path], Any, Any], layout: str, fuse: bool
) -> None:
    folders, tokens, expected = reference
    assert apart(logits_of(folders[layout], tokens, fuse=fuse), expected) < 1e-4


@pytest.mark.parametrize("fault", IN_THE_LOGITS)
def test_a_wrong_declaration_shows_in_the_logits(
    logits_of: Callable[..., Any],
    planted: Callable[[Edits], Library],
    reference: tuple[dict[str, Path], Any, Any],
    fault: str,
) -> None:
    folders, tokens, expected = reference
    library = planted(IN_THE_LOGITS[fault])
    for fuse in (False, True):
        assert apart(logits_of(folders["hf"], tokens, fuse=fuse, using=library), expected) > 1e-2


@pytest.mark.parametrize("fault", IN_THE_LOGITS)
def test_in_metas_layout_it_shows_too_or_is_refused(
    logits_of: Callable[..., Any],
    planted: Callable[[Edits], Library],
    reference: tuple[dict[str, Path], Any, Any],
    fault: str,
) -> None:
    """Meta's queries and keys are stored in another order than values, so taking one for another is refused before it runs."""
    folders, tokens, expected = reference
    library = planted(IN_THE_LOGITS[fault])
    if fault in ("v for k", "k for v", "values rotated"):
        with pytest.raises(SpecError, match="are in the order"):
            logits_of(folders["meta"], tokens, using=library)
    assert apart(logits_of(folders["hf"], tokens, using=library), expected) > 1e-2


def test_the_order_of_the_rows_is_not_for_nothing(
    logits_of: Callable[..., Any],
    planted: Callable[[Edits], Library],
    reference: tuple[dict[str, Path], Any, Any],
) -> None:
    folders, tokens, expected = reference
    as_metas = {DECODER: [(f'{x}_proj.weight"         = "attention.w{x}"', f'{x}_proj.weight"         = "attention.w{x} = ({heads} pair two) dim"') for x, heads in (("q", "n_heads"), ("k", "n_kv_heads"))]}  # fmt: skip
    assert apart(logits_of(folders["hf"], tokens, using=planted(as_metas)), expected) > 1e-2


@pytest.mark.parametrize("fault", REFUSED)
def test_a_declaration_that_contradicts_itself_is_refused(
    logits_of: Callable[..., Any],
    planted: Callable[[Edits], Library],
    reference: tuple[dict[str, Path], Any, Any],
    fault: str,
) -> None:
    folders, tokens, _ = reference
    with pytest.raises(SpecError):
        logits_of(folders["hf"], tokens, using=planted(REFUSED[fault]))


def test_scores_declared_the_other_way_round_throughout_are_the_same_scores(
    logits_of: Callable[..., Any],
    planted: Callable[[Edits], Library],
    reference: tuple[dict[str, Path], Any, Any],
    shrink: Callable[..., Graph],
) -> None:
    """Axes have names: softmax and mask follow them, and the trace and what is observed change together."""
    folders, tokens, expected = reference
    library = planted({ATTENTION: [(SCORES, "batch n_heads keys positions")]})
    assert apart(logits_of(folders["hf"], tokens, using=library), expected) < 1e-4
    assert observed(shrink("llama", using=library)).confirmed


# ---- faults planted in the runner itself


FAULTY_KERNELS: dict[str, Callable[[Any], Any]] = {
    "scale": lambda x: x.transpose(1, 2),
    "rms": lambda x: x.double(),
    "activate": lambda x: x[:, :, :-1],
    "rotate": lambda x: x.flatten(2),
    "cache": lambda x: x[:, 1:],
    "softmax": lambda x: x.half(),
    "take": lambda x: x[:1],
}


@pytest.mark.parametrize("op", FAULTY_KERNELS)
def test_a_kernel_that_gives_another_shape_or_dtype_is_found_out(
    shrink: Callable[..., Graph], monkeypatch: pytest.MonkeyPatch, op: str
) -> None:
    """It shows at the very step, whatever comes of it later."""
    build, fault = kernels.BUILDERS[op], FAULTY_KERNELS[op]

    def faulty(*given: Any) -> Any:
        kernel = build(*given)
        return lambda state, *operands: fault(kernel(state, *operands))

    monkeypatch.setitem(kernels.BUILDERS, op, faulty)
    graph = shrink("llama")
    seen: list[str] = []

    class Stop(Exception):
        pass

    def observe(observer: Observer) -> Callable[[str, Any], None]:
        def compare(step: str, made: Any) -> None:
            observer(step, made)
            if observer.steps.mismatches:
                seen.append(step)
                raise Stop

        return compare

    observer = Observer(graph, Pass(BATCH, POSITIONS, 0))
    weights = RandomWeights(graph, dtype=torch.float32, device=torch.device("cpu"), seed=0)
    runner = Runner(graph, weights, dtype=torch.float32, device=torch.device("cpu"), fuse=False)
    with pytest.raises(Stop):
        runner(torch.randint(67, (BATCH, POSITIONS)), observe=observe(observer))
    wrong = next(step for node in graph.blocks for n in node.nodes for step in n.steps if step.op == op)
    assert seen[0].endswith(wrong.id)
