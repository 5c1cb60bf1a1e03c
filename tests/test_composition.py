"""The equations of whole models and of residuals, composed from the graph; the forms are those of the cited forward passes."""

from __future__ import annotations

import pytest

from atlas.api.model import Model
from atlas.graph.binding import bind
from atlas.resolution import config
from atlas.spec.library import Library

RESULTS = {  # the residuals of a layer, as transformers' decoder layer of the class adds them
    "llama": "h = x + attention(norm(x));  x′ = h + ffn(norm(h))",
    "phi": "x′ = x + attention(norm(x)) + ffn(norm(x))",
    "falcon": "x′ = x + (ffn(norm(x)) + attention(norm(x)))",
    "gemma2": "h = x + norm(attention(norm(x)));  x′ = h + norm(ffn(norm(h)))",
    "olmo2": "h = x + norm(attention(x));  x′ = h + norm(ffn(h))",
    "granite": "h = x + c attention(norm(x));  x′ = h + c ffn(norm(h))",
    "opt-post-norm": "h = norm(x + attention(x));  x′ = norm(h + ffn(h))",
    "mixtral": "h = x + attention(norm(x));  x′ = h + experts(norm(h))",
    "deepseek_v3": "h = x + attention(norm(x));  x′ = h + ffn(norm(h))  or  h + (experts(norm(h)) + ffn(norm(h)))",
    "qwen3_next": "h = x + linear_attention(norm(x))  or  x + attention(norm(x));  "
    "x′ = h + ffn(norm(h))  or  h + (experts(norm(h)) + gate(norm(h)) ffn(norm(h)))",
    "gemma4_text-small": "h = x + norm(attention(norm(x)));  h₂ = h + norm(ffn(norm(h)));  "
    "x′ = c (h₂ + norm(layer_input(h₂, p)))",
}

ENDS = {  # the first layer's input and the result of the model
    "llama": ("x₀ = E[I]", "L = norm(x) W_outᵀ"),
    "gpt2": ("x₀ = E[I] + P[t]", "L = norm(x) W_outᵀ"),
    "gemma2": ("x₀ = c E[I]", "L = cap(norm(x) W_outᵀ)"),
    "phi": ("x₀ = E[I]", "L = norm(x) W_outᵀ + b"),
    "bloom": ("x₀ = norm(E[I])", "L = norm(x) W_outᵀ"),
    "opt-post-norm": ("x₀ = projection(E[I]) + P[t]", "L = projection(x) W_outᵀ"),
}

SAMPLES = {
    id: settings
    for name in Library().paths("architectures")
    for id, settings in Library().samples(Library().architecture(name)).items()
}


def model(id: str, library: Library) -> Model:
    return Model(bind(config.describe(SAMPLES[id], library, id=id), library), library)


@pytest.mark.parametrize("id", RESULTS)
def test_the_residuals_of_a_layer(id: str, library: Library) -> None:
    text = model(id, library).explain().equation.text
    assert f";  {RESULTS[id]}, for each layer;  " in text


@pytest.mark.parametrize("id", ENDS)
def test_the_ends_of_a_model(id: str, library: Library) -> None:
    parts = model(id, library).explain().equation.text.split(";  ")
    assert (parts[0], parts[-1]) == ENDS[id]


@pytest.mark.parametrize(("id", "node"), [("phi", "out"), ("olmo2", "h"), ("deepseek_v3", "out")])
def test_the_page_of_a_residual(id: str, node: str, library: Library) -> None:
    described = model(id, library)
    page = described.explain(node)
    assert page.equation.text in described.explain().equation.text
    assert r"\operatorname{attention}" in page.equation.latex or r"\operatorname{ffn}" in page.equation.latex


def test_latex(library: Library) -> None:
    assert model("llama", library).explain().equation.latex == (
        r"x_0 = E[I],\quad h = x + \operatorname{attention}(\operatorname{norm}(x)),\quad "
        r"x' = h + \operatorname{ffn}(\operatorname{norm}(h))\ \text{for each layer},\quad "
        r"L = \operatorname{norm}(x)\,W_{\mathrm{out}}^{\top}"
    )


@pytest.mark.parametrize(
    ("id", "node", "said"),
    [
        ("llama", "feed_forward", "silu(x W₁ᵀ) ⊙"),
        ("gemma", "feed_forward", "gelu_tanh(x W₁ᵀ) ⊙"),
        ("nemotron", "feed_forward", "relu_squared(x W₁ᵀ) W₂ᵀ"),
        ("gpt2", "feed_forward", "gelu_tanh(x W₁ᵀ + b₁) W₂ᵀ + b₂"),
        ("mixtral", "experts", "silu(x W₁ᵀ) ⊙"),
        ("gemma", "norm", "(1 + w) ⊙ x"),
        ("olmo", "norm", "z = (x − mean(x)) / √(var(x) + ε)"),
        ("cohere", "norm", "z = g ⊙ (x − mean(x)) / √(var(x) + ε)"),
        ("nemotron", "norm", "(1 + w) ⊙ (x − mean(x)) / √(var(x) + ε) + b"),
        ("qwen3_next", "attention", "σ(x W_gᵀ) ⊙"),
    ],
)
def test_equations_follow_the_parameters(id: str, node: str, said: str, library: Library) -> None:
    text = model(id, library).explain(node).equation.text
    assert said in text
    assert text.endswith(said) or not said.endswith("ε)")


def test_no_name_of_a_parameter_is_left(library: Library) -> None:
    for id in SAMPLES:
        described = model(id, library)
        texts = [step.equation for step in described.trace().steps]
        assert not [text for text in texts if "<" in text], id
