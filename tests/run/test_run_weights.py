"""Where weights come from: a checkpoint in its several forms, streamed or held, and a seed."""
# ruff: noqa: E402  what needs torch is imported after the question whether it is there

from __future__ import annotations

import json
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip(
    "torch", reason="`atlas run` needs the extra: pip install 'open-model-atlas[run]'"
)

from safetensors.torch import save_file

from atlas.errors import AtlasError, CheckpointError
from atlas.execution import weights as weight_sources
from atlas.execution.checkpoint_weights import CheckpointWeights
from atlas.execution.random_weights import DRAWN, RandomWeights
from atlas.execution.runner import Runner, Weights
from atlas.execution.state import KVCache
from atlas.execution.weights import ResidentWeights
from atlas.graph.binding import bind
from atlas.graph.graph import Block, Graph
from atlas.resolution.resolve import from_path
from atlas.spec.library import Library, builtin_folder

CPU = torch.device("cpu")
TOKENS = torch.tensor([[5, 0, 67, 33, 8, 8, 41]])
Store = Callable[..., Path]
Logits = Callable[..., Any]
Params = dict[str, Any]
Tensors = dict[str, Any]


@pytest.fixture
def graph(whole: Path, library: Library) -> Graph:
    return bind(from_path(whole, library), library)


def passed(graph: Graph, weights: Weights, tokens: Any = TOKENS) -> Any:
    return Runner(graph, weights, dtype=torch.float32, device=CPU, fuse=True)(tokens)


# ---- one block at a time


class Watched:
    """Weights that check, whenever a block's are asked for, that all given before are gone."""

    def __init__(self, weights: Weights) -> None:
        self.weights, self.orders = weights, weights.orders
        self.given: list[weakref.ref[Any]] = []
        self.loads = 0

    def load(self, block: Block, layer: int | None) -> dict[str, Any]:
        assert not [ref for ref in self.given if ref() is not None], f"still there before {block.id} {layer}"
        loaded = self.weights.load(block, layer)
        self.given = [weakref.ref(tensor) for tensor in loaded.values()]
        self.loads += 1
        return loaded

    def done(self) -> None:
        self.weights.done()


@pytest.mark.parametrize("fuse", [False, True])
def test_one_blocks_weights_are_in_memory_at_a_time(graph: Graph, whole: Path, fuse: bool) -> None:
    for weights in (CheckpointWeights(graph, whole, device=CPU), random(graph)):
        watched = Watched(weights)
        Runner(graph, watched, dtype=torch.float32, device=CPU, fuse=fuse)(TOKENS)
        assert watched.loads == 3 + 2 * 3  # embedding, norm, output; attention and feed-forward of 3 layers


def test_every_symbol_is_let_go_after_its_last_use(graph: Graph, whole: Path) -> None:
    """When a layer's feed-forward ends, its inner activations and all of the attention's are gone."""
    runner = Runner(graph, random(graph), dtype=torch.float32, device=CPU, fuse=False)
    alive: dict[str, weakref.ref[Any]] = {}
    found: set[str] = set()

    def observe(step: str, made: Any) -> None:
        alive[step] = weakref.ref(made)
        if step == "layers.1.out.sum":
            found.update(name for name, ref in alive.items() if ref() is not None)

    runner(TOKENS, observe=observe)
    assert found <= {"layers.1.out.sum", "layers.1.h.sum", "layers.1.feed_forward.down"}


def test_streamed_equals_held(graph: Graph, whole: Path) -> None:
    streamed, kept = (
        CheckpointWeights(graph, whole, device=CPU),
        ResidentWeights(CheckpointWeights(graph, whole, device=CPU)),
    )
    expected = passed(graph, streamed)
    for _ in range(2):
        assert torch.equal(passed(graph, kept), expected)


def test_passes_over_a_cache_equal_one_pass(graph: Graph, whole: Path) -> None:
    for weights in (CheckpointWeights(graph, whole, device=CPU), random(graph)):
        for fuse in (False, True):
            runner = Runner(graph, weights, dtype=torch.float32, device=CPU, fuse=fuse)
            cache = KVCache(7)
            parts = [runner(TOKENS[:, a:b], past=a, cache=cache) for a, b in [(0, 3), (3, 4), (4, 7)]]
            torch.testing.assert_close(torch.cat(parts, 1), runner(TOKENS), atol=1e-5, rtol=0)


