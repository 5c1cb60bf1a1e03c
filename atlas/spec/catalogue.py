"""`catalogue/*.toml`: the entries of Meta's catalogue, values unchanged, and their lines in its file."""

from typing import Annotated, Any

from pydantic import Field

from atlas.spec.table import Some, Spec

Line = Annotated[int, Field(ge=1, lt=10**9)]
Lines = Some[Annotated[list[Line], Field(min_length=2, max_length=2)]]
"""Ranges of lines: the first and the last line of each."""

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Named(Spec):
    lines: Lines
    sha256: Sha256


class CatalogueEntry(Spec):
    """One entry of Meta's catalogue with every value resolved, written by `atlas specs import`."""

    descriptor: str
    core_model_id: str
    variant: str = ""
    family: str
    description: str
    huggingface_repo: str | None = None
    quantization_format: str
    pth_file_count: Annotated[int, Field(ge=0)]
    max_seq_length: Annotated[int, Field(ge=0)]
    metadata: dict[str, Any] = {}
    lines: Lines
    sha256: Sha256
    uses: list[str] = []
    arch_args: dict[str, Any]


class Catalogue(Spec):
    source: str
    names: dict[str, Named] = {}
    entries: list[CatalogueEntry]
