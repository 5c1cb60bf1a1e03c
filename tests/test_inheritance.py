"""Architectures built like others: what is taken over, what is not, and which file a fault is in.

The expected values are the rules of `like` and `without`, written out for small tables; nothing is read from the built-in files
except where the test says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from atlas import spec
from atlas.errors import SpecError
from atlas.graph import tensors
from atlas.graph.binding import bind
from atlas.resolution import config
from atlas.spec.config_tables import MOST_EXTENDED, config_table
from atlas.spec.inheritance import MOST_LEVELS, merged
from atlas.spec.library import Library

Overlay = Callable[[Mapping[str, str]], Library]

CHILD = 'id = "x"\nlike = "decoder"\n'


def merge(**tables: dict[str, Any]) -> dict[str, Any]:
    """The merged tables of the first architecture; each is in a file of its own name."""

    def read(name: str, stated: str) -> tuple[Path, dict[str, Any]]:
        return Path(f"{name}.toml"), tables[name]

    return merged(next(iter(tables)), read).table


# ---------------------------------------------------------------- what is taken over


def test_tables_merge_key_by_key_and_lists_are_replaced() -> None:
    found = merge(
        a={"like": "b", "flags": {"tied": True}, "graph": [1], "stacks": {"layers": {"over": "m"}}},
        b={
            "title": "B",
            "flags": {"tied": False, "bias": False},
            "graph": [2, 3],
            "stacks": {"layers": {"over": "n", "axes": {"dim": "e"}}},
        },
    )
    assert found["title"] == "B"
    assert found["flags"] == {"tied": True, "bias": False}
    assert found["graph"] == [1]
    assert found["stacks"] == {"layers": {"over": "m", "axes": {"dim": "e"}}}


def test_a_chain_takes_over_from_all_and_the_nearest_is_used() -> None:
    found = merge(
        a={"like": "b"},
        b={"like": "c", "flags": {"one": 1}},
        c={"like": "d", "flags": {"one": 2, "two": 2}},
        d={"flags": {"one": 3, "two": 3, "three": 3}},
    )
    assert found["flags"] == {"one": 1, "two": 2, "three": 3}


def test_facts_of_one_model_are_not_inherited() -> None:
    own = {"like": "b", "id": "a"}
    base = {
        "id": "b",
        "base": True,
        "cites": ["c"],
        "evidence": {"norm": ["c"]},
        "samples": {"other": {"k": 1}},
        "sample": {"k": 2},
        "pages": {"norm": {"title": "Norm", "cites": ["c"]}},
    }
    found = merge(a=own, b=base)
    assert found == {
        "id": "a",
        "like": "b",
        "sample": {"k": 2},
        "pages": {"norm": {"title": "Norm"}},
    }


def test_what_one_class_means_is_not_inherited() -> None:
    stated = {
        "file": "config.json",
        "used": {"hidden_size": "dim"},
        "defaults": {"dim": 7},
        "absent": {"hidden_size": 7},
        "generations": [],
        "whose": "someone's",
        "class": "B",
        "model_type": "b",
        "where": {"new": True},
    }
    found = merge(a={"like": "b"}, b={"configs": {"b": stated}})
    assert found["configs"]["b"] == {"file": "config.json", "used": {"hidden_size": "dim"}}


def test_merging_leaves_the_base_as_it_is() -> None:
    """The tables of a base are merged into every architecture that is like it."""
    base: dict[str, Any] = {
        "conventions": {"hf": {"title": "", "tensors": {"n": "norm.weight", "m": "m.weight"}}},
        "configs": {"hub": {"ignored": ["p"], "used": {"k": "dim"}}},
        "derived": {"d": "1"},
    }
    first = {
        "like": "b",
        "without": ["derived.d", "conventions.hf.title"],
        "conventions": {"hf": {"tensors": {"o": "norm.weight"}}},
        "configs": {"hub": {"ignored": ["k"]}},
    }
    merge(a=first, b=base)
    second = merge(a={"like": "b"}, b=base)
    assert second["derived"] == {"d": "1"}
    assert second["configs"] == {"hub": {"ignored": ["p"], "used": {"k": "dim"}}}
    assert second["conventions"]["hf"]["title"] == ""
    assert second["conventions"]["hf"]["tensors"] == {"n": "norm.weight", "m": "m.weight"}


# ---------------------------------------------------------------- without


def test_without_leaves_out_a_table_a_key_and_a_key_inside() -> None:
    base = {"ties": {"x": "y"}, "derived": {"a": "1", "b": "2"}, "conventions": {"m": {}, "h": {}}}
    found = merge(a={"like": "b", "without": ["ties", "derived.a", "conventions.m"]}, b=base)
    assert "ties" not in found
    assert found["derived"] == {"b": "2"}
    assert list(found["conventions"]) == ["h"]
    assert "without" not in found


def test_what_is_left_out_may_be_stated_again() -> None:
    """Without it, the own table would be merged with the inherited one."""
    base = {"flags": {"tied": True, "bias": True}}
    found = merge(a={"like": "b", "without": ["flags"], "flags": {"bias": False}}, b=base)
    assert found["flags"] == {"bias": False}


def test_an_inherited_without_is_not_asked_again() -> None:
    base = {"like": "c", "without": ["ties"]}
    found = merge(a={"like": "b"}, b=base, c={"ties": {"x": "y"}, "title": "C"})
    assert found == {"like": "b", "title": "C"}


@pytest.mark.parametrize("address", ["colour", "flags.colour", "flags.tied.colour", "id", "cites", ""])
def test_without_what_is_not_inherited_is_refused(address: str) -> None:
    base = {"id": "b", "cites": ["c"], "flags": {"tied": True}}
    with pytest.raises(SpecError, match=f"a.toml: without: nothing inherited is called '{address}'"):
        merge(a={"like": "b", "without": [address]}, b=base)


# ---------------------------------------------------------------- rows of conventions


def rows(own: dict[str, Any], inherited: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    found = merge(
        a={"like": "b", "conventions": {"hf": {"tensors": own}}},
        b={"conventions": {"hf": {"title": "", "tensors": inherited}}},
    )["conventions"]["hf"]
    return found["tensors"], found["inherited"]


@pytest.mark.parametrize(
    "row",
    [
        "attention.wq",
        "attention.wq = (pair n_heads) dim",
        "attention.wq + attention.wk = * dim",
        ["attention.wq", "other.wq"],
        {"holds": "attention.wq", "cut": "rows"},
    ],
)
def test_an_own_row_takes_the_place_of_each_inherited_row_of_its_weights(row: Any) -> None:
    kept, inherited = rows({"new": row}, {"q": "attention.wq", "v": "attention.wv"})
    assert kept == {"new": row, "v": "attention.wv"}
    assert inherited == ["v"]


def test_a_row_of_several_weights_goes_if_one_of_them_is_named() -> None:
    kept, _ = rows({"q": "attention.wq"}, {"qk": "attention.wq + attention.wk = * dim", "v": "attention.wv"})
    assert kept == {"q": "attention.wq", "v": "attention.wv"}


def test_a_row_of_the_same_name_is_an_own_one() -> None:
    kept, inherited = rows({"q": "other.wq"}, {"q": "attention.wq", "v": "attention.wv"})
    assert kept == {"q": "other.wq", "v": "attention.wv"}
    assert inherited == ["v"]


def test_rows_of_another_convention_stay() -> None:
    found = merge(
        a={"like": "b", "conventions": {"mine": {"tensors": {"q": "attention.wq"}}}},
        b={"conventions": {"hf": {"tensors": {"p": "attention.wq"}}}},
    )["conventions"]
    assert found["hf"]["tensors"] == {"p": "attention.wq"}
    assert list(found) == ["mine", "hf"]  # its own come first


BUILT_LIKE = CHILD + '[configs.x]\nlike = "hub"\n[sample]\nmodel_type = "x"\n'
PLAIN = {"model_type": "x", "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 9, "intermediate_size": 5, "rms_norm_eps": 1e-5, "rope_theta": 1e4}  # fmt: skip


def test_an_inherited_row_may_name_a_weight_that_is_not_there(overlay: Overlay) -> None:
    """The base names a bias of each projection, and this model has none: 12 tensors, counted by hand."""
    library = overlay({"architectures/x.toml": BUILT_LIKE})
    graph = bind(config.describe(PLAIN, library, id="x"), library)
    # embedding, 2 norms, q k v o, gate up down, final norm, output
    assert len(list(tensors.expected(graph, "hf"))) == 1 + 2 + 4 + 3 + 1 + 1


def test_an_own_row_may_not(overlay: Overlay) -> None:
    text = BUILT_LIKE + '[conventions.hf.tensors]\n"model.extra.weight" = "nowhere.weight"\n'
    library = overlay({"architectures/x.toml": text})
    with pytest.raises(SpecError, match=r"nowhere"):
        list(tensors.expected(bind(config.describe(PLAIN, library, id="x"), library), "hf"))


# ---------------------------------------------------------------- keys of configuration tables


def keys(own: dict[str, Any], inherited: dict[str, Any]) -> dict[str, Any]:
    found = merge(a={"like": "b", "configs": {"hub": own}}, b={"configs": {"hub": inherited}})
    return dict(found["configs"]["hub"])


@pytest.mark.parametrize("meaning", ["used", "only", "computes", "agrees", "expects", "ignored"])
@pytest.mark.parametrize("before", ["used", "only", "computes", "agrees", "expects", "ignored"])
def test_a_key_with_a_new_meaning_has_no_other(meaning: str, before: str) -> None:
    def stating(field: str, value: str) -> dict[str, Any]:
        return {field: ["k"] if field == "ignored" else {"k": value}}

    inherited = stating(before, "old") | {
        "words": {"k": {"a": "b"}},
        "when": {"k": "c"},
        "present": {"k": "d"},
    }
    found = {field: value for field, value in keys(stating(meaning, "new"), inherited).items() if value}
    assert found == stating(meaning, "new")


@pytest.mark.parametrize("field", ["words", "when", "present"])
def test_a_key_that_is_only_refined_keeps_its_meaning(field: str) -> None:
    value = {"silu": "silu"} if field == "words" else "gated"
    found = keys({field: {"hidden_act": value}}, {"used": {"hidden_act": "act", "rope": "rope"}})
    assert found["used"] == {"hidden_act": "act", "rope": "rope"}
    assert found[field] == {"hidden_act": value}


def test_words_are_added_to_the_inherited_ones() -> None:
    found = keys({"words": {"k": {"b": "B"}}}, {"words": {"k": {"a": "A"}}, "used": {"k": "act"}})
    assert found["words"] == {"k": {"a": "A", "b": "B"}}


def test_ignored_keys_are_added_to_the_inherited_ones() -> None:
    assert keys({"ignored": ["c"]}, {"ignored": ["a", "b"]})["ignored"] == ["a", "b", "c"]


# ---------------------------------------------------------------- tables that extend tables of one architecture


def extended(overlay: Overlay, text: str, name: str = "x") -> spec.Config:
    return config_table(overlay({"architectures/x.toml": CHILD + text}).architecture("x"), name)


def test_a_table_extends_another_with_its_defaults(overlay: Overlay) -> None:
    """Inside one file, unlike between files, the defaults of the extended table hold: it states them for its classes."""
    table = extended(
        overlay,
        '[configs.y]\nlike = "hub"\nclass = "Why"\nwhose = "Y"\ndefaults = { norm_eps = 1e-6, window = 3 }\n'
        '[configs.x]\nlike = "y"\ndefaults = { window = 4 }\n',
    )
    assert table.defaults == {"norm_eps": 1e-6, "window": 4}
    assert (table.whose, table.model_type) == ("Y", "x")
    assert set(table.classes) == {"WhyForCausalLM", "WhyModel", "WhyForSequenceClassification"}


def test_a_class_names_its_heads(overlay: Overlay) -> None:
    table = extended(
        overlay,
        '[configs.x]\nlike = "hub"\nclass = "Ex"\n[configs.x.classes]\nOldExLM = { head = "language model" }\n',
    )
    assert set(table.classes) == {"ExForCausalLM", "ExModel", "ExForSequenceClassification", "OldExLM"}


def test_without_a_class_no_head_has_its_name(overlay: Overlay) -> None:
    assert extended(overlay, '[configs.x]\nlike = "hub"\n').classes == {}


def test_one_key_may_state_several_values(overlay: Overlay) -> None:
    table = extended(
        overlay, '[configs.x]\nlike = "hub"\n[configs.x.used]\nbias = ["attention_bias", "mlp_bias"]\n'
    )
    assert table.used["bias"] == ["attention_bias", "mlp_bias"]
    assert table.used["hidden_size"] == "dim"


def test_a_meaning_replaces_that_of_the_extended_table(overlay: Overlay) -> None:
    table = extended(overlay, '[configs.x]\nlike = "hub"\n[configs.x.used]\nmlp_bias = "mlp_bias"\n')
    assert "mlp_bias" not in table.only
    assert "mlp_bias" in extended_hub(overlay).only


def extended_hub(overlay: Overlay) -> spec.Config:
    return config_table(overlay({}).architecture("decoder"), "hub")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[configs.x]\nlike = "nothing"\n', "architecture x: configs.x: like = 'nothing': the architecture has no such table"),
        ('[configs.x]\nlike = "x"\n', "architecture x: configs.x: x extends x"),
        ('[configs.x]\nlike = "y"\n[configs.y]\nlike = "x"\n', "architecture x: configs.y: x extends y extends x"),
        (
            '[configs.x]\nlike = "t0"\n' + "".join(f'[configs.t{i}]\nlike = "t{i + 1}"\n' for i in range(MOST_EXTENDED + 1)) + f'[configs.t{MOST_EXTENDED + 1}]\n',
            f"more than {MOST_EXTENDED} tables extend each other",
        ),
    ],
)  # fmt: skip
def test_tables_that_extend_nothing_or_themselves(text: str, words: str, overlay: Overlay) -> None:
    with pytest.raises(SpecError) as caught:
        extended(overlay, text)
    assert words in caught.value.message


# ---------------------------------------------------------------- refusals, and the file of a fault


def test_circles_are_refused(overlay: Overlay) -> None:
    library = overlay(
        {"architectures/x.toml": 'id = "x"\nlike = "y"', "architectures/y.toml": 'id = "y"\nlike = "x"'}
    )
    with pytest.raises(SpecError, match=r"x\.toml: like: x is like y is like x"):
        library.architecture("x")


def test_the_longest_chain_is_allowed_and_a_longer_one_is_not() -> None:
    def chain(levels: int) -> dict[str, dict[str, Any]]:
        tables: dict[str, dict[str, Any]] = {f"n{i}": {"like": f"n{i + 1}"} for i in range(levels)}
        return tables | {f"n{levels}": {"title": "last"}}

    assert merge(**chain(MOST_LEVELS))["title"] == "last"
    with pytest.raises(SpecError, match=f"n0.toml: like: more than {MOST_LEVELS} architectures"):
        merge(**chain(MOST_LEVELS + 1))


def test_an_unknown_architecture_is_told_with_the_file_that_names_it(overlay: Overlay) -> None:
    library = overlay(
        {"architectures/x.toml": 'id = "x"\nlike = "y"', "architectures/y.toml": 'id = "y"\nlike = "decodr"'}
    )
    with pytest.raises(SpecError, match=r"y\.toml: like: architectures/decodr\.toml: no such desc") as caught:
        library.architecture("x")
    assert "decoder" in caught.value.hint


BASE = 'id = "y"\nlike = "decoder"\nbase = true\n'


@pytest.mark.parametrize(
    ("child", "base", "file", "words"),
    [
        ("", "flags = { tied = [1] }", "y.toml", "flags.tied"),
        ("flags = { tied = [1] }", "flags = { tied = true }", "x.toml", "flags.tied"),
        ("flags = { bias = true }", "flags = { tied = [1] }", "y.toml", "flags.tied"),
        ("", "colour = 1", "y.toml", "colour: extra inputs"),
        ("colour = 1", "", "x.toml", "colour: extra inputs"),
        ("", '[blocks]\nattention = [{ id = "a", of = "x" }]', "y.toml", "blocks.attention.0.is: field required"),
        ('[blocks]\nattention = [{ id = "a", of = "x" }]', "", "x.toml", "blocks.attention.0.is: field required"),
        ("", "[conventions.mine]\nprefix = 'p'", "y.toml", "conventions.mine.title: field required"),
        ("[conventions.mine.tensors]\na = 'b.c'", "[conventions.mine]\nprefix = 'p'", "x.toml", "conventions.mine.title"),
        ("configs = 3", "", "x.toml", "configs: input should be a valid dictionary, found 3"),
        ("", "configs = 3", "y.toml", "configs: input should be a valid dictionary, found 3"),
        ("", "conventions.hf.tensors = 3", "y.toml", "conventions.hf.tensors: input should be a valid dictionary"),
        ("", "like2 = 1", "y.toml", "like2: extra inputs"),
    ],
)  # fmt: skip
def test_a_fault_is_in_the_file_that_states_it(
    child: str, base: str, file: str, words: str, overlay: Overlay
) -> None:
    library = overlay(
        {
            "architectures/x.toml": f'id = "x"\nlike = "y"\n{child}\n',
            "architectures/y.toml": f"{BASE}{base}\n",
        }
    )
    with pytest.raises(SpecError) as caught:
        library.architecture("x")
    named, _, fault = caught.value.message.partition(".toml: ")
    assert f"{named}.toml".endswith(file)
    assert fault.startswith(words)


def test_faults_of_two_files_are_told_with_each(overlay: Overlay) -> None:
    library = overlay(
        {
            "architectures/x.toml": 'id = "x"\nlike = "y"\ncolour = 1\ntitle = 2\n',
            "architectures/y.toml": f"{BASE}shade = 3\nsummary = 4\n",
        }
    )
    with pytest.raises(SpecError) as caught:
        library.architecture("x")
    parts = caught.value.message.split("; ")
    files = {"title": "x.toml", "colour": "x.toml", "summary": "y.toml", "shade": "y.toml"}
    at, seen = "", set()
    for part in parts:
        if ".toml: " in part:
            path, _, part = part.partition(".toml: ")
            at = f"{Path(path).name}.toml"
        key = part.partition(":")[0]
        seen.add(key)
        assert files[key] == at
    assert seen == set(files)


@pytest.mark.parametrize("wrong", ["3", "'a'", "[1]", "[[1]]", "[{ a = 1 }]", "true"])
@pytest.mark.parametrize(
    "key",
    ["like", "without", "configs", "configs.hub", "configs.hub.used", "configs.hub.words", "configs.hub.ignored",
     "configs.hub.like", "conventions", "conventions.hf", "conventions.hf.tensors", "conventions.hf.inherited", "pages", "pages.norm", "pages.norm.cites",
     "sample", "samples", "samples.a", "flags", "derived", "ties", "graph", "stacks", "blocks", "variants", "given", "evidence", "base"],
)  # fmt: skip
def test_a_value_of_another_kind_is_a_sentence(key: str, wrong: str, overlay: Overlay) -> None:
    """Never a traceback: a wrong value is refused with its key, or is a right one."""
    top = "" if key == "like" else 'like = "decoder"\n'
    library = overlay({"architectures/x.toml": f'id = "x"\n{top}{key} = {wrong}\n'})
    message = refusal(library)
    assert "\n" not in message
    assert not message or key == "like" or key.split(".")[0] in message


def refusal(library: Library) -> str:
    """Why the architecture is refused; empty if it is not."""
    try:
        library.architecture("x")
    except SpecError as error:
        return error.message
    return ""
