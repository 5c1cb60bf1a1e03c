"""`topics/*.toml`: pages about a concept, such as rotary positions, in whichever component a model computes it."""

from atlas.spec.table import Words


class Topic(Words):
    """A page about some steps of a model: those with an operation, of a component, or of a part of any node.

    Exactly one of `op`, `component` and `within` is stated. A model without such a step has no such page.
    """

    id: str
    op: str = ""
    """The operation of the steps."""
    component: str = ""
    """The component whose steps they are, used inside another one or not."""
    within: list[str] = []
    """The first words of the steps' own ids: `q_norm` for `attention.q_norm.normed`."""
    bounded: bool = False
    """Whether only steps count whose `by` is a number other than 0, such as the masks that have a window."""
    aliases: list[str] = []
