"""Counts, names, shapes, the feed-forward's width and FLOPs against Meta's own modules (the PyPI package llama-models).

Small models are built and run as they are. For full-size ones FairScale's layers are replaced by torch's own of the same
sizes on the meta device; everything else, and so every size that is worked out, is Meta's code.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from atlas.analyse import parameters
from atlas.analyse.trace import Pass, trace
from atlas.graph import tensors
from atlas.graph.binding import bind
from atlas.graph.graph import Graph
from atlas.resolution import dimensions
from atlas.resolution.resolve import resolve
from atlas.spec.library import Library

torch = pytest.importorskip("torch", reason="Meta's modules are built with torch")
pytest.importorskip("fairscale", reason="Meta's modules are built with fairscale")
pytest.importorskip("llama_models", reason="llama-models holds Meta's modules")

SMALL: dict[str, dict[str, Any]] = {
    "grouped": {
        "dim": 64,
        "n_layers": 3,
        "n_heads": 8,
        "n_kv_heads": 2,
        "vocab_size": 96,
        "multiple_of": 32,
        "ffn_dim_multiplier": 1.3,
        "norm_eps": 1e-5,
        "rope_theta": 500000.0,
        "use_scaled_rope": True,
    },
    "not grouped, no multiplier": {
        "dim": 48,
        "n_layers": 2,
        "n_heads": 6,
        "vocab_size": 33,
        "multiple_of": 4,
        "norm_eps": 1e-6,
        "rope_theta": 10000.0,
    },
    "one key and value head": {"dim": 40, "n_layers": 1, "n_heads": 4, "n_kv_heads": 1, "vocab_size": 17},
}


@pytest.fixture
def light(meta: ModuleType, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Meta's modules on layers that allocate nothing."""
    nn = torch.nn

    def linear(features: int, out_features: int, bias: bool, **_: Any) -> Any:
        return nn.Linear(features, out_features, bias=bias, device="meta")

    monkeypatch.setattr(meta, "ColumnParallelLinear", linear)
    monkeypatch.setattr(meta, "RowParallelLinear", linear)
    monkeypatch.setattr(
        meta, "VocabParallelEmbedding", lambda rows, dim, **_: nn.Embedding(rows, dim, device="meta")
    )
    return meta


def arguments(settings: dict[str, Any]) -> Any:
    from llama_models.llama3.args import ModelArgs

    return ModelArgs(**settings, max_batch_size=4, max_seq_len=32)


def state(model: Any) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}


def ours(graph: Graph) -> dict[str, tuple[int, ...]]:
    return {tensor.name: tensor.shape for tensor in tensors.expected(graph, "meta")}


@pytest.mark.parametrize("name", SMALL)
def test_the_state_of_the_small_model(name: str, meta: ModuleType, bound: Callable[..., Graph]) -> None:
    model = meta.Transformer(arguments(SMALL[name]))
    graph = bound(SMALL[name], "params.json")
    assert ours(graph) == state(model)
    assert parameters.logical(graph) == sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize(("batch", "positions", "past"), [(1, 1, 0), (2, 5, 0), (3, 1, 7), (2, 4, 9)])
def test_flops_of_the_small_model(
    name: str, batch: int, positions: int, past: int, meta: ModuleType, bound: Callable[..., Graph]
) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    model = meta.Transformer(arguments(SMALL[name])).eval()
    with FlopCounterMode(display=False) as counter:
        model(torch.zeros(batch, positions, dtype=torch.long), past)
    graph = bound(SMALL[name], "params.json")
    assert trace(graph, Pass(batch, positions, past)).total_flops == counter.get_total_flops()


@pytest.mark.parametrize("name", SMALL)
def test_arguments_that_are_absent_mean_what_they_mean_to_meta(
    name: str, bound: Callable[..., Graph]
) -> None:
    args = arguments(SMALL[name])
    graph = bound(SMALL[name], "params.json")
    assert graph.dims["n_kv_heads"] == args.n_kv_heads
    assert graph.model.numbers["norm_eps"] == args.norm_eps
    # A published params.json without a theta is one of Llama 1 or 2, whose code has 10,000; Llama 3's all state theirs.
    stated = "rope_theta" in SMALL[name] or args.use_scaled_rope
    assert graph.model.numbers["rope_theta"] == (args.rope_theta if stated else 10_000)
    assert bool(graph.model.rope) is args.use_scaled_rope


