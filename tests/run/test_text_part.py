"""The language model inside a multimodal checkpoint: verified under both ways its names begin, and run like the model alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from atlas.api.checkpoint import verify
from atlas.spec.library import Library

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.torch")
pytest.importorskip("transformers")

from tests.run.parity import logits, ours, reference  # noqa: E402

PREFIXES = {
    "since transformers 4.52": {"model.": "model.language_model."},
    "before": {"model.": "language_model.model.", "lm_head.": "language_model.lm_head."},
}


@pytest.fixture(scope="module")
def alone(library: Library, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small language model as transformers saves it."""
    folder = tmp_path_factory.mktemp("alone")
    reference(
        library.samples(library.architecture("qwen3"))["qwen3"] | {"tie_word_embeddings": False}, folder
    )
    return folder


def inside(alone: Path, folder: Path, prefixes: dict[str, str]) -> Path:
    """The same weights inside a multimodal checkpoint, with two tensors of another part."""
    stored = safetensors.load_file(alone / "model.safetensors")
    tensors = {}
    for name, tensor in stored.items():
        begins = next((each for each in prefixes if name.startswith(each)), None)
        tensors[name if begins is None else prefixes[begins] + name[len(begins) :]] = tensor
    tensors["model.visual.patch.weight"] = torch.zeros(5, 7)
    tensors["model.visual.patch.bias"] = torch.zeros(5)
    settings: dict[str, Any] = json.loads((alone / "config.json").read_text())
    folder.mkdir()
    safetensors.save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    outer = {
        "model_type": "some_vision_language_model",
        "text_config": settings,
        "vision_config": {"depth": 2},
    }
    (folder / "config.json").write_text(json.dumps(outer))
    return folder


def pass_of(path: Path, library: Library) -> torch.Tensor:
    graph, weights = ours(path, library)
    return logits(graph, weights, torch.tensor([[1, 5, 2, 7]]), fuse=False)


@pytest.mark.parametrize("prefixes", PREFIXES.values(), ids=PREFIXES)
def test_it_runs_as_alone(prefixes: dict[str, str], alone: Path, library: Library, tmp_path: Path) -> None:
    folder = inside(alone, tmp_path / "c", prefixes)
    assert torch.equal(pass_of(folder, library), pass_of(alone, library))


@pytest.mark.parametrize("prefixes", PREFIXES.values(), ids=PREFIXES)
def test_it_is_verified_and_the_rest_is_one_note(
    prefixes: dict[str, str], alone: Path, tmp_path: Path
) -> None:
    whole = verify(alone)
    result = verify(inside(alone, tmp_path / "c", prefixes))
    assert (result.exit_code, result.parameters.expected) == (0, whole.parameters.expected)
    notes = [finding for finding in result.findings if finding.code == "apart"]
    assert [finding.count for finding in notes] == [2]
    assert f"{5 * 7 + 5} " in notes[0].message


def test_a_missing_tensor_of_it_is_missing(alone: Path, tmp_path: Path) -> None:
    folder = inside(alone, tmp_path / "c", PREFIXES["before"])
    tensors = safetensors.load_file(folder / "model.safetensors")
    tensors.pop("language_model.model.norm.weight")
    safetensors.save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    result = verify(folder)
    assert result.exit_code == 1
    assert "missing" in [finding.code for finding in result.findings]
