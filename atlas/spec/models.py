"""`models/*.toml`: a family, its models, and where the catalogue and the released checkpoint disagree."""

from typing import Any

from pydantic import Field

from atlas.spec.table import Note, Spec, Value


class Conflict(Spec):
    """A field where the catalogue entry and the released checkpoint disagree, and the value that is used."""

    field: str
    used: Value | None = None
    absent: bool = False
    """Whether the released checkpoint has no such value (TOML has no null)."""
    why: str
    cites: list[str]


class Entry(Spec):
    """One model of a family: its catalogue entry, its ids, and facts that the catalogue lacks."""

    id: str
    name: str
    kind: str
    catalogue: str = ""
    """The descriptor of its entry in Meta's catalogue; empty if `config` states its dimensions."""
    config: dict[str, Any] = {}
    """The settings of a config.json, for a model that is not in Meta's catalogue."""
    null: list[str] = []
    """Keys that the config.json states as null (TOML has no null)."""
    source: str = ""
    """Where the config.json was read: an address, or `github:owner/name@commit:path`."""
    copy_: bool = Field(False, alias="copy")
    """Whether that place is not the publisher's own repository."""
    source_note: str = ""
    """What is to be known about that place."""
    hub_id: str | None = None
    aliases: list[str] = []
    architecture: str | None = None
    undescribed: str = ""
    """For an entry without an architecture: the reason it is not described."""
    dtype: str = "BF16"
    notes: list[Note] = []
    cites: list[str] = []
    conflicts: list[Conflict] = []


class Family(Spec):
    id: str
    name: str
    publisher: str
    released: str
    follows: str | None = None
    kind: str
    models: list[Entry]


class UndescribedKind(Spec):
    """A kind of models that is not described."""

    what: str
    model_types: list[str]
