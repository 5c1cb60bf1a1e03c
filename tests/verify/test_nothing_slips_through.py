"""Whatever is done to a good checkpoint: verified exactly where its tensors are those declared, and never a crash.

A cause that takes out more than it explains would show here as a difference that is passed over.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from atlas.errors import AtlasError
from tests.verify.checkpoints import CONFIG, PARAMS, T, Tensors, dump, hub, index, meta, save, shards, share
from tests.verify.conftest import Check

SMALL = CONFIG | {"num_hidden_layers": 2}
GOOD = hub(SMALL)
TIED = SMALL | {"tie_word_embeddings": True}
MANY = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

names = st.sampled_from(sorted(GOOD))
words = st.sampled_from(["_orig_mod.", "module.", "model.", "x.", "layers.", "7.", "", ".", "weight"])
shapes = st.lists(st.sampled_from([0, 1, 24, 48, 80, 100, 103]), max_size=3).map(tuple)


def _drop(tensors: Tensors, name: str) -> Tensors:
    return {other: tensor for other, tensor in tensors.items() if other != name}


def _rename(tensors: Tensors, old: str, new: str) -> Tensors:
    return {(new if name == old else name): tensor for name, tensor in tensors.items()}


changes = st.one_of(
    st.builds(lambda name: lambda t: _drop(t, name), names),
    st.builds(lambda name, word: lambda t: _rename(t, name, word + name), names, words),
    st.builds(lambda name, other: lambda t: _rename(t, name, other), names, names),
    st.builds(lambda name, shape: lambda t: t | {name: T(shape)}, names, shapes),
    st.builds(lambda name: lambda t: t | {name: T(t[name].shape[::-1] if name in t else (1,))}, names),
    st.builds(lambda name: lambda t: t | {name: T(GOOD[name].shape, "F32")}, names),
    st.builds(lambda word: lambda t: {word + name: tensor for name, tensor in t.items()}, words),
    st.builds(
        lambda a, b: lambda t: {name.replace(a, b): tensor for name, tensor in t.items()}, words, words
    ),
    st.builds(lambda i: lambda t: {n: x for n, x in t.items() if f"layers.{i}." not in n}, st.integers(0, 2)),
    st.builds(
        lambda i, j: lambda t: t | {n.replace(f"layers.{i}.", f"layers.{j}."): x for n, x in t.items()},
        st.integers(0, 2),
        st.integers(0, 5),
    ),
)


@MANY
@given(st.lists(changes, min_size=1, max_size=4), st.sampled_from([1, 3]), st.booleans())
def test_verified_exactly_where_nothing_differs(
    check: Check, tmp_path_factory: pytest.TempPathFactory, done: list[Any], files: int, tied: bool
) -> None:
    tensors = dict(GOOD)
    for change in done:
        tensors = {name: tensor for name, tensor in change(tensors).items() if name}
    config = TIED if tied else SMALL
    folder = save(
        tmp_path_factory.mktemp("c") / "c",
        shards(tensors, files) if files > 1 else {"model.safetensors": tensors},
        config=config,
        listed=files > 1 and bool(tensors),
    )
    result = check(folder)
    allowed = {**tensors}
    if tied and allowed.get("lm_head.weight", T(())).shape == (100, 48):
        head = allowed.pop("lm_head.weight")
        embedding = "model.embed_tokens.weight"
        if embedding not in allowed:  # then the copy alone stands for both
            allowed[embedding] = head
        allowed |= {} if head.dtype == "BF16" else {"lm_head.weight": head}
    assert (result.exit_code == 0) == (allowed == hub(config))
    assert sum(component.found for component in result.components) == result.parameters.found
    for finding in result.findings:
        assert finding.count >= 1
        assert "\n" not in finding.message


@MANY
@given(
    st.dictionaries(st.sampled_from(sorted(meta())), shapes, max_size=3),
    st.integers(1, 4),
    st.sampled_from([1, 2, 4]),
)
def test_shares_of_any_shape(
    check: Check,
    tmp_path_factory: pytest.TempPathFactory,
    odd: Mapping[str, tuple[int, ...]],
    files: int,
    devices: int,
) -> None:
    cut = share(meta(), devices)
    held = {f"consolidated.{i:02d}.safetensors": dict(cut) for i in range(files)}
    held["consolidated.00.safetensors"] |= {name: T(shape) for name, shape in odd.items()}
    folder = save(tmp_path_factory.mktemp("c") / "c", held, config=None, params=PARAMS)
    unchanged = all(cut[name].shape == shape for name, shape in odd.items())
    assert check(folder).exit_code == (0 if unchanged and files == devices else 1)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@MANY
@given(
    st.sampled_from(["config.json", "model.safetensors.index.json", "adapter_config.json"]),
    st.one_of(
        st.binary(max_size=60),
        json_values.map(lambda value: json.dumps(value).encode()),
        st.dictionaries(st.sampled_from([*CONFIG, "weight_map", "metadata"]), json_values).map(
            lambda value: json.dumps({**CONFIG, **index(shards(hub(), 2)), **value}).encode()
        ),
    ),
)
def test_any_bytes_for_configuration_and_index(
    check: Check, tmp_path_factory: pytest.TempPathFactory, name: str, data: bytes
) -> None:
    folder = save(tmp_path_factory.mktemp("c") / "c", shards(hub(), 2), listed=True)
    dump(folder / "adapter_config.json", {})
    (folder / name).write_bytes(data)
    with contextlib.suppress(AtlasError):
        assert check(folder).exit_code in {0, 1, 2}
