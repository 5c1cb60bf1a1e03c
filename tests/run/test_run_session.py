"""A whole run: what it answers, what it refuses, and the 8B at its true size on a machine without a checkpoint."""
# ruff: noqa: E402  what needs torch is imported after the question whether it is there

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip(
    "torch", reason="`atlas run` needs the extra: pip install 'open-model-atlas[run]'"
)

from safetensors.torch import load_file

from atlas.analyse.trace import Pass
from atlas.errors import NotDescribed, RunError, UsageError
from atlas.execution import sampling, session
from atlas.execution.observer import Observer
from atlas.execution.options import Options
from atlas.execution.result import NextToken, Result
from atlas.execution.session import Callbacks, run, run_each
from atlas.graph.binding import bind
from atlas.graph.graph import Graph
from atlas.resolution.model import Gap
from atlas.resolution.resolve import from_path
from atlas.spec.library import Library

IDS = (5, 0, 67, 33, 8)


@pytest.fixture
def graph(whole: Path, library: Library) -> Graph:
    return bind(from_path(whole, library), library)


@pytest.fixture
def ran(graph: Graph, whole: Path) -> Callable[..., Result]:
    """Options -> the run of the small checkpoint with them."""

    def make(**options: Any) -> Result:
        return run(graph, Options(**({"weights": whole, "token_ids": IDS} | options)))

    return make


# ---- the answer


def test_the_answer_has_the_keys_of_the_contract(ran: Callable[..., Result], whole: Path) -> None:
    found = json.loads(json.dumps(asdict(ran(max_new_tokens=3))))
    assert list(found) == [
        "model", "weights", "source", "device", "dtype", "kernel", "tokenizer", "prompt_ids",
        "prompt_tokens", "logits", "confirmed", "steps", "next_tokens", "generated", "seconds", "decode_passes",
        "tokens_per_second", "peak_memory_bytes", "warnings", "notes",
    ]  # fmt: skip
    assert found["logits"] == {"shape": [1, 5, 68], "dtype": "F32", "finite": True}
    assert list(found["steps"]) == ["declared", "observed", "mismatches", "not_finite", "not_observed"]
    assert list(found["tokens_per_second"]) == ["prefill", "decode"]
    assert list(found["next_tokens"][0]) == ["id", "text", "logit", "probability"]
    assert list(found["generated"]) == ["ids", "text"]
    assert list(found["seconds"]) == ["load", "prefill", "decode"]
    assert (found["weights"], found["source"], found["prompt_ids"]) == ("checkpoint", str(whole), list(IDS))
    assert (found["dtype"], found["tokenizer"], found["confirmed"]) == ("F32", None, True)
    assert found["peak_memory_bytes"] > 50 * 2**20


def test_tracing_observes_every_declared_step(ran: Callable[..., Result]) -> None:
    plain, traced = ran(), ran(trace=True)
    assert plain.kernel == "scaled_dot_product_attention"
    assert traced.kernel == "as declared"
    assert traced.steps.observed == traced.steps.declared == plain.steps.declared
    assert plain.steps.observed == plain.steps.declared - 5 * 3
    assert plain.confirmed
    assert traced.confirmed


def test_next_tokens_are_the_likeliest(
    ran: Callable[..., Result], whole: Path, logits_of: Callable[..., Any]
) -> None:
    logits = logits_of(whole, [IDS])[0, -1].numpy().astype(np.float64)
    order = np.argsort(-logits)[:4]
    share = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
    found = ran(show=4).next_tokens
    assert [token.id for token in found] == order.tolist()
    np.testing.assert_allclose([token.logit for token in found], logits[order], rtol=1e-6)
    np.testing.assert_allclose([token.probability for token in found], share[order], rtol=1e-5)
    assert isinstance(found[0], NextToken)
    assert found[0].text is None
    assert ran(show=0).next_tokens == ()
    assert len(ran(show=1000).next_tokens) == 68