def test_weights_are_held_where_a_device_has_room(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = 2 * 68 * 60 + 60 + 3 * (2 * 60 + 2 * 60 * 60 + 2 * 20 * 60 + 3 * 160 * 60)
    gpu = torch.device("cuda")
    for free, fits in [(numbers * 8, True), (numbers * 8 - 2, False)]:
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device, free=free: (free, 2 * free))
        assert weight_sources.fits_in_memory(graph, torch.float32, gpu) is fits
        assert weight_sources.fits_in_memory(graph, torch.bfloat16, gpu) is True
    assert weight_sources.fits_in_memory(graph, torch.float32, CPU) is False


# ---- the forms of a checkpoint


def test_shards_with_an_index_equal_one_file(
    params: Params, logits_of: Logits, tensors: Tensors, whole: Path, tmp_path: Path
) -> None:
    expected = logits_of(whole, TOKENS)
    names = sorted(tensors)
    folder = tmp_path / "shards"
    folder.mkdir()
    (folder / "params.json").write_text(json.dumps(params))
    files = {"a.safetensors": names[:11], "b.safetensors": names[11:]}
    for file, part in files.items():
        save_file({name: tensors[name] for name in part}, folder / file)
    # A second full copy lies beside them, with other values: the index decides.
    save_file({name: tensor * 0 for name, tensor in tensors.items()}, folder / "consolidated.safetensors")
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {n: file for file, part in files.items() for n in part}}))
    assert torch.equal(logits_of(folder, TOKENS), expected)
    (folder / "b.safetensors").unlink()
    for text in (index.read_text(), "[]"):
        index.write_text(text)
        with pytest.raises(CheckpointError) as error:
            logits_of(folder, TOKENS)
        assert error.value.code in {"index", "missing"}


@pytest.mark.parametrize("embedding", [0, 1], ids=["rows of the embedding", "columns of the embedding"])
def test_model_parallel_files_are_joined(
    params: Params, logits_of: Logits, tensors: Tensors, whole: Path, tmp_path: Path, embedding: int
) -> None:
    """As fairscale divides them: ColumnParallelLinear by rows, RowParallelLinear by columns, vectors in each file."""
    along = {"wq": 0, "wk": 0, "wv": 0, "w1": 0, "w3": 0, "output": 0, "wo": 1, "w2": 1}
    along["tok_embeddings"] = embedding
    folder = tmp_path / "parallel"
    folder.mkdir()
    (folder / "params.json").write_text(json.dumps(params))
    for device in range(4):
        share = {}
        for name, tensor in tensors.items():
            cut = along.get(name.split(".")[-2])
            share[name] = tensor if cut is None else tensor.chunk(4, cut)[device].contiguous()
        save_file(share, folder / f"consolidated.{device:02}.safetensors")
    assert torch.equal(logits_of(folder, TOKENS), logits_of(whole, TOKENS))


def test_packed_and_turned_tensors(
    store: Store,
    overlay: Callable[..., Library],
    params: Params,
    tensors: Tensors,
    whole: Path,
    logits_of: Logits,
) -> None:
    """Several weights in one tensor, along rows and inside of each head; a matrix stored the other way round."""
    expected = logits_of(whole, TOKENS)
    text = (builtin_folder() / "architectures" / "llama.toml").read_text(encoding="utf-8")
    start = text.index("[conventions.meta.tensors]")
    table, rest = text[start:].split("\n\n", 1)
    for word in ("wk", "wv", "w3"):
        table = "\n".join(line for line in table.splitlines() if f".{word}.weight" not in line)
    for old, new in {
        '= { holds = "attention.wq = (n_heads pair two) dim", cut = "rows" }': '= "attention.wq"\n"layers.{layer}.attention.wkv.weight" = '
        '"attention.wk + attention.wv = (n_kv_heads *) dim"',
        '= { holds = "attention.wo", cut = "columns" }': '= "attention.wo = (n_heads head_dim) dim"',
        '= { holds = "feed_forward.w1", cut = "rows" }': '= "feed_forward.w1 + feed_forward.w3 = * dim"',
    }.items():
        assert table.count(old) == 1
        table = table.replace(old, new)
    library = overlay({"architectures/llama.toml": f"{text[:start]}{table}\n\n{rest}"})
    packed = dict(tensors)

    def halves(rows: torch.Tensor) -> torch.Tensor:
        """Rows of which neighbours form a plane -> rows of which the halves of a head do: the vocabulary's order."""
        return rows.reshape(-1, 5, 2, rows.shape[-1]).transpose(1, 2).reshape(rows.shape)

    for i in range(3):
        packed[f"layers.{i}.attention.wq.weight"] = halves(packed[f"layers.{i}.attention.wq.weight"])
        k, v = (packed.pop(f"layers.{i}.attention.{w}.weight") for w in ("wk", "wv"))
        k = halves(k)
        heads = [torch.cat((k[h * 10 : h * 10 + 10], v[h * 10 : h * 10 + 10])) for h in range(2)]
        packed[f"layers.{i}.attention.wkv.weight"] = torch.cat(heads)
        w3 = packed.pop(f"layers.{i}.feed_forward.w3.weight")
        packed[f"layers.{i}.feed_forward.w1.weight"] = torch.cat(
            (packed[f"layers.{i}.feed_forward.w1.weight"], w3)
        )
        packed[f"layers.{i}.attention.wo.weight"] = packed[f"layers.{i}.attention.wo.weight"].T
    folder = store(params, packed, name="consolidated.00")
    torch.testing.assert_close(logits_of(folder, TOKENS, using=library), expected, atol=1e-5, rtol=0)


