"""What the tests of `atlas run` share: shrunk models, checkpoints written to disk, and one pass without a session.

torch is imported inside the fixtures: where it is absent, the test files skip themselves.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from atlas.graph.binding import bind
from atlas.graph.graph import Graph
from atlas.resolution.model import Model
from atlas.resolution.resolve import from_path
from atlas.spec.library import Library

if TYPE_CHECKING:
    from torch import Tensor

# Every axis has a size of its own, so that a transposition shows: here, and with a batch of 6 and passes of 7
# positions and 11 keys. The rotation's planes are 5, the heads of a group 4.
SIZES = {
    "dim": 36,
    "ffn_dim": 44,
    "vocab_size": 67,
    "n_layers": 3,
    "n_heads": 12,
    "n_kv_heads": 3,
    "head_dim": 10,
}


@pytest.fixture(scope="session")
def shrink(library: Library) -> Callable[..., Graph]:
    """An architecture's id -> a small model of it, bound; flags as given, else all off."""

    def make(architecture: str, *, using: Library = library, dtype: str = "F32", **flags: bool) -> Graph:
        known = using.architecture(architecture)
        model = Model(
            id=f"a small {architecture}",
            name="",
            architecture=architecture,
            dims=SIZES,
            numbers={"norm_eps": 1e-5, "rope_theta": 10000.0},
            flags=known.flags | flags,
            dtype=dtype,
        )
        return bind(model, using)

    return make


@pytest.fixture
def store(tmp_path: Path) -> Callable[..., Path]:
    """A configuration and tensors -> the folder of a checkpoint in one file."""

    def make(config: Mapping[str, Any], tensors: Mapping[str, Tensor], *, name: str = "model") -> Path:
        from safetensors.torch import save_file

        folder = tmp_path / "checkpoint"
        folder.mkdir(exist_ok=True)
        kind = "config.json" if "model_type" in config else "params.json"
        (folder / kind).write_text(json.dumps(config))
        save_file(
            {key: tensor.contiguous() for key, tensor in tensors.items()}, folder / f"{name}.safetensors"
        )
        return folder

    return make


@pytest.fixture
def logits_of(library: Library) -> Callable[..., Tensor]:
    """A checkpoint's folder and ids -> the logits of one pass, by default with attention fused."""

    def run(
        folder: Path,
        tokens: Sequence[Sequence[int]] | Tensor,
        *,
        fuse: bool = True,
        dtype: str | None = None,
        using: Library = library,
    ) -> Tensor:
        import torch

        from atlas.execution.checkpoint_weights import CheckpointWeights
        from atlas.execution.devices import FLOATS
        from atlas.execution.runner import Runner

        graph = bind(from_path(folder, using), using)
        device = torch.device("cpu")
        weights = CheckpointWeights(graph, folder, device=device, dtype=FLOATS[dtype] if dtype else None)
        runner = Runner(graph, weights, dtype=weights.dtype, device=device, fuse=fuse)
        return runner(torch.as_tensor(tokens))

    return run


# ---- a small checkpoint in Meta's layout

PARAMS = {
    "dim": 60,
    "n_layers": 3,
    "n_heads": 6,
    "n_kv_heads": 2,
    "vocab_size": 68,
    "multiple_of": 4,
    "norm_eps": 1e-5,
    "rope_theta": 10000.0,
}
LAYER = {
    "attention_norm": (60,),
    "attention.wq": (60, 60),
    "attention.wk": (20, 60),
    "attention.wv": (20, 60),
    "attention.wo": (60, 60),
    "ffn_norm": (60,),
    "feed_forward.w1": (160, 60),
    "feed_forward.w2": (60, 160),
    "feed_forward.w3": (160, 60),
}


@pytest.fixture
def params() -> dict[str, Any]:
    """The params.json of a small model."""
    return dict(PARAMS)


@pytest.fixture
def tensors() -> dict[str, Tensor]:
    """A small model in Meta's layout."""
    import torch

    torch.manual_seed(3)
    shapes = {"tok_embeddings": (68, 60), "norm": (60,), "output": (68, 60)}
    for i in range(3):
        shapes |= {f"layers.{i}.{name}": shape for name, shape in LAYER.items()}
    return {
        f"{name}.weight": torch.randn(shape) * 0.2 + (1 if "norm" in name else 0)
        for name, shape in shapes.items()
    }


@pytest.fixture
def whole(store: Callable[..., Path], params: dict[str, Any], tensors: dict[str, Tensor]) -> Path:
    """The small model in one file."""
    return store(params, tensors, name="consolidated.00")
