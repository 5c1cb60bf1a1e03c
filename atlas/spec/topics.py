"""`topics/*.toml`: pages about a concept, such as rotary positions, in whichever component a model computes it."""

from atlas.spec.table import Words


class Topic(Words):
    id: str
    op: str
    """The operation whose steps the page is about; a model without such a step has no such page."""
    aliases: list[str] = []
