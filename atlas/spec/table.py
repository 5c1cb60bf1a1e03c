"""Base classes of all tables in description files: strict parsing, values and page texts."""

from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field

Value = bool | int | float | str

T = TypeVar("T")
Some = Annotated[list[T], Field(min_length=1, max_length=256)]
"""A list that must not be empty. It is bounded because some checks compare every pair of items."""


class Spec(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


class Note(Spec):
    text: str
    when: str | None = None


class Words(Spec):
    """The texts of a page; `text` is the equation in Unicode, `latex` the same in LaTeX."""

    title: str = ""
    summary: str = ""
    expression: str = ""
    text: str = ""
    latex: str = ""
    notes: list[Note] = []
    cites: list[str] = []
