"""`catalogue/*.toml`: Meta's catalogue as it stands, entry by entry, and where each entry stands in its file."""

from typing import Any

from atlas.spec.table import Spec


class Named(Spec):
    lines: list[list[int]]
    sha256: str


class CatalogueEntry(Spec):
    """One entry of Meta's catalogue as it stands, every value resolved. `atlas specs import` writes these."""

    descriptor: str
    core_model_id: str
    variant: str = ""
    family: str
    description: str
    huggingface_repo: str | None = None
    quantization_format: str
    pth_file_count: int
    max_seq_length: int
    metadata: dict[str, Any] = {}
    lines: list[list[int]]
    sha256: str
    uses: list[str] = []
    arch_args: dict[str, Any]


class Catalogue(Spec):
    source: str
    names: dict[str, Named] = {}
    entries: list[CatalogueEntry]