def test_generation_equals_whole_passes_without_a_cache(
    ran: Callable[..., Result], whole: Path, logits_of: Callable[..., Any]
) -> None:
    ids = list(IDS)
    for _ in range(6):
        ids.append(int(logits_of(whole, [ids])[0, -1].argmax()))
    assert ran(max_new_tokens=6).generated.ids == tuple(ids[5:])
    assert ran(max_new_tokens=6, trace=True).generated.ids == tuple(ids[5:])


def test_a_text_ends_at_its_end(ran: Callable[..., Result], whole: Path) -> None:
    free = ran(max_new_tokens=6).generated.ids
    (whole / "generation_config.json").write_text(json.dumps({"eos_token_id": [66, free[2]]}))
    assert ran(max_new_tokens=6).generated.ids == free[: free.index(free[2]) + 1]


def test_sampling_follows_from_its_seed(ran: Callable[..., Result]) -> None:
    def drawn(**options: Any) -> tuple[int, ...]:
        return ran(max_new_tokens=8, temperature=1.5, **options).generated.ids

    assert drawn(seed=1) == drawn(seed=1)
    assert len({drawn(seed=seed) for seed in range(4)}) > 1
    greedy = ran(max_new_tokens=8).generated.ids
    assert drawn(top_k=1) == greedy
    assert ran(max_new_tokens=8, temperature=1e-9).generated.ids == greedy


def test_the_frequencies_of_sampling() -> None:
    logits = torch.tensor([0.0, 1.0, 3.0, 2.0, -1.0])
    generator = torch.Generator().manual_seed(0)
    for top_k, among in [(None, [0, 1, 2, 3, 4]), (2, [2, 3]), (9, [0, 1, 2, 3, 4])]:
        drawn = [sampling.choose(logits, 2.0, top_k, generator) for _ in range(4000)]
        expected = np.exp(logits.numpy()[among] / 2.0)
        expected /= expected.sum()
        counts = np.bincount(drawn, minlength=5)
        assert counts.sum() == counts[among].sum()
        np.testing.assert_allclose(counts[among] / 4000, expected, atol=0.03)


def test_progress_is_reported(graph: Graph, whole: Path) -> None:
    calls: list[tuple[str, int, int]] = []
    options = Options(weights=whole, token_ids=IDS, max_new_tokens=2)
    run(graph, options, Callbacks(on_progress=lambda *what: calls.append(what)))
    assert calls == [("layers", 0, 3), ("layers", 1, 3), ("layers", 2, 3), ("tokens", 0, 2), ("tokens", 1, 2)]


def test_another_dtype(ran: Callable[..., Result]) -> None:
    found = ran(dtype="bfloat16")
    assert (found.dtype, found.confirmed, found.logits.dtype) == ("BF16", True, "F32")
    assert found.notes == ("the weights are stored in F32, and converted to BF16 when read",)


def test_random_weights_are_said_to_be_random(graph: Graph) -> None:
    found = run(graph, Options(token_ids=IDS, seed=7))
    assert (found.weights, found.source, found.dtype) == ("random", "seed 7", "BF16")
    assert found.confirmed
    assert "random weights" in found.notes[0]


def test_more_positions_than_the_model_was_made_for_is_a_note(
    store: Callable[..., Path], params: dict[str, Any], tensors: dict[str, Any], library: Library
) -> None:
    folder = store(params | {"max_seq_len": 8}, tensors, name="consolidated.00")
    graph = bind(from_path(folder, library), library)
    assert run(graph, Options(weights=folder, token_ids=IDS, max_new_tokens=3)).notes == ()
    longer = run(graph, Options(weights=folder, token_ids=IDS, max_new_tokens=4))
    assert longer.notes == ("9 positions exceed the model's context length of 8",)


# ---- generation: rates, text, sampling, several prompts, and the trace


