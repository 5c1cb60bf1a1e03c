"""A block's program: what is fused and what is not, orders that must not meet, and errors that say where."""
# ruff: noqa: E402  what needs torch is imported after the question whether it is there

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip(
    "torch", reason="`atlas run` needs the extra: pip install 'open-model-atlas[run]'"
)

from atlas.errors import RunError, SpecError
from atlas.execution import kernels
from atlas.execution.program import compile_block
from atlas.execution.random_weights import RandomWeights
from atlas.execution.runner import Runner
from atlas.graph.graph import Graph
from atlas.spec.library import Library, builtin_folder

CPU = torch.device("cpu")
TOKENS = torch.tensor([[5, 0, 66, 33, 8, 8, 41]])
Planted = Callable[..., Library]


@pytest.fixture
def planted(overlay: Callable[..., Library]) -> Planted:
    """Edits of the attention's description -> a library with them over the atlas's own."""

    def make(*edits: tuple[str, str]) -> Library:
        text = (builtin_folder() / "components" / "attention.toml").read_text(encoding="utf-8")
        for old, new in edits:
            assert old in text
            text = text.replace(old, new)
        return overlay({"components/attention.toml": text})

    return make


def runner(graph: Graph, fuse: bool) -> Runner:
    weights = RandomWeights(graph, dtype=torch.float32, device=CPU, seed=0)
    return Runner(graph, weights, dtype=torch.float32, device=CPU, fuse=fuse)


# ---- fusing

CAPPED = """[[steps]]
id = "squeezed"
op = "tanh"
of = ["scores"]
shape = "batch n_heads positions keys"
out = "scores"

[[steps]]
id = "capped"
"""
READ_LATER = """[[steps]]
id = "again"
op = "scale"
of = ["weights"]
shape = "batch n_heads positions keys"
by = "scale"

[[steps]]
id = "projected"
"""


def test_the_exact_sequence_is_one_call(shrink: Callable[..., Graph]) -> None:
    graph = shrink("llama")
    assert runner(graph, fuse=True).fused
    assert not runner(graph, fuse=False).fused
    torch.testing.assert_close(
        runner(graph, fuse=True)(TOKENS), runner(graph, fuse=False)(TOKENS), atol=1e-5, rtol=0
    )


NOT_THE_SEQUENCE: dict[str, tuple[str, str]] = {
    "an operation between": ('[[steps]]\nid = "capped"\n', CAPPED),
    "a result inside that is read later": ('[[steps]]\nid = "projected"\n', READ_LATER),
    "softmax in the activations' dtype": (
        'over = "keys"\nwhen = "not sinks"\ndtype = "F32"\n',
        'over = "keys"\nwhen = "not sinks"\n',
    ),
    "softmax along another axis": ('over = "keys"', 'over = "positions"'),
    "scores the other way round": ("batch n_heads positions keys", "batch n_heads keys positions"),
    "mixed values the other way round": (
        'of = ["weights", "values"]\nshape = "batch positions n_heads head_dim"',
        'of = ["weights", "values"]\nshape = "batch n_heads positions head_dim"',
    ),
}


@pytest.mark.parametrize("case", NOT_THE_SEQUENCE)
def test_what_is_not_the_sequence_runs_as_it_is_written(
    shrink: Callable[..., Graph], planted: Planted, case: str
) -> None:
    graph = shrink("llama", using=planted(NOT_THE_SEQUENCE[case]))
    either = runner(graph, fuse=True)
    assert not either.fused
    assert torch.equal(either(TOKENS), runner(graph, fuse=False)(TOKENS))


# ---- the order of a head's rows


def compiled(graph: Graph, **orders: dict[str, tuple[str, ...]]) -> None:
    block = next(block for block in graph.blocks if block.id == "attention")
    named = {f"attention.{weight}": order for weight, order in orders.items()}
    compile_block(block, graph, orders=named, dtype=torch.float32, fuse=True, names={}, kept=())


HALVES = {"head_dim": ("two", "pair")}


def test_orders_that_agree_are_followed(shrink: Callable[..., Graph]) -> None:
    compiled(shrink("llama"), wq=HALVES, wk=HALVES)
    compiled(shrink("llama", attention_bias=True), wq=HALVES, wk=HALVES, bq=HALVES, bk=HALVES)