def test_every_entry_of_the_catalogue_as_meta_would_build_it(light: ModuleType, library: Library) -> None:
    """`catalogue_parameters`: each registered entry's arguments, taken from the package and given to Meta's modules."""
    from llama_models.sku_list import all_registered_models

    registered = {model.descriptor(): model for model in all_registered_models()}
    assert len(registered) == 45
    described = [
        (entry, registered[entry.catalogue])
        for family in library.families()
        for entry in family.models
        if entry.architecture and entry.catalogue
    ]
    assert len(described) == 26
    for entry, theirs in described:
        with torch.device("meta"):
            model = light.Transformer(arguments(theirs.arch_args))
        as_catalogued = resolve(entry.id, library).as_catalogued
        assert as_catalogued is not None
        graph = bind(as_catalogued, library)
        assert ours(graph) == state(model), entry.id
        assert parameters.logical(graph) == sum(p.numel() for p in model.parameters()), entry.id


# ---------------------------------------------------------------- the feed-forward's width


class Recorder:
    """Stands for a parallel linear layer, and remembers how wide it was asked to be."""

    asked: list[tuple[int, int]]

    def __init__(self) -> None:
        self.asked = []

    def __call__(self, features: int, out_features: int, **_: Any) -> Any:
        self.asked.append((features, out_features))
        return torch.nn.Identity()


@pytest.fixture(scope="module")
def width_of_meta(meta: ModuleType) -> Callable[[int, int, float | None], int]:
    """The width Meta's FeedForward builds."""

    def width(dim: int, multiple_of: int, multiplier: float | None) -> int:
        recorder = Recorder()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(meta, "ColumnParallelLinear", recorder)
            patch.setattr(meta, "RowParallelLinear", recorder)
            meta.FeedForward(dim, 4 * dim, multiple_of, multiplier)
        (_, gate), (back, _), (_, up) = recorder.asked
        assert gate == back == up
        return gate

    return width


@pytest.mark.parametrize(
    ("dim", "multiple_of", "multiplier", "width"),
    [
        (4096, 1024, 1.3, 14_336),  # 8B
        (8192, 4096, 1.3, 28_672),  # 70B, of Llama 2 as of Llama 3
        (16384, 4096, 1.2, 53_248),  # 405B
        (2048, 256, 1.5, 8_192),  # 3.2 1B
        (3072, 256, 1.0, 8_192),  # 3.2 3B
        (4096, 256, None, 11_008),  # Llama 2 7B
        (5120, 256, None, 13_824),  # Llama 2 13B
        (4096, 256, 1.3, 14_336),  # Guard 2 as catalogued
        (8192, 256, 1.3, 28_416),  # Llama 2 70B chat as catalogued
        (64, 1, 1.4, 237),  # 237.99999999999997 as a double, where exact arithmetic gives 238
        (64, 4, 1.4, 240),
        (1, 1, None, 2),  # 8 / 3
    ],
)
def test_widths(
    dim: int,
    multiple_of: int,
    multiplier: float | None,
    width: int,
    width_of_meta: Callable[[int, int, float | None], int],
) -> None:
    assert width_of_meta(dim, multiple_of, multiplier) == width
    assert dimensions.feed_forward_width(dim, multiple_of, multiplier) == width


@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    dim=st.one_of(st.integers(1, 2**15), st.integers(1, 2**48)),
    multiple_of=st.sampled_from([1, 2, 3, 4, 32, 256, 1000, 1024, 4096]),
    multiplier=st.one_of(
        st.none(), st.sampled_from([1, 2, 1.0, 1.2, 1.3, 1.4, 1.5, 0.1, 0.7]), st.floats(0.01, 100)
    ),
)
def test_any_width_is_that_of_meta(
    dim: int,
    multiple_of: int,
    multiplier: float | None,
    width_of_meta: Callable[[int, int, float | None], int],
) -> None:
    expected = width_of_meta(dim, multiple_of, multiplier)
    assert dimensions.feed_forward_width(dim, multiple_of, multiplier) == expected
