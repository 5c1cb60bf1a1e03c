"""Counts, names, shapes and FLOPs against transformers' own construction of the same configuration.

Full-size models are built on the meta device, where a tensor has a shape and no numbers; small ones are saved for real
and the file read back with safetensors' own reader. FLOPs are those torch's counter sees in transformers' forward pass
with plain (eager) attention.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from atlas.analyse import flops
from atlas.analyse.parameters import total
from atlas.analyse.trace import Pass, trace
from atlas.graph import tensors
from atlas.graph.graph import Graph

torch = pytest.importorskip("torch", reason="transformers builds its models with torch")
transformers = pytest.importorskip("transformers", reason="the models to compare with are transformers'")

CLASSES = {
    "llama": ("LlamaConfig", "LlamaForCausalLM"),
    "mistral": ("MistralConfig", "MistralForCausalLM"),
}

SMALL = {
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 3,
    "num_attention_heads": 12,
    "num_key_value_heads": 6,
    "vocab_size": 100,
}

VARIANTS: dict[str, dict[str, Any]] = {
    "llama": {},
    "llama, ungrouped": {"num_key_value_heads": 12},
    "llama, one key and value head": {"num_key_value_heads": 1},
    "llama, tied": {"tie_word_embeddings": True},
    "llama, attention bias": {"attention_bias": True},
    "llama, feed-forward bias": {"mlp_bias": True},
    "llama, both biases, tied": {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True},
    "llama, wider heads": {"head_dim": 10},
    "llama, narrower heads": {"head_dim": 2},
    "llama, scaled positions": {
        "rope_parameters": {
            "rope_type": "llama3",
            "rope_theta": 500000.0,
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        }
    },
    "mistral": {"sliding_window": None},
    "mistral, tied": {"sliding_window": None, "tie_word_embeddings": True},
    "mistral, wider heads": {"sliding_window": None, "head_dim": 10},
    "mistral, heads that do not divide the width": {
        "num_attention_heads": 10,
        "num_key_value_heads": 5,
        "head_dim": 14,
        "sliding_window": None,
    },
}

# Dimensions as published; the catalogue id where there is one.
FULL_SIZE: dict[str, tuple[str | None, str, dict[str, Any]]] = {
    "Llama 2 7B": ("llama2-7b", "llama", dict(zip(SMALL, (4096, 11008, 32, 32, 32, 32000), strict=True))),
    "Llama 2 13B": ("llama2-13b", "llama", dict(zip(SMALL, (5120, 13824, 40, 40, 40, 32000), strict=True))),
    "Llama 2 70B": ("llama2-70b", "llama", dict(zip(SMALL, (8192, 28672, 80, 64, 8, 32000), strict=True))),
    "Llama 3.1 8B": ("llama3.1-8b", "llama", dict(zip(SMALL, (4096, 14336, 32, 32, 8, 128256), strict=True))),
    "Llama 3.1 70B": (
        "llama3.1-70b",
        "llama",
        dict(zip(SMALL, (8192, 28672, 80, 64, 8, 128256), strict=True)),
    ),
    "Llama 3.1 405B": (
        "llama3.1-405b:bf16-mp8",
        "llama",
        dict(zip(SMALL, (16384, 53248, 126, 128, 8, 128256), strict=True)),
    ),
    "Llama 3.2 1B": (
        "llama3.2-1b",
        "llama",
        dict(zip(SMALL, (2048, 8192, 16, 32, 8, 128256), strict=True)) | {"tie_word_embeddings": True},
    ),
    "Llama 3.2 3B": (
        "llama3.2-3b",
        "llama",
        dict(zip(SMALL, (3072, 8192, 28, 24, 8, 128256), strict=True)) | {"tie_word_embeddings": True},
    ),
    "Mistral 7B": (
        None,
        "mistral",
        dict(zip(SMALL, (4096, 14336, 32, 32, 8, 32768), strict=True)) | {"sliding_window": None},
    ),
    "Mistral Nemo 12B": (
        None,
        "mistral",
        dict(zip(SMALL, (5120, 14336, 40, 32, 8, 131072), strict=True))
        | {"sliding_window": None, "head_dim": 128},
    ),
}


def built(kind: str, settings: dict[str, Any]) -> Any:
    config_class, model_class = CLASSES[kind]
    config = getattr(transformers, config_class)(attn_implementation="eager", **settings)
    return getattr(transformers, model_class)(config).eval()


def on_meta(kind: str, settings: dict[str, Any]) -> Any:
    with torch.device("meta"):
        return built(kind, settings)


def small(variant: str) -> tuple[str, dict[str, Any]]:
    return variant.partition(",")[0], SMALL | VARIANTS[variant]


def parameters(model: Any) -> int:
    """Those of the model in memory, where a tied matrix is one tensor."""
    return sum(parameter.numel() for parameter in model.parameters())


def state(model: Any) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the state; `save_pretrained` leaves a tied head out, `state_dict` does not."""
    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    if model.config.tie_word_embeddings:
        del shapes["lm_head.weight"]
    return shapes