def test_passes_and_rates(ran: Callable[..., Result]) -> None:
    """The last token is not read again: n tokens take n - 1 passes after the prompt's."""
    for tokens, passes in [(0, 0), (1, 0), (4, 3)]:
        found = ran(max_new_tokens=tokens)
        assert (len(found.generated.ids), found.decode_passes) == (tokens, passes)
        assert found.tokens_per_second.prefill == pytest.approx(5 / found.seconds.prefill)
        rate = found.tokens_per_second.decode
        assert rate == (pytest.approx(passes / found.seconds.decode) if passes else None)


def test_ids_are_streamed_without_a_tokenizer(graph: Graph, whole: Path) -> None:
    pieces: list[str] = []
    options = Options(weights=whole, token_ids=IDS, max_new_tokens=3)
    found = run(graph, options, Callbacks(on_text=pieces.append))
    assert "".join(pieces) == ", ".join(map(str, found.generated.ids))
    assert len(pieces) == 3


def test_top_p_keeps_the_tokens_that_transformers_keeps() -> None:
    transformers = pytest.importorskip("transformers", reason="its warper is the other source")
    logits = torch.tensor([0.0, 1.0, 3.0, 2.0, -1.0, 2.5])
    for top_p in (0.05, 0.4, 0.75, 0.99, 1.0):
        generator = torch.Generator().manual_seed(0)
        drawn = {sampling.choose(logits, 1.0, None, generator, top_p) for _ in range(3000)}
        kept = transformers.generation.TopPLogitsWarper(top_p)(None, logits[None])[0].isfinite()
        assert drawn == set(kept.nonzero().flatten().tolist()), top_p


def test_several_prompts_are_runs_with_the_weights_loaded_once(whole: Path, graph: Graph) -> None:
    options = Options(weights=None, max_new_tokens=2)
    prompts = ["A", "0123", "!"]
    found = list(run_each(graph, options, prompts))
    assert [result.prompt_ids for result in found] == [tuple(text.encode()) for text in prompts]
    assert found[1].generated.ids == run(graph, replace(options, prompt="0123")).generated.ids
    with pytest.raises(UsageError, match="token 195 is outside"):
        next(iter(run_each(graph, options, ["A", "é"])))  # before the first is run


def test_the_observed_trace_sums_up_every_step(graph: Graph, whole: Path) -> None:
    for traced in (True, False):
        traces: list[Any] = []
        options = Options(weights=whole, token_ids=IDS, trace=traced)
        found = run(graph, options, Callbacks(on_trace=traces.append))
        (trace,) = traces
        assert len(trace.steps) == found.steps.observed
        assert trace.not_observed == found.steps.not_observed
        assert len(trace.not_observed) == (0 if traced else 5 * 3)
    by_id = {step.id: step for step in trace.steps}
    embedded = by_id["tok_embeddings.embedded"]
    assert (embedded.shape, embedded.dtype, embedded.finite) == ((1, 5, 60), "F32", True)
    rows = load_file(whole / "consolidated.00.safetensors")["tok_embeddings.weight"][list(IDS)].double()
    assert embedded.min == float(rows.min())
    assert embedded.max == float(rows.max())
    assert embedded.mean == pytest.approx(float(rows.mean()))
    assert embedded.rms == pytest.approx(float((rows**2).mean().sqrt()))
    json.loads(json.dumps(asdict(trace), allow_nan=False))


# ---- not confirmed, and refused


@pytest.mark.parametrize("trace", [False, True])
@pytest.mark.parametrize(
    ("weight", "value", "step"),
    [
        ("layers.1.attention.wq", torch.nan, "layers.1.attention.queries"),
        ("layers.0.attention.wk", torch.inf, "layers.0.attention.keys"),
        ("layers.2.attention.wv", -torch.inf, "layers.2.attention.values"),
    ],
)
def test_a_weight_that_is_not_finite_is_not_confirmed(
    store: Callable[..., Path],
    params: dict[str, Any],
    tensors: dict[str, Any],
    graph: Graph,
    weight: str,
    value: float,
    step: str,
    trace: bool,
) -> None:
    """Fused attention may swallow the value, so that the logits are finite: every observed step is checked."""
    tensors[f"{weight}.weight"][3, 4] = value
    folder = store(params, tensors, name="consolidated.00")
    found = run(graph, Options(weights=folder, token_ids=IDS, max_new_tokens=3, trace=trace))
    assert not found.confirmed
    assert found.steps.not_finite[0].startswith(step.rpartition(".")[0])
    assert found.generated.ids == ()
    json.loads(json.dumps(asdict(found), allow_nan=False))


