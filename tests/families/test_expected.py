"""Published configurations of other families against transformers 5.24.0 on the meta device (`expected.toml`).

Parameters, active parameters, tied matrices, every tensor's name and shape, the KV cache, constant states and FLOPs.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from atlas.spec.library import Library
from tests.families import comparison, expected
from tests.families.compare import main

_WINDOWED = (
    "the expected figures take windows from layer_types, which this configuration does not have; "
    "its modelling code in transformers masks by sliding_window in every layer all the same"
)

EXCEPTIONS: dict[tuple[str, str], str] = {
    (name, figure): _WINDOWED
    for name in ("phi-3-mini", "phi-4-mini", "phi-tiny-moe", "starcoder2-7b")
    for figure in ("windowed layers", "window", "… beyond the window")
}
"""(configuration, figure) -> why the atlas's figure is another one."""


@pytest.mark.parametrize("name", expected.EXPECTED)
def test_a_configuration_gives_what_transformers_gives(name: str, library: Library, shared: Path) -> None:
    assert shared / "families" == expected.FAMILIES
    wanted = expected.EXPECTED[name].model_type
    if wanted not in comparison.registered(library):
        pytest.skip(f"model_type {wanted} is not described yet")
    figures = comparison.compare(name, library)
    differing = [figure for figure in figures if not figure.equal]
    for figure in differing:
        assert (name, figure.what) in EXCEPTIONS, (
            f"{figure.what}: {figure.expected} here {figure.found}. {figure.note}"
        )
    excused = {what for configuration, what in EXCEPTIONS if configuration == name}
    assert excused == {figure.what for figure in differing}, "an exception that is none"


@pytest.mark.parametrize("name", expected.EXPECTED)
def test_the_names_expand_to_the_counts(name: str, shared: Path) -> None:
    """Rows and runs of indices give as many tensors and elements as were counted: the expansion loses none."""
    names, row = expected.tensors(name), expected.EXPECTED[name]
    assert len(names) == row.tensors
    elements = 0
    for shape in names.values():
        size = 1
        for length in shape:
            size *= length
        elements += size
    assert elements == row.elements == row.parameters + row.buffers[1]


def test_every_shared_configuration_is_here(shared: Path) -> None:
    assert {path.parent.name for path in (shared / "families").glob("*/expected.json")} == set(
        expected.EXPECTED
    )
    assert len(expected.EXPECTED) == 45


def test_runs_of_indices() -> None:
    assert list(expected.run("0-2,4,6-12:3")) == [0, 1, 2, 4, 6, 9, 12]


def test_the_comparison_shows_a_difference(library: Library, shared: Path) -> None:
    """A described configuration held against figures and tensors of which some are wrong."""
    graph = comparison.bound("mistral-7b-instruct-v0.3", library)
    row = expected.EXPECTED["mistral-7b-instruct-v0.3"]
    names = expected.tensors(row.name)
    assert all(figure.equal for figure in comparison.figures(graph, row, names))
    names["model.norm.bias"] = names.pop("model.norm.weight")
    names["lm_head.weight"] = (1, 2)
    other = expected.Expected(**{**{slot: getattr(row, slot) for slot in row.__slots__}, "kv": 1, "flops": 2})
    differing = {figure.what for figure in comparison.figures(graph, other, names) if not figure.equal}
    assert differing >= {"missing", "unexpected", "shapes", "KV bytes per token", "FLOPs 1×128"}


def test_the_script(capsys: pytest.CaptureFixture[str], shared: Path) -> None:
    assert main(["no-such-model"]) == 2
    assert main(["mistral-7b-instruct-v0.3"]) == 0
    assert "7,248,023,552" in capsys.readouterr().out
