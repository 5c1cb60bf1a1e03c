"""The number of parameters of a model by each way of counting: total, logical, active, and stored.

Exact integers computed from the bound graph alone. `counts` collects them into the result of `atlas params`.
"""

from __future__ import annotations

from atlas.grammar import shapes
from atlas.graph import tensors
from atlas.graph.graph import Block, Graph, Operand, Weight


def total(graph: Graph) -> int:
    """Distinct parameters: a tied matrix counts once."""
    return sum(
        graph.size(weight) * graph.instances(weight)
        for weight in graph.weights.values()
        if graph.tied_to(weight) is None
    )


def logical(graph: Graph) -> int:
    """Parameters with a tied matrix counted in both of its places."""
    return sum(graph.size(weight) * graph.instances(weight) for weight in graph.weights.values())


def active(graph: Graph) -> int:
    """Parameters that one text token passes through: of the routed experts only the chosen ones, and no vision tower.

    A weight counts if a step multiplies it, or a value computed from weights alone, with something that depends on the
    tokens. The embedding and the output matrix count whole.
    """
    passed: dict[str, int] = {}
    depends = {"tokens"}
    made_of: dict[str, list[Operand]] = {}
    for block in graph.blocks:
        if block.stack is not None and _stack_input(graph, block.stack) in depends:
            depends.add("x")
        elif block.stack is not None:
            depends.discard("x")
        for node in block.nodes:
            for step in node.steps:
                weights = [
                    weight
                    for operand in step.of
                    for weight in ([operand] if operand.weight else made_of.get(operand.name, []))
                ]
                if any(operand.name in depends for operand in step.of):
                    depends |= {step.sets, node.id}
                    for operand in weights:
                        if operand.weight is not None and graph.tied_to(operand.weight) is None:
                            # Of routed experts the operand has the axes of the chosen ones only.
                            axes = [axis for axis in shapes.atoms(operand.shape) if axis in graph.dims]
                            passed[operand.weight.id] = shapes.size(axes, graph.dims)
                elif all(operand.weight or operand.name in made_of for operand in step.of):
                    made_of[step.sets] = made_of[node.id] = weights
        if block.stack is not None and block.nodes[-1].id in depends:
            depends.add(block.stack)
    return sum(each * graph.instances(graph.weights[name]) for name, each in passed.items())


def _stack_input(graph: Graph, stack: str) -> str:
    return next(part.of for part in graph.parts if not isinstance(part, Block) and part.id == stack)


def stored(graph: Graph, convention: str) -> tuple[int, int]:
    """The number of tensors, and of elements in them, of a checkpoint in that convention."""
    keeps_tied = tensors.convention(graph, convention).stores_tied
    names = elements = 0
    for row in tensors.rows(graph, convention):
        if row.tied_to is None or keeps_tied:
            many = len(row.layers[1]) if row.layers else 1
            for _, amount in row.indices:
                many *= amount
            names += many
            each = 1
            for length in row.shape:
                each *= length
            elements += many * each
    return names, elements


def calculation(graph: Graph, weight: Weight) -> str:
    """The parameters of one instance, written out: `128,256 × 4,096 = 525,336,576`."""
    sizes = [shapes.size(group, graph.dims) for group in weight.shape]
    factors = " × ".join(f"{size:,}" for size in sizes)
    return factors if len(sizes) == 1 else f"{factors} = {graph.size(weight):,}"
