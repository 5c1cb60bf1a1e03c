"""The weights that an architecture's nodes declare, and where a model has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from atlas import spec
from atlas.graph.binding import blocks
from atlas.graph.graph import Graph


@dataclass(frozen=True, slots=True)
class Declared:
    """The weights that an architecture's nodes declare, and where this model has them.

    Attributes:
        known: the ids of all nodes, absent ones included.
        weights: the ids of the weights that the present nodes may have.
        locations: (weight, block) of every present weight.
        blocks: weight -> the blocks that have it.
    """

    architecture: spec.Architecture
    known: frozenset[str]
    bound: frozenset[str]
    weights: frozenset[str]
    locations: frozenset[tuple[str, str]]
    blocks: dict[str, list[str]]

    @staticmethod
    def of(graph: Graph) -> Declared:
        architecture = graph.architecture
        here = [(block, node) for block in graph.blocks for node in block.nodes]
        locations = [(weight.id, block.id) for block, node in here for weight in node.weights]
        places: dict[str, list[str]] = {}
        for weight, block_id in locations:
            places.setdefault(weight, []).append(block_id)
        return Declared(
            architecture,
            blocks.node_ids(architecture),
            frozenset(node.id for _, node in here),
            frozenset(weight for _, node in here for weight in node.declared),
            frozenset(locations),
            places,
        )

    def unknown(self, weights: Sequence[str]) -> list[str]:
        """Those that no component declares. Of an absent node it is not known."""
        nodes = [weight.partition(".")[0] for weight in weights]
        return [
            weight
            for weight, node in zip(weights, nodes, strict=True)
            if node not in self.known or (node in self.bound and weight not in self.weights)
        ]

    def not_in(self, block: str, weights: Sequence[str]) -> list[str]:
        """The nodes of these weights, if the block lacks one of them."""
        found = blocks.block(self.architecture, block)
        known = {node.id for node in found.nodes} if found else set()
        nodes = [weight.partition(".")[0] for weight in weights]
        return [] if known.issuperset(nodes) else nodes
