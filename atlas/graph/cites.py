"""Which cites bear out a node, a weight or a step: the architecture's own evidence, else its component's sources."""

from __future__ import annotations

from collections.abc import Sequence

from atlas.graph.graph import Graph, Node, Step, Weight

TOPIC = "topics."
"""What the id of a topic has in front of it in `evidence`."""


def of_node(graph: Graph, node: Node) -> Sequence[str]:
    """Ids of cites: those of the node's page, of the code that the architecture names for it, or of its component."""
    page = graph.architecture.pages.get(node.id)
    return (page and page.cites) or graph.architecture.evidence.get(node.id) or node.component.cites


def of_weight(graph: Graph, node: Node, weight: Weight) -> Sequence[str]:
    """Likewise for one weight of the node."""
    page = graph.architecture.pages.get(weight.component)
    return (
        (page and page.cites)
        or graph.architecture.evidence.get(weight.component)
        or weight.words.cites
        or graph.architecture.evidence.get(node.id)
        or node.component.cites
    )


def of_step(graph: Graph, step: Step) -> Sequence[str]:
    """Those of the step alone; empty if there are none."""
    return graph.architecture.evidence.get(step.id) or step.words.cites
