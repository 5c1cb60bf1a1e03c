"""The checkpoints the README verifies: Llama 3.2 1B at its true size, complete and truncated; sparse files with real headers."""

from __future__ import annotations

from pathlib import Path

from tests.verify.checkpoints import TOKENIZER, dump, hub, write

LLAMA_3_2_1B = {
    "model_type": "llama",
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
}


def make(folder: Path) -> None:
    """Write both into a folder; 2.5 GB each, of which almost nothing is on disk."""
    for name, cut in (("Llama-3.2-1B", 0), ("half-downloaded", 1_234_567_890)):
        (folder / name).mkdir()
        dump(folder / name / "config.json", LLAMA_3_2_1B)
        dump(folder / name / "tokenizer.json", TOKENIZER)
        write(folder / name / "model.safetensors", hub(LLAMA_3_2_1B), cut=cut)
