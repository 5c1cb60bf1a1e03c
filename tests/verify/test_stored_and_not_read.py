"""Published files also store what a forward pass does not read: a tied head, keys of layers that use an earlier layer's."""

from __future__ import annotations

from pathlib import Path

import pytest

from atlas.api.checkpoint import verify
from atlas.spec.library import Library

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.torch")
pytest.importorskip("transformers")

from tests.run.parity import logits, ours, reference  # noqa: E402


def saved(architecture: str, sample: str, library: Library, folder: Path) -> Path:
    """A sample of an architecture, as transformers saves it."""
    reference(library.samples(library.architecture(architecture))[sample], folder)
    return folder


def add(folder: Path, tensors: dict[str, tuple[int, ...]]) -> None:
    """Store more tensors in the checkpoint."""
    file = folder / "model.safetensors"
    stored = safetensors.load_file(file) | {name: torch.ones(shape) for name, shape in tensors.items()}
    safetensors.save_file(stored, file, {"format": "pt"})


def keys_of_layers(layers: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    return {
        f"model.layers.{layer}.self_attn.{name}.weight": shape
        for layer in layers
        for name, shape in (("k_proj", (20, 48)), ("v_proj", (20, 48)), ("k_norm", (10,)))
    }


def test_keys_of_layers_that_use_an_earlier_layers(library: Library, tmp_path: Path) -> None:
    """Gemma 4's small models are published with them (transformers lists them as keys to ignore)."""
    folder = saved("gemma4_text", "gemma4_text-small", library, tmp_path)
    before = verify(folder)
    tokens = torch.tensor([[1, 5, 2, 7]])
    expected = logits(*ours(folder, library), tokens, fuse=False)
    add(folder, keys_of_layers((4, 5)))
    result = verify(folder)
    assert (result.exit_code, result.parameters.expected) == (0, before.parameters.expected)
    [note] = [finding for finding in result.findings if finding.code == "apart"]
    assert note.count == 6
    assert f"{2 * (2 * 20 * 48 + 10):,} " in note.message
    assert torch.equal(logits(*ours(folder, library), tokens, fuse=False), expected)


def test_values_of_a_layer_whose_keys_are_its_values_are_unexpected(library: Library, tmp_path: Path) -> None:
    folder = saved("gemma4_text", "gemma4_text", library, tmp_path)
    assert verify(folder).exit_code == 0
    add(folder, {"model.layers.1.self_attn.v_proj.weight": (20, 48)})
    result = verify(folder)
    assert (result.exit_code, [f.code for f in result.findings if f.exit_code]) == (1, ["unexpected"])


@pytest.mark.parametrize(("architecture", "vocabulary"), [("falcon_new", 131), ("gemma", 131), ("opt", 131)])
def test_a_tied_head_that_is_stored_as_well(
    architecture: str, vocabulary: int, library: Library, tmp_path: Path
) -> None:
    """tiiuae/falcon-40b stores lm_head.weight, which is the embedding's matrix."""
    folder = saved(architecture, architecture, library, tmp_path)
    before = verify(folder)
    add(folder, {"lm_head.weight": (vocabulary, 48)})
    result = verify(folder)
    assert (before.exit_code, result.exit_code) == (0, 0)
    assert result.parameters.expected == before.parameters.expected
    [note] = [finding for finding in result.findings if finding.code == "redundant"]
    assert "lm_head.weight" in note.message
