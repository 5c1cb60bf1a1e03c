"""Names of tensors: a template expands and matches back, and says what its tensor holds."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlas.errors import SpecError
from atlas.grammar.names import Template, holding

words = st.sampled_from(["layer", "expert", "block", "n0"])
# A piece of a name without braces; not starting or ending in a digit, so that an index ends where it ends.
texts = st.from_regex(
    r"[A-Za-z_.\-+*$^\[\]|?](?:[A-Za-z0-9_.\-+()*$^\[\]|?]{0,6}[A-Za-z_.\-+*$?])?", fullmatch=True
)


@st.composite
def templates(draw: st.DrawFn) -> tuple[Template, dict[str, int]]:
    text = draw(st.one_of(texts, st.just("")))
    indices: dict[str, int] = {}
    for _ in range(draw(st.integers(0, 3))):
        word = draw(words)
        indices.setdefault(word, draw(st.integers(0, 10**6)))
        text += f"{{{word}}}" + draw(texts)
    return Template(text), indices


@given(templates())
def test_expand_then_match_gives_the_indices_back(given_: tuple[Template, dict[str, int]]) -> None:
    template, indices = given_
    name = template.expand(**indices)
    assert template.match(name) == indices
    assert "{" not in name
    assert set(template.placeholders) == indices.keys()


@given(templates(), st.sampled_from(["x", ".", " ", "0", "\n"]))
def test_a_name_with_something_more_is_another(given_: tuple[Template, dict[str, int]], extra: str) -> None:
    template, indices = given_
    name = template.expand(**indices)
    found = template.match(name + extra)
    assert found is None or template.expand(**found) == name + extra


@given(st.text(max_size=40))
def test_what_matches_expands_to_itself(name: str) -> None:
    template = Template("layers.{layer}.w{expert}")
    found = template.match(name)
    assert found is None or template.expand(**found) == name


@pytest.mark.parametrize(
    "name",
    [
        "model.layers.03.weight",
        "model.layers.-1.weight",
        "model.layers.+1.weight",
        "model.layers. 1.weight",
        "model.layers.1_0.weight",
        "model.layers.٣.weight",
        "model.layers.1.0.weight",
        "model.layers..weight",
        "model.layers.1.weight.weight",
        "model.layers.1.weight\n",
        "xmodel.layers.1.weight",
        "modelXlayers.1.weight",
        "model.layers.{layer}.weight",
    ],
)
def test_names_that_only_look_alike(name: str) -> None:
    assert Template("model.layers.{layer}.weight").match(name) is None


def test_a_placeholder_that_stands_twice_is_the_same_number() -> None:
    template = Template("a.{layer}.b.{layer}")
    assert template.expand(layer=7) == "a.7.b.7"
    assert template.match("a.7.b.7") == {"layer": 7}
    assert template.match("a.7.b.8") is None


def test_dots_are_dots() -> None:
    assert Template("norm.weight").match("norm.weight") == {}
    assert Template("norm.weight").match("normXweight") is None


@pytest.mark.parametrize("text", ["w.{layer.real}", "w.{0}{", "w.{}", "w.}{", "w.{layer!r}", "w.{{layer}}x"])
def test_braces_are_placeholders_or_refused(text: str) -> None:
    with pytest.raises(SpecError, match="placeholder") as caught:
        Template(text).expand(layer=1)
    assert repr(text) in caught.value.message


def test_two_placeholders_side_by_side_are_refused() -> None:
    """`12` could be layer 1, expert 2, or layer 12 and nothing."""
    with pytest.raises(SpecError, match=re.escape("'w.{layer}{expert}'")):
        Template("w.{layer}{expert}").expand(layer=1, expert=2)


# ---------------------------------------------------------------- what a tensor holds


@pytest.mark.parametrize(
    ("text", "weights", "along"),
    [
        ("attention.wq", ("attention.wq",), None),
        ("attention.wq = (n_heads two pair) dim", ("attention.wq",), None),
        ("experts.w1 + experts.w3 = n_experts dim *", ("experts.w1", "experts.w3"), 2),
        ("a.wk + a.wv = (n_heads *) kv_rank", ("a.wk", "a.wv"), 0),
        ("a.q+a.k+a.v=* dim", ("a.q", "a.k", "a.v"), 0),
    ],
)
def test_holdings(text: str, weights: tuple[str, ...], along: int | None) -> None:
    found = holding(text)
    assert found.weights == weights
    assert found.packed_along == along
    assert (found.layout is None) == ("=" not in text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected weights such as 'attention.wq'"),
        ("wq", "expected weights such as 'attention.wq'"),
        ("a.w + ", "expected weights such as 'attention.wq'"),
        ("a.w b.w", "expected weights such as 'attention.wq'"),
        ("= dim", "expected weights such as 'attention.wq'"),
        ("a.w + b.w", "2 weights in one tensor need one '\\*' in the layout, found 0"),
        ("a.w + b.w = dim ffn_dim", "2 weights in one tensor need one '\\*' in the layout, found 0"),
        ("a.w + b.w + c.w = * *", "3 weights in one tensor need one '\\*' in the layout, found 2"),
        ("a.w = * dim", "'\\*' is for several weights in one tensor, and this is one"),
        ("a.w = (dim", "'\\(' is not closed"),
    ],
)
def test_holdings_that_make_no_sense(text: str, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        holding(text)
