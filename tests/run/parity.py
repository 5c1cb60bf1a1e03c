"""Logits of a small model by transformers and by the atlas, from the same configuration and the same checkpoint on disk."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from atlas.execution.checkpoint_weights import CheckpointWeights
from atlas.execution.runner import Runner
from atlas.execution.state import KVCache
from atlas.graph.binding import bind
from atlas.graph.graph import Graph
from atlas.resolution.resolve import from_path
from atlas.spec.library import Library

PROMPTS = (1, 13, 40)
"""Lengths of prompts: one token, some, and more than the windows of the samples."""

QUERIES_AND_KEYS = ("q_", "k_", "kv_", "qkv", "query", "key", "c_attn", "Wqkv")
"""Parts of the names of matrices that are drawn larger, so that attention is far from uniform."""

IMPLEMENTATION = {"falcon": "sdpa"}
"""transformers' attention to compare with, where it is not the eager one: Falcon's eager attention adds ALiBi twice."""

CODE = {"kimi_k2": "deepseek_v3"}
"""A `model_type` that transformers does not register -> the one whose class its publisher's files name."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The largest absolute differences of logits.

    Attributes:
        observed: steps one by one, against transformers.
        fused: attention in one call, against transformers.
        decoded: seven positions in one pass and the others one by one, against one pass of the atlas.
        largest: the largest logit, by which a difference is to be judged.
    """

    observed: float
    fused: float
    decoded: float
    largest: float


def reference(settings: dict[str, Any], folder: Path, seed: int = 0) -> Any:
    """transformers' model with random weights, saved as the Hub stores it.

    Queries and keys are large, so that a wrong rotation or mask shows; gains and biases are not what they start as.
    """
    import transformers

    torch.manual_seed(seed)
    kind = CODE.get(settings["model_type"], settings["model_type"])
    config = transformers.AutoConfig.for_model(**(settings | {"model_type": kind}))
    config._experts_implementation = "eager"
    model = (
        transformers.AutoModelForCausalLM.from_config(
            config, attn_implementation=IMPLEMENTATION.get(settings["model_type"], "eager")
        )
        .float()
        .eval()
    )
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1:
                large = 2.5 if any(word in name for word in QUERIES_AND_KEYS) else 1.2
                parameter.normal_(0, large / max(parameter.shape[-1], 4) ** 0.5)
            else:
                parameter.normal_(0, 0.3).add_(0 if name.endswith("bias") else 0.6)
        for name, buffer in model.named_buffers():
            if buffer.is_floating_point() and name.endswith("correction_bias"):
                buffer.normal_(0, 0.3)
    model.save_pretrained(folder)
    (folder / "config.json").write_text(json.dumps(settings))
    return model


def ours(folder: Path, library: Library) -> tuple[Graph, Any]:
    """The bound model of a folder, and its weights in float32."""
    graph = bind(from_path(folder, library), library)
    return graph, CheckpointWeights(graph, folder, device=torch.device("cpu"), dtype=torch.float32)


def logits(graph: Graph, weights: Any, tokens: Tensor, *, fuse: bool) -> Tensor:
    """The logits of one pass."""
    runner = Runner(graph, weights, dtype=torch.float32, device=torch.device("cpu"), fuse=fuse)
    return runner(tokens)


def decoded(graph: Graph, weights: Any, tokens: Tensor, first: int = 7) -> Tensor:
    """The logits of several passes: the first positions at once, the others one by one."""
    runner = Runner(graph, weights, dtype=torch.float32, device=torch.device("cpu"), fuse=True)
    cache = KVCache(tokens.shape[1])
    ends = [min(first, tokens.shape[1]), *range(first + 1, tokens.shape[1] + 1)]
    parts, begin = [], 0
    for end in ends:
        parts.append(runner(tokens[:, begin:end], past=begin, cache=cache))
        begin = end
    return torch.cat(parts, 1)


def parity(settings: dict[str, Any], folder: Path, library: Library) -> dict[int, Difference]:
    """Prompt length -> how far the logits are apart."""
    model = reference(settings, folder)
    graph, weights = ours(folder, library)
    found = {}
    for length in PROMPTS:
        tokens = torch.randint(
            0, graph.dims["vocab_size"], (1, length), generator=torch.Generator().manual_seed(length)
        )
        with torch.inference_mode():
            theirs = model(tokens).logits.float()
        observed = logits(graph, weights, tokens, fuse=False)

        def apart(a: Tensor, b: Tensor) -> float:
            return float((a - b).abs().max())

        found[length] = Difference(
            apart(observed, theirs),
            apart(logits(graph, weights, tokens, fuse=True), theirs),
            apart(decoded(graph, weights, tokens), observed),
            float(theirs.abs().max()),
        )
    return found
