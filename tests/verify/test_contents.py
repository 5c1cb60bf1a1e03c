"""Which files of a folder are the model, by their names alone."""

from __future__ import annotations

import pytest

from atlas.checkpoint.contents import Series, index_of, series, weights


def names(*parts: str) -> list[str]:
    return [f"{part}.safetensors" for part in parts]


SERIES = {
    "one file of any name": (names("anything"), Series(("anything.safetensors",))),
    "the usual file before all others": (
        names("consolidated", "model", "model-00001-of-00002", "model-00002-of-00002", "model.fp16"),
        Series(("model.safetensors",)),
    ),
    "shards before a consolidated file": (
        names("consolidated", "model-00002-of-00002", "model-00001-of-00002"),
        Series(tuple(names("model-00001-of-00002", "model-00002-of-00002"))),
    ),
    "a gap, counted from 1": (
        names("model-00001-of-00003", "model-00003-of-00003"),
        Series(
            tuple(names("model-00001-of-00003", "model-00003-of-00003")),
            absent=tuple(names("model-00002-of-00003")),
        ),
    ),
    "the last missing, counted from 1": (
        names("model-00001-of-00002"),
        Series(tuple(names("model-00001-of-00002")), absent=tuple(names("model-00002-of-00002"))),
    ),
    "counted from 0": (
        names("model-00000-of-00002", "model-00001-of-00002"),
        Series(tuple(names("model-00000-of-00002", "model-00001-of-00002"))),
    ),
    "a gap, counted from 0": (
        names("model_00000-of-00003", "model_00002-of-00003"),
        Series(
            tuple(names("model_00000-of-00003", "model_00002-of-00003")),
            absent=tuple(names("model_00001-of-00003")),
        ),
    ),
    "shards of another name": (
        names("pytorch_model-00001-of-00002", "pytorch_model-00002-of-00002"),
        Series(tuple(names("pytorch_model-00001-of-00002", "pytorch_model-00002-of-00002"))),
    ),
    "in the order of their numbers": (
        names("model-10-of-10", *(f"model-{i}-of-10" for i in range(1, 10))),
        Series(tuple(names(*(f"model-{i}-of-10" for i in range(1, 11))))),
    ),
    "Meta's one file": (names("consolidated.00"), Series(("consolidated.00.safetensors",), shares=True)),
    "Meta's several": (
        names("consolidated.00", "consolidated.01", "consolidated.03"),
        Series(
            tuple(names("consolidated.00", "consolidated.01", "consolidated.03")),
            shares=True,
            absent=tuple(names("consolidated.02")),
        ),
    ),
    "consolidated shards": (
        names("consolidated-00001-of-00002", "consolidated-00002-of-00002"),
        Series(tuple(names("consolidated-00001-of-00002", "consolidated-00002-of-00002"))),
    ),
    "a number that counts something else": (names("checkpoint-500"), Series(("checkpoint-500.safetensors",))),
    "names of no order": (names("b", "a"), Series(tuple(names("a", "b")))),
    "nothing": ([], Series(())),
}


@pytest.mark.parametrize(("files", "expected"), SERIES.values(), ids=SERIES.keys())
def test_the_files_that_are_the_model(files: list[str], expected: Series) -> None:
    assert series(files) == expected


def test_an_adapters_files_are_not_a_models() -> None:
    files = ["adapter_model.safetensors", "model.safetensors", "config.json", "model.bin"]
    assert weights(files) == ["model.safetensors"]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            ["model.safetensors.index.json", "consolidated.safetensors.index.json"],
            "model.safetensors.index.json",
        ),
        (["consolidated.safetensors.index.json"], "consolidated.safetensors.index.json"),
        (["a.safetensors.index.json", "b.safetensors.index.json"], None),
        (["pytorch_model.bin.index.json", "adapter_model.safetensors.index.json"], None),
    ],
)
def test_the_index_that_counts(files: list[str], expected: str | None) -> None:
    assert index_of(files) == expected