def test_masked_scores_are_no_fault_and_a_nan_among_them_is(graph: Graph, whole: Path) -> None:
    sizes = Pass(batch=1, positions=5, past=0)
    masked = torch.full((1, 6, 5, 5), 0.5).masked_fill(torch.ones(5, 5).triu(1).bool(), -torch.inf)
    for value, step, sound in [
        (None, "layers.0.attention.masked", True),
        (None, "layers.0.attention.scores", False),
        (torch.nan, "layers.0.attention.masked", False),
        (torch.inf, "layers.0.attention.masked", False),
    ]:
        observer = Observer(graph, sizes)
        result = masked.clone()
        if value is not None:
            result[0, 2, 3, 1] = value
        observer(step, result)
        assert (observer.steps.not_finite == ()) is sound


def test_logits_that_are_not_finite_are_not_confirmed(
    store: Callable[..., Path],
    params: dict[str, Any],
    tensors: dict[str, Any],
    graph: Graph,
) -> None:
    tensors["output.weight"][3] = torch.inf
    folder = store(params, tensors, name="consolidated.00")
    found = run(graph, Options(weights=folder, token_ids=IDS, max_new_tokens=3))
    assert not found.logits.finite
    assert not found.confirmed
    assert found.steps.mismatches == ()
    assert (found.next_tokens, found.generated.ids) == ((), ())
    json.loads(json.dumps(asdict(found), allow_nan=False))


def test_logits_that_cease_to_be_finite_end_the_run(
    store: Callable[..., Path], params: dict[str, Any], tensors: dict[str, Any], graph: Graph
) -> None:
    first = run(
        graph,
        Options(weights=store(params, tensors, name="consolidated.00"), token_ids=IDS, max_new_tokens=1),
    )
    tensors["tok_embeddings.weight"][first.generated.ids[0]] = torch.nan
    folder = store(params, tensors, name="consolidated.00")
    with pytest.raises(RunError, match="after 1 tokens the logits are not finite"):
        run(graph, Options(weights=folder, token_ids=IDS, max_new_tokens=3))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"max_new_tokens": -1}, "--max-new-tokens is -1, expected an integer from 0 to 2,147,483,647"),
        ({"show": -1}, "--show is -1"),
        ({"top_k": 0}, "--top-k is 0, expected 1 or more"),
        ({"temperature": -0.1}, r"--temperature is -0\.1"),
        ({"temperature": float("nan")}, "--temperature is nan"),
        ({"seed": -1}, "--seed is -1"),
        ({"max_new_tokens": 2**63}, "--max-new-tokens is 9223372036854775808"),
        ({"temperature": float("inf")}, "--temperature is inf"),
        ({"top_p": 0.0}, r"--top-p is 0\.0, expected a number above 0 and at most 1"),
        ({"top_p": 1.5}, r"--top-p is 1\.5"),
        ({"top_p": float("nan")}, "--top-p is nan"),
        ({"bos": True}, "--token-ids are used as they are: --bos applies to text only"),
        ({"bos": False}, "--token-ids are used as they are: --no-bos"),
        ({"token_ids": None, "prompt": "\ud800"}, "--prompt is not UTF-8"),
        ({"prompt": "hi"}, "--prompt and --token-ids are both given"),
        ({"device": "tpu"}, "unknown device .tpu."),
        ({"dtype": "I8"}, "cannot be run in I8"),
        ({"dtype": "bf17"}, "unknown dtype .bf17."),
        ({"token_ids": (68,)}, "token 68 is outside the vocabulary of 68"),
    ],
)
def test_options_out_of_range_are_refused(
    ran: Callable[..., Result], options: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        ran(**options)


def test_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    here = {"cuda": False, "mps": False}
    monkeypatch.setattr(torch.cuda, "is_available", lambda: here["cuda"])
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: here["mps"])
    assert session.devices.choose("auto").type == "cpu"
    with pytest.raises(UsageError, match="this machine has no cuda device"):
        session.devices.choose("cuda")
    here["mps"] = True
    assert session.devices.choose("auto").type == "mps"
    here["cuda"] = True
    assert session.devices.choose("auto").type == "cuda"
    assert session.devices.choose("cpu").type == "cpu"


