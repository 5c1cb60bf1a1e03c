"""`models/*.toml`: a family, its models, and where catalogue and released checkpoint disagree."""

from typing import Any

from atlas.spec.table import Note, Spec, Value


class Conflict(Spec):
    """Where the catalogue's entry and the released checkpoint disagree, and which value is used."""

    field: str
    used: Value | None = None
    absent: bool = False
    """The released checkpoint has no such value (TOML has no null)."""
    why: str
    cites: list[str]


class Entry(Spec):
    """One model of a family: its catalogue entry, the ids it goes by, and what is known beyond the catalogue."""

    id: str
    name: str
    kind: str
    catalogue: str = ""
    """The descriptor of its entry in Meta's catalogue; empty where `config` states its dimensions."""
    config: dict[str, Any] = {}
    """Settings as a config.json gives them, for a model that is in no catalogue."""
    hub_id: str | None = None
    aliases: list[str] = []
    architecture: str | None = None
    undescribed: str = ""
    """For an entry without an architecture: what is not described yet."""
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
