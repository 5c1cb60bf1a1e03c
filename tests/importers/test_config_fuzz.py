"""Fuzzing: any config.json or params.json is described, counted and told, or refused in one sentence of ours."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlas.analyse import counts, flops, memory, trace
from atlas.errors import AtlasError, clipped
from atlas.graph.binding import bind
from atlas.report.plain import dumps
from atlas.resolution import config, settings
from atlas.resolution.model import MOST_UNKNOWN, messages
from atlas.spec.library import Library
from tests.bounds import fuzz
from tests.mutations import CHOICES, HOSTILE, mutated_bytes, mutated_tree
from tests.verify.checkpoints import CONFIG

SCALED = {
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
    "rope_type": "llama3",
}
HUB = [
    dict(CONFIG),
    {**CONFIG, "rope_scaling": SCALED, "_name_or_path": HOSTILE, "bos_token_id": 1, "eos_token_id": [2, 3]},
    {**CONFIG, "model_type": "mistral", "sliding_window": None, "architectures": ["MistralForCausalLM"]},
]
META = [
    {"dim": 64, "n_layers": 2, "n_heads": 4, "vocab_size": 100, "multiple_of": 32, "norm_eps": 1e-5},
    {
        "dim": 64, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "vocab_size": 100, "multiple_of": 32,
        "ffn_dim_multiplier": 1.3, "norm_eps": 1e-5, "rope_theta": 500000.0, "use_scaled_rope": True,
    },
]  # fmt: skip
ACTS = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
INTERNAL = ("NoneType", "Traceback", "Error:", "<class", "object at 0x", "pydantic", "Input should")


def judged(data: bytes, file: str, library: Library) -> str:
    """`described`, or the code of the refusal."""
    try:
        described = config.describe(settings.decode(data, "x"), library, id="x", file=file)
        graph = bind(described, library)
        answers: list[Callable[[], Any]] = [
            lambda: counts.count(graph, library, by="component"),
            lambda: trace.trace(graph, trace.Pass(1, 1)),
            lambda: memory.memory(graph, context=8),
            lambda: flops.flops(graph),
        ]
        for answer in answers:
            document = dumps(answer())
            # Unicode's own categories, so that the check does not rest on the code that it checks.
            acts = {unicodedata.category(char) for char in document.replace("\n", "")} & ACTS
            assert not acts
            json.loads(document)
        assert len(messages(described)) <= MOST_UNKNOWN + 12
    except AtlasError as error:
        message = clipped(error.message)
        assert len(message) <= 2000
        assert not any(word in message for word in INTERNAL), message
        return error.code
    return "described"


@pytest.mark.parametrize(("file", "documents"), [("config.json", HUB), ("params.json", META)])
@pytest.mark.parametrize("mutate", [mutated_tree, mutated_bytes])
def test_a_model_or_a_refusal(
    mutate: Callable[[bytes, Any], bytes], file: str, documents: list[Any], library: Library
) -> None:
    seen: Counter[str] = Counter()

    @fuzz(150)
    @given(st.binary(min_size=CHOICES, max_size=CHOICES))
    def run(raw: bytes) -> None:
        seen[judged(mutate(raw, documents), file, library)] += 1

    run()
    assert {"described", "config"} <= set(seen), f"the mutations no longer reach both: {seen}"


def test_the_documents_themselves_are_described(library: Library) -> None:
    for file, documents in (("config.json", HUB), ("params.json", META)):
        for document in documents:
            assert judged(json.dumps(document).encode(), file, library) == "described"
