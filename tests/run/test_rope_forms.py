"""RoPE in every published form: frequencies and factor against transformers' own, at several lengths."""
# ruff: noqa: E402  what needs torch is imported after the question whether it is there

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip(
    "torch", reason="`atlas run` needs the extra: pip install 'open-model-atlas[run]'"
)
transformers = pytest.importorskip("transformers", reason="its frequencies are the other source")

from atlas.errors import SpecError
from atlas.execution.rope_forms import depends_on_length, frequencies
from atlas.resolution import rope

LONGEST, WIDTH, THETA = 4096, 24, 10000.0
PLANES = WIDTH // 2

FORMS: dict[str, dict[str, Any]] = {
    "linear": {"rope_type": "linear", "factor": 4.0},
    "dynamic": {"rope_type": "dynamic", "factor": 2.0},
    "yarn": {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 512},
    "yarn, not truncated": {
        "rope_type": "yarn", "factor": 32.0, "original_max_position_embeddings": 128, "beta_fast": 20.0, "beta_slow": 2.0, "truncate": False,
    },
    "yarn with mscale": {
        "rope_type": "yarn", "factor": 40.0, "original_max_position_embeddings": 512, "mscale": 1.0, "mscale_all_dim": 0.707,
    },
    "yarn with a factor for attention": {
        "rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 512, "attention_factor": 1.3,
    },
    "longrope": {
        "rope_type": "longrope", "original_max_position_embeddings": 512,
        "short_factor": [1 + j / 10 for j in range(PLANES)], "long_factor": [2 + j for j in range(PLANES)],
    },
    "longrope with a factor": {
        "rope_type": "longrope", "original_max_position_embeddings": 512, "factor": 5.0,
        "short_factor": [1.0] * PLANES, "long_factor": [3.0] * PLANES,
    },
    "llama3": {
        "rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 500,
    },
    "proportional": {"rope_type": "proportional", "partial_rotary_factor": 0.25},
    "proportional with a factor": {"rope_type": "proportional", "partial_rotary_factor": 0.5, "factor": 3.0},
}  # fmt: skip


@pytest.mark.parametrize("length", [1, 40, 600, 5000])
@pytest.mark.parametrize("form", FORMS)
def test_frequencies_are_those_of_transformers(form: str, length: int) -> None:
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    settings = FORMS[form]
    config = transformers.LlamaConfig(
        hidden_size=2 * WIDTH,
        num_attention_heads=2,
        head_dim=WIDTH,
        max_position_embeddings=LONGEST,
        rope_parameters={**settings, "rope_theta": THETA},
    )
    seen = rope.read("rope_parameters", settings, longest=LONGEST)
    assert (seen.gaps, seen.faults, seen.others) == ([], [], {})
    expected, expected_factor = ROPE_INIT_FUNCTIONS[settings["rope_type"]](
        config, torch.device("cpu"), seq_len=length
    )
    found, factor = frequencies(THETA, WIDTH, seen.scaling, length)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=0)
    assert factor == pytest.approx(expected_factor, rel=1e-12)
    positions = torch.tensor([0, 1, length - 1]).float()
    torch.testing.assert_close(
        torch.outer(positions, found).cos() * factor, torch.outer(positions, expected).cos() * expected_factor,
        rtol=0, atol=1e-5,
    )  # fmt: skip


def test_every_form_of_transformers_is_described_and_tried() -> None:
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    tried = {settings["rope_type"] for settings in FORMS.values()}
    assert tried == set(ROPE_INIT_FUNCTIONS) == set(rope.FORMS) - {"default"}


def test_the_length_matters_in_two_forms_only() -> None:
    for name, settings in FORMS.items():
        scaling = rope.read("rope_parameters", settings, longest=LONGEST).scaling
        short, long = (frequencies(THETA, WIDTH, scaling, length)[0] for length in (40, 5000))
        assert depends_on_length(scaling) == (not torch.equal(short, long)), name


@pytest.mark.parametrize("name", ["su", "mrope"])
def test_other_names_mean_the_same(name: str) -> None:
    assert rope.name_of(name) in rope.FORMS


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"rope_type": "linear"}, "rope_scaling.factor is missing, expected a positive number: the linear form needs it"),
        ({"rope_type": "longrope", "short_factor": 3}, "rope_scaling.short_factor is 3, expected a list"),
        ({"rope_type": "yarn", "factor": "4"}, 'rope_scaling.factor is "4", expected a positive number'),
    ],
)  # fmt: skip
def test_a_parameter_that_is_missing_or_none_is_named(settings: dict[str, Any], words: str) -> None:
    found = rope.read("rope_scaling", settings, longest=LONGEST, original=512)
    assert any(words in fault.reason for fault in found.faults)


def test_factors_for_another_number_of_planes_are_refused() -> None:
    scaling = rope.read("rope_scaling", FORMS["longrope"], longest=LONGEST).scaling
    with pytest.raises(SpecError, match="its lists have 12 factors, expected one for each of 8 planes"):
        frequencies(THETA, 16, scaling, 40)
