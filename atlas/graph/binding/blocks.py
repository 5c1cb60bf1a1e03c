"""The nodes of a block, or of a variant of one: the same nodes with parameters, axes or ids changed."""

from __future__ import annotations

from dataclasses import dataclass

from atlas import spec
from atlas.errors import SpecError


@dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes of a block, and the axes that are renamed in all of them."""

    nodes: tuple[spec.Node, ...]
    axes: dict[str, str]


def block(architecture: spec.Architecture, name: str) -> Nodes | None:
    """A block or a variant by its name; None if there is neither.

    Raises:
        SpecError: a variant is also the name of a block, is of no block, or changes a node that the block has not; or two nodes
            have one id.
    """
    variant = architecture.variants.get(name)
    where = f"architecture {architecture.id}: {name}"
    nodes = architecture.blocks.get(name)
    axes: dict[str, str] = {}
    if variant is not None:
        if nodes is not None:
            raise SpecError(f"{where}: is the name of a block and of a variant; rename one of them")
        axes, nodes = variant.axes, _changed(variant, architecture, where)
    if nodes is None:
        return None
    ids = [node.id for node in nodes]
    if twice := [node for node in ids if ids.count(node) > 1]:
        raise SpecError(f"{where}: two of its nodes are called {twice[0]!r}")
    return Nodes(tuple(nodes), axes)


def _changed(variant: spec.Variant, architecture: spec.Architecture, where: str) -> list[spec.Node]:
    """The nodes of the other block with the changes of a variant."""
    nodes = architecture.blocks.get(variant.of)
    if nodes is None:
        raise SpecError(f"{where}: of = {variant.of!r}: there is no such block")
    ids = {node.id for node in nodes}
    for key, changes in (("with", variant.given), ("nodes", variant.nodes), ("reads", variant.reads)):
        if strange := sorted(set(changes) - ids):
            raise SpecError(f"{where}: {key}: {variant.of} has no node {', '.join(strange)}")

    def renamed(symbol: str) -> str:
        node, dot, inner = symbol.partition(".")
        return f"{variant.nodes.get(node, node)}{dot}{inner}"

    return [
        node.model_copy(
            update={
                "id": variant.nodes.get(node.id, node.id),
                "of": variant.reads.get(node.id)
                or (renamed(node.of) if isinstance(node.of, str) else [renamed(each) for each in node.of]),
                "given": {**node.given, **variant.given.get(node.id, {})},
            }
        )
        for node in nodes
    ]


def node_ids(architecture: spec.Architecture) -> frozenset[str]:
    """The ids of all nodes of an architecture, those that a model may lack included."""
    blocks = (block(architecture, name) for name in (*architecture.blocks, *architecture.variants))
    nodes = [node for each in blocks if each for node in each.nodes]
    nodes += [part.node for part in architecture.graph if part.node is not None]
    return frozenset(node.id for node in nodes)