@pytest.mark.parametrize(
    ("orders", "message"),
    [
        ({"wq": HALVES, "bq": HALVES}, r"attention\.scores: .* are in the order \(two pair\) in one operand and in another order in attention\.keys"),
        ({"wq": HALVES, "wk": HALVES, "bq": HALVES}, r"attention\.k_biased: .* in another order in attention\.bk"),
        ({"wv": HALVES}, r"attention\.v_biased: .* in another order in attention\.bv"),
        ({"wv": HALVES, "bv": HALVES}, r"attention\.projected: .* in another order in attention\.wo"),
        ({"wo": {"dim": ("two", "pair")}, "bo": {"dim": ("two", "pair")}}, r"h\.sum: .* in another order in x"),
    ],
)  # fmt: skip
def test_orders_that_disagree_are_refused_by_name(
    shrink: Callable[..., Graph], orders: dict[str, dict[str, tuple[str, ...]]], message: str
) -> None:
    with pytest.raises(SpecError, match=message):
        compiled(shrink("llama", attention_bias=True), **orders)


def test_an_order_is_not_renamed_away(shrink: Callable[..., Graph], overlay: Callable[..., Library]) -> None:
    """Under another name the axis would seem to be in the order of the vocabulary."""
    text = (builtin_folder() / "components" / "attention.toml").read_text(encoding="utf-8")
    at = text.index('[[steps]]\nid = "keys"\n')
    library = overlay(
        {
            "axes.toml": 'width = { meaning = "a head again", symbol = "w", size = "head_dim" }',
            "components/attention.toml": text[:at]
            + '[[steps]]\nid = "renamed"\nop = "rename"\nof = ["q"]\nshape = "batch positions n_heads width"\n\n'
            + text[at:],
        }
    )
    compiled(shrink("llama", using=library))
    with pytest.raises(SpecError, match=r"attention\.renamed: renames head_dim"):
        compiled(shrink("llama", using=library), wq=HALVES, wk=HALVES)


# ---- what the top level keeps


def test_a_symbol_of_the_top_level_is_there_for_all_that_read_it(
    shrink: Callable[..., Graph], overlay: Callable[..., Library]
) -> None:
    """A stack that does not begin with the node before it, and a block that reads a node outside its layer."""
    text = (builtin_folder() / "architectures" / "decoder.toml").read_text(encoding="utf-8")
    for old, new in [
        (
            '  { stack = "layers", of = "tok_embeddings" },\n',
            '  { node = { id = "twice", is = "add", of = ["tok_embeddings", "tok_embeddings"] } },\n'
            '  { stack = "layers", of = "tok_embeddings" },\n',
        ),
        (
            'id = "h", is = "add", of = ["x", "attention"]',
            'id = "h", is = "add", of = ["twice", "attention"]',
        ),
    ]:
        assert text.count(old) == 1
        text = text.replace(old, new)
    graph = shrink("llama", using=overlay({"architectures/decoder.toml": text}))
    made: dict[str, torch.Tensor] = {}
    runner(graph, fuse=False)(TOKENS, observe=lambda step, value: made.update({step: value.clone()}))
    twice = 2 * made["tok_embeddings.embedded"]
    for layer in range(3):
        expected = twice + made[f"layers.{layer}.attention.projected"]
        assert torch.equal(made[f"layers.{layer}.h.sum"], expected)


# ---- errors


def test_an_error_says_layer_node_and_step(
    shrink: Callable[..., Graph], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*given: object) -> Callable[..., object]:
        return lambda state, x: x if state.layer == 0 else x.reshape(1, 2, 3)

    monkeypatch.setitem(kernels.BUILDERS, "activate", broken)
    with pytest.raises(
        RunError, match=r"^layers\.1\.feed_forward\.opened: shape '\[1, 2, 3\]' is invalid"
    ) as error:
        runner(shrink("llama"), fuse=False)(TOKENS)
    assert (error.value.code, error.value.exit_code) == ("run", 2)


def test_an_id_outside_the_table_is_an_error_at_the_embedding(shrink: Callable[..., Graph]) -> None:
    with pytest.raises(RunError, match=r"^tok_embeddings\.embedded: index 67 is out of bounds"):
        runner(shrink("llama"), fuse=False)(torch.tensor([[67]]))


def test_out_of_memory_is_said_in_so_many_words(
    shrink: Callable[..., Graph], monkeypatch: pytest.MonkeyPatch
) -> None:
    def greedy(*given: object) -> Callable[..., object]:
        return lambda state, x: torch.empty(2**60, dtype=torch.uint8)

    monkeypatch.setitem(kernels.BUILDERS, "activate", greedy)
    with pytest.raises(RunError, match=r"layers\.0\.feed_forward\.opened: out of memory") as error:
        runner(shrink("llama"), fuse=False)(TOKENS)
    assert error.value.code == "out_of_memory"
    assert "--dtype" in error.value.hint