def test_what_is_not_described_is_not_run(graph: Graph, whole: Path) -> None:
    gap = Gap("positions are scaled in the form 'yarn'", frozenset({"run"}))
    undescribed = replace(graph, model=replace(graph.model, gaps=(gap,)))
    with pytest.raises(NotDescribed, match="yarn"):
        run(undescribed, Options(weights=whole, token_ids=IDS))


# ---- without the extra


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_without_the_extra_the_command_that_installs_it_is_said() -> None:
    done = python(
        "import sys; sys.modules['torch'] = None\n"
        "from atlas.errors import MissingExtra\n"
        "from atlas.execution import require_extra\n"
        "try: require_extra()\n"
        "except MissingExtra as error: print(error.message, error.hint, sep='\\n')\n"
    )
    message, hint = done.stdout.splitlines()
    assert message == "`atlas run` needs torch, which this installation does not have"
    assert hint == "pip install torch; the extra `run` has them all"


def test_asking_and_answering_need_no_torch() -> None:
    done = python(
        "import sys, atlas.execution, atlas.execution.options, atlas.execution.result\n"
        "atlas.execution.require_extra()\n"
        "print(sorted({'torch', 'numpy', 'tokenizers', 'transformers'} & sys.modules.keys()))"
    )
    assert done.stdout.strip() == "[]", done.stderr


# ---- the 8B without a checkpoint


@pytest.fixture(scope="module")
def eight_billion() -> dict[str, Any]:
    """`atlas run --prompt "The capital of France is"` in a process of its own, and the most memory it had resident."""
    code = (
        "import json, dataclasses\n"
        "from atlas.graph.binding import bind\n"
        "from atlas.spec.library import Library\n"
        "from atlas.resolution.resolve import resolve\n"
        "from atlas.execution.options import Options\n"
        "from atlas.execution.session import run\n"
        "library = Library()\n"
        "graph = bind(resolve('llama3.1-8b', library), library)\n"
        "print(json.dumps(dataclasses.asdict(run(graph, Options(prompt='The capital of France is')))))\n"
    )
    done = python(code)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_8b_runs_at_its_true_size_on_random_weights(eight_billion: dict[str, Any]) -> None:
    assert eight_billion["logits"] == {"shape": [1, 24, 128256], "dtype": "F32", "finite": True}
    assert eight_billion["dtype"] == "BF16"
    assert eight_billion["confirmed"] is True
    # In each layer all but the five inside the one attention call.
    steps = eight_billion["steps"]
    assert (steps["declared"], steps["observed"], len(steps["not_observed"])) == (870, 870 - 5 * 32, 5 * 32)
    assert steps["mismatches"] == steps["not_finite"] == []
    assert eight_billion["weights"] == "random"
    assert eight_billion["prompt_ids"] == list(b"The capital of France is")
    assert any("confirm shapes and dtypes, not text" in note for note in eight_billion["notes"])
    assert any("UTF-8 bytes" in note for note in eight_billion["notes"])


def test_the_8b_stays_below_2_gib_resident(eight_billion: dict[str, Any]) -> None:
    resource = pytest.importorskip("resource", reason="there is no account of memory on this system")
    largest = 128_256 * 4_096 * 2  # the embedding alone, in bytes
    assert largest < eight_billion["peak_memory_bytes"] < 2 * 2**30
    # And as the system counts it: the most that any process begun here has had.
    unit = 1 if sys.platform == "darwin" else 1024
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit < 2 * 2**30