def ours(graph: Graph) -> dict[str, tuple[int, ...]]:
    return {tensor.name: tensor.shape for tensor in tensors.expected(graph, "hf")}


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_saved_checkpoint_holds_our_tensors(
    variant: str, tmp_path: Path, graph_of: Callable[[str], Graph]
) -> None:
    """transformers writes config.json and the weights; from the one we say what the other holds."""
    safetensors = pytest.importorskip("safetensors", reason="the reader of the file that was saved")
    model = built(*small(variant))
    model.save_pretrained(tmp_path)
    with safetensors.safe_open(tmp_path / "model.safetensors", "pt") as file:
        stored = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    graph = graph_of(str(tmp_path))
    assert ours(graph) == stored
    assert total(graph) == parameters(model)
    assert graph.model.warnings == ()


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_state_of_the_small_model(variant: str, bound: Callable[..., Graph]) -> None:
    kind, settings = small(variant)
    model = on_meta(kind, settings)
    graph = bound(settings | {"model_type": kind})
    assert ours(graph) == state(model)
    assert total(graph) == parameters(model)


@pytest.mark.parametrize("name", FULL_SIZE)
def test_the_state_of_the_full_model(
    name: str, bound: Callable[..., Graph], graph_of: Callable[[str], Graph]
) -> None:
    entry, kind, settings = FULL_SIZE[name]
    model = on_meta(kind, settings)
    graph = bound(settings | {"model_type": kind})
    assert ours(graph) == state(model)
    assert total(graph) == parameters(model)
    if entry is not None:
        assert ours(graph_of(entry)) == state(model)


@pytest.mark.parametrize("kind", CLASSES)
def test_every_key_transformers_writes_is_known(kind: str, bound: Callable[..., Graph]) -> None:
    config = getattr(transformers, CLASSES[kind][0])(**SMALL, **VARIANTS.get(kind, {}))
    graph = bound(config.to_dict())
    assert graph.model.warnings == ()
    assert graph.model.gaps == ()


@pytest.mark.parametrize("key", ["rms_norm_eps", "rope_theta", "num_key_value_heads", "head_dim"])
def test_an_absent_key_means_what_it_means_to_transformers(key: str, bound: Callable[..., Graph]) -> None:
    settings = {name: value for name, value in SMALL.items() if name != key}
    config = transformers.LlamaConfig(**settings)
    graph = bound(settings | {"model_type": "llama"})
    theirs = {
        "rms_norm_eps": config.rms_norm_eps,
        "rope_theta": config.rope_parameters["rope_theta"],
        "num_key_value_heads": config.num_key_value_heads,
        "head_dim": config.head_dim,
    }
    mine = {
        "rms_norm_eps": graph.model.numbers["norm_eps"],
        "rope_theta": graph.model.numbers["rope_theta"],
        "num_key_value_heads": graph.dims["n_kv_heads"],
        "head_dim": graph.dims["head_dim"],
    }
    assert mine[key] == theirs[key]


# ---------------------------------------------------------------- FLOPs

PASSES = [(1, 1, 0), (2, 5, 0), (1, 1, 7), (3, 4, 9)]
"""Batch, positions, positions cached before."""


def counted(model: Any, batch: int, positions: int, past: int) -> int:
    """What torch's counter sees in a forward pass on the meta device.

    Without the rotation's table of angles: releases form it elementwise or as a matrix product of one column and one row.
    """
    config = model.config
    cache = transformers.DynamicCache(config=config)
    if past:
        shape = (batch, config.num_key_value_heads, past, config.head_dim)
        for layer in range(config.num_hidden_layers):
            cache.update(torch.empty(shape, device="meta"), torch.empty(shape, device="meta"), layer)
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(
            input_ids=torch.zeros(batch, positions, dtype=torch.long, device="meta"),
            position_ids=torch.zeros(batch, positions, dtype=torch.long, device="meta"),
            attention_mask=torch.zeros(batch, 1, positions, past + positions, device="meta"),
            past_key_values=cache,
        )
    by_module = counter.get_flop_counts()
    angles = sum(sum(ops.values()) for name, ops in by_module.items() if name.endswith(".rotary_emb"))
    return int(counter.get_total_flops()) - int(angles)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("batch", "positions", "past"), PASSES)
def test_flops_of_the_small_model(
    variant: str, batch: int, positions: int, past: int, bound: Callable[..., Graph]
) -> None:
    kind, settings = small(variant)
    graph = bound(settings | {"model_type": kind})
    expected = counted(on_meta(kind, settings), batch, positions, past)
    assert trace(graph, Pass(batch, positions, past)).total_flops == expected
    assert flops.flops(graph, batch=batch, positions=positions, past=past).total_flops == expected


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize(
    ("name", "batch", "positions", "past"),
    [
        ("Llama 3.1 8B", 1, 128, 0),
        ("Llama 3.1 8B", 1, 1, 127),
        ("Llama 3.1 405B", 2, 3, 5),
        ("Llama 3.2 1B", 2, 512, 0),
        ("Mistral Nemo 12B", 1, 64, 100),
    ],
)
def test_flops_of_the_full_model(
    name: str, batch: int, positions: int, past: int, bound: Callable[..., Graph]
) -> None:
    _, kind, settings = FULL_SIZE[name]
    graph = bound(settings | {"model_type": kind})
    expected = counted(on_meta(kind, settings), batch, positions, past)
    assert trace(graph, Pass(batch, positions, past)).total_flops == expected
