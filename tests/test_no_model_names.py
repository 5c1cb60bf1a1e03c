"""No Python of the atlas knows the name of a model type: in no name, no string, no message, no docstring and no comment."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import atlas
from atlas.spec.library import Library

FILES = sorted(Path(atlas.__file__).parent.rglob("*.py"))
WORD = re.compile(r"[A-Za-z0-9_.-]+")
"""`meta-llama/Llama-3.1-8B` and `llama3.1-8b`, ids in examples, are words of their own and no model types."""

ENGLISH = {"opt", "phi"}
"""Model types that are also ordinary words or symbols, and are looked for as quoted strings alone."""


@pytest.mark.parametrize("file", FILES, ids=lambda path: str(path.relative_to(FILES[0].parent)))
def test_no_model_type_stands_in_python(file: Path, library: Library) -> None:
    text = file.read_text(encoding="utf-8")
    types = {*library.claims, *library.paths("architectures")} - {"meta"}
    words = {word.strip(".-").lower() for word in WORD.findall(text)}
    found = (words & (types - ENGLISH - BASES)) | {name for name in ENGLISH if f'"{name}"' in text}
    assert not found


BASES = {"decoder", "ln_decoder", "mlp_decoder", "moe_decoder"}
"""Bases of architectures, which describe no model type."""
