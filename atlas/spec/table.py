"""What the tables of every description file have in common: how strict they are, their values, and their words."""

from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field

Value = bool | int | float | str

T = TypeVar("T")
Some = Annotated[list[T], Field(min_length=1, max_length=256)]
"""A list that would make no sense empty, nor with more than a few dozen items: each of them is worked on with all others."""


class Spec(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Note(Spec):
    text: str
    when: str | None = None


class Words(Spec):
    """What a page says of a thing; `text` is the equation in Unicode, `latex` the same in LaTeX."""

    title: str = ""
    summary: str = ""
    expression: str = ""
    text: str = ""
    latex: str = ""
    notes: list[Note] = []
    cites: list[str] = []
