"""The number of parameters of a model by each way of counting: total, logical, active, and stored.

Exact integers computed from the bound graph alone. `counts` collects them into the result of `atlas params`. A buffer (a
weight with `trained = false`) is stored in a checkpoint and is no parameter.
"""

from __future__ import annotations

from collections.abc import Iterator

from atlas.grammar import shapes
from atlas.graph import tensors
from atlas.graph.graph import Block, Graph, Operand, Step, Weight

POSITIONS = "positions"
"""The axis of a pass's tokens."""


def total(graph: Graph) -> int:
    """Distinct parameters: a tied matrix counts once."""
    return sum(
        graph.size(weight) * graph.instances(weight)
        for weight in graph.weights.values()
        if counts(graph, weight)
    )


def logical(graph: Graph) -> int:
    """Parameters with a tied matrix counted in both of its places."""
    return sum(
        graph.size(weight) * graph.instances(weight)
        for weight in graph.weights.values()
        if weight.words.trained
    )


def counts(graph: Graph, weight: Weight) -> bool:
    """Whether the weight's elements are parameters of their own: trained, and not another weight's matrix."""
    return weight.words.trained and graph.tied_to(weight) is None


def active(graph: Graph) -> int:
    """Parameters that one text token passes through: of the routed experts only the chosen ones, and no vision tower.

    A weight counts if a step combines it, or a value computed from weights alone, with something that depends on the
    tokens or their positions: on an input with an entry for each position. Look-up tables and the output matrix count whole.
    """
    passed: dict[str, int] = {}
    depends = {
        name for name, entry in graph.inputs.items() if POSITIONS in shapes.atoms(shapes.parse(entry.shape))
    }
    made_of: dict[str, list[Operand]] = {}
    for block in graph.blocks:
        if block.stack is not None and _stack_input(graph, block.stack) in depends:
            depends.add("x")
        elif block.stack is not None:
            depends.discard("x")
        for node in block.nodes:
            for step in node.steps:
                if _reads(step, depends):
                    depends |= {step.sets, node.id}
                    for operand in _weights(step, made_of):
                        if operand.weight is not None and counts(graph, operand.weight):
                            # Of routed experts the operand has the axes of the chosen ones only.
                            axes = [axis for axis in shapes.atoms(operand.shape) if axis in graph.dims]
                            size = min(shapes.size(axes, graph.dims), graph.size(operand.weight))
                            passed[operand.weight.id] = max(size, passed.get(operand.weight.id, 0))
                elif all(operand.weight or operand.name in made_of for operand in step.of):
                    made_of[step.sets] = made_of[node.id] = list(_weights(step, made_of))
        if block.stack is not None and block.nodes[-1].id in depends:
            depends.add(block.stack)
    return sum(each * graph.instances(graph.weights[name]) for name, each in passed.items())


def _reads(step: Step, depends: set[str]) -> bool:
    return any(operand.name in depends or operand.chosen in depends for operand in step.of)


def _weights(step: Step, made_of: dict[str, list[Operand]]) -> Iterator[Operand]:
    """The weights that a step combines, those of operands computed from weights alone included."""
    for operand in step.of:
        if operand.weight is not None:
            yield operand
        else:
            yield from made_of.get(operand.name, [])


def _stack_input(graph: Graph, stack: str) -> str:
    return next(part.of for part in graph.parts if not isinstance(part, Block) and part.id == stack)


def buffers(graph: Graph, convention: str) -> tuple[int, int]:
    """The number of tensors, and of elements in them, that a checkpoint stores and that are not trained."""
    return stored(graph, convention, trained=False)


def stored(graph: Graph, convention: str, *, trained: bool | None = None) -> tuple[int, int]:
    """The number of tensors, and of elements in them, of a checkpoint in that convention.

    Args:
        trained: only tensors of parameters, or only buffers; both if None.
    """
    keeps_tied = tensors.convention(graph, convention).stores_tied
    names = elements = 0
    for row in tensors.rows(graph, convention):
        if trained is not None and trained != any(weight.words.trained for weight in row.weights):
            continue
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
    """The parameters of one instance, written out: `128,256 × 4,096 = 525,336,576`; a buffer's elements, and that it is one."""
    sizes = [shapes.size(group, graph.dims) for group in weight.shape]
    factors = " × ".join(f"{size:,}" for size in sizes)
    written = factors if len(sizes) == 1 else f"{factors} = {graph.size(weight):,}"
    return written if weight.words.trained else f"{written}, not trained"