@pytest.fixture
def tied_model(tensors: Tensors) -> tuple[Params, Tensors]:
    """A tied model of one layer in the Hub's names: its configuration, and its tensors."""
    config = {
        "model_type": "llama",
        "hidden_size": 60,
        "intermediate_size": 160,
        "num_hidden_layers": 1,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "vocab_size": 68,
        "tie_word_embeddings": True,
    }
    words = {
        "wq": "self_attn.q_proj",
        "wk": "self_attn.k_proj",
        "wv": "self_attn.v_proj",
        "wo": "self_attn.o_proj",
    }
    layer = {
        f"model.layers.0.{words.get(name.split('.')[-1], 'mlp.' + hub)}.weight": tensors[f"layers.0.{name}.weight"]
        for name, hub in {
            "attention.wq": "", "attention.wk": "", "attention.wv": "", "attention.wo": "",
            "feed_forward.w1": "gate_proj", "feed_forward.w2": "down_proj", "feed_forward.w3": "up_proj",
        }.items()
    }  # fmt: skip
    norms = {"model.layers.0.input_layernorm": "layers.0.attention_norm", "model.norm": "norm"}
    norms["model.layers.0.post_attention_layernorm"] = "layers.0.ffn_norm"
    stored = layer | {f"{hub}.weight": tensors[f"{meta}.weight"] for hub, meta in norms.items()}
    stored["model.embed_tokens.weight"] = tensors["tok_embeddings.weight"]
    return config, stored


def test_tied_matrices(tied_model: tuple[Params, Tensors], store: Store, library: Library) -> None:
    config, stored = tied_model
    folder = store(config, stored)
    graph = bind(from_path(folder, library), library)
    tied = CheckpointWeights(graph, folder, device=CPU)
    assert tied.notes == ()
    expected = passed(graph, tied)
    # A copy of the head is stored as well, as old files have it.
    embedding = stored["model.embed_tokens.weight"]
    for copy in (embedding.clone(), embedding.double()):
        store(config, stored | {"lm_head.weight": copy})
        redundant = CheckpointWeights(graph, folder, device=CPU)
        assert torch.equal(passed(graph, redundant), expected)
        assert redundant.warnings == ()
    # Under the head's name alone, as old versions of accelerate saved it.
    store(config, {n: t for n, t in stored.items() if "embed" not in n} | {"lm_head.weight": embedding})
    alone = CheckpointWeights(graph, folder, device=CPU)
    assert torch.equal(passed(graph, alone), expected)
    assert (alone.notes, alone.warnings) == ((), ())
    store(config, {n: t for n, t in stored.items() if "embed" not in n})
    with pytest.raises(CheckpointError, match=r"model\.embed_tokens\.weight is missing"):
        CheckpointWeights(graph, folder, device=CPU)


def test_another_head_stored_in_a_tied_model(
    tied_model: tuple[Params, Tensors], store: Store, library: Library
) -> None:
    """transformers 5 uses the stored head, and says that the configuration is wrong."""
    transformers = pytest.importorskip("transformers", reason="its logits are the other source")
    config, stored = tied_model
    head = torch.randn(68, 60)
    folder = store(config, stored | {"lm_head.weight": head})
    graph = bind(from_path(folder, library), library)
    weights = CheckpointWeights(graph, folder, device=CPU)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    torch.testing.assert_close(passed(graph, weights), theirs(TOKENS).logits, atol=1e-4, rtol=0)
    (warning,) = weights.warnings
    assert (
        "ties lm_head.weight to model.embed_tokens.weight, but both are stored, with different values"
        in warning
    )
    assert "the stored lm_head.weight was used" in warning


def test_dtypes_of_a_checkpoint(store: Store, params: Params, tensors: Tensors, graph: Graph) -> None:
    mixed = {name: t if "norm" in name else t.bfloat16() for name, t in tensors.items()}
    folder = store(params, mixed, name="consolidated.00")
    own = CheckpointWeights(graph, folder, device=CPU)
    assert own.dtype == torch.bfloat16
    assert own.notes == ("the weights are stored in BF16 and F32, and converted to BF16 when read",)
    assert {
        t.dtype for block in graph.blocks for t in own.load(block, 0 if block.layers else None).values()
    } == {torch.bfloat16}
    assert CheckpointWeights(graph, folder, device=CPU, dtype=torch.float32).dtype == torch.float32
    store(params, {name: t.to(torch.int8) for name, t in tensors.items()}, name="consolidated.00")
    with pytest.raises(CheckpointError, match="tensors in I8"):
        CheckpointWeights(graph, folder, device=CPU)


# ---- what is wrong with a checkpoint

FAULTS: dict[str, tuple[Callable[[Tensors], Mapping[str, Any]], str]] = {
    "missing": (
        lambda t: {n: v for n, v in t.items() if n != "layers.2.feed_forward.w2.weight"},
        r"the tensor layers\.2\.feed_forward\.w2\.weight is missing, expected with shape \[60, 160\]",
    ),
    "shape": (
        lambda t: t | {"output.weight": torch.zeros(69, 60)},
        r"output\.weight is \[69, 60\], expected \[68, 60\]",
    ),
    "names": (
        lambda t: {f"_orig_mod.{n}": v for n, v in t.items()},
        r"has none of the tensors of .* its first is '_orig_mod\.layers",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_tensor_is_named(
    store: Store, params: Params, tensors: Tensors, graph: Graph, whole: Path, fault: str
) -> None:
    change, message = FAULTS[fault]
    store(params, change(tensors), name="consolidated.00")
    with pytest.raises(CheckpointError, match=message) as error:
        CheckpointWeights(graph, whole, device=CPU)
    assert "atlas verify" in error.value.hint


def test_a_folder_without_weights_and_a_file_that_is_none(graph: Graph, whole: Path) -> None:
    file = whole / "consolidated.00.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(CheckpointError, match=r"consolidated\.00\.safetensors: truncated"):
        CheckpointWeights(graph, whole, device=CPU)
    file.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n")
    with pytest.raises(CheckpointError, match="Git LFS pointer"):
        CheckpointWeights(graph, whole, device=CPU)
    file.unlink()
    with pytest.raises(CheckpointError, match="no weights"):
        CheckpointWeights(graph, whole, device=CPU)


def test_a_file_that_vanishes_is_a_refusal(graph: Graph, whole: Path) -> None:
    weights = CheckpointWeights(graph, whole, device=CPU)
    (whole / "consolidated.00.safetensors").unlink()
    with pytest.raises(AtlasError, match="cannot be read"):
        passed(graph, weights)


# ---- random weights


def random(graph: Graph, seed: int = 0) -> RandomWeights:
    return RandomWeights(graph, dtype=torch.float32, device=CPU, seed=seed)


def loaded(graph: Graph, weights: RandomWeights, name: str, layer: int | None) -> Any:
    block = next(b for b in graph.blocks for n in b.nodes for w in n.weights if w.id == name)
    return weights.load(block, layer)[name]


def test_random_weights_follow_from_their_seed(graph: Graph) -> None:
    first, again, other = (
        passed(graph, random(graph)),
        passed(graph, random(graph)),
        passed(graph, random(graph, 1)),
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert first.isfinite().all()
    assert first.std() > 0.01


def test_random_weights_are_all_different_normal_numbers(graph: Graph) -> None:
    weights = random(graph)
    seen = [
        loaded(graph, weights, f"feed_forward.{w}", i).flatten() for w in ("w1", "w2", "w3") for i in range(3)
    ]
    for number, tensor in enumerate(seen):
        assert abs(float(tensor.mean())) < 0.002
        assert 0.018 < float(tensor.std()) < 0.022
        for other in seen[:number]:
            assert abs(float(torch.corrcoef(torch.stack((tensor, other)))[0, 1])) < 0.05
    gain = loaded(graph, weights, "attention_norm.weight", 1)
    assert abs(float(gain.mean()) - 1) < 0.02
    assert "confirm shapes and dtypes, not text" in weights.notes[0]


def test_no_two_rows_of_a_large_matrix_are_the_same() -> None:
    """Rows of 4,096 begin at 128,256 different places of the block, whose length is a prime."""
    assert all(DRAWN % n for n in range(2, int(DRAWN**0.5) + 1))
    assert len({row * 4096 % DRAWN for row in range(128_256)}) == 128_256


def test_a_tied_matrix_is_one(shrink: Callable[..., Graph]) -> None:
    graph = shrink("llama", tied=True)
    weights = random(graph)
    assert torch.equal(
        loaded(graph, weights, "output.weight", None), loaded(graph, weights, "tok_embeddings.weight", None)
    )
