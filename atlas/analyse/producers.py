"""Which step produced each activation, followed through a pass in execution order."""

from __future__ import annotations

from atlas.graph.graph import Block, Graph, Node, Stack, Step


class Producers:
    """The id of the step that set each symbol last, as the pass reaches it."""

    def __init__(self, graph: Graph) -> None:
        self._stacks = {part.id: part for part in graph.parts if isinstance(part, Stack)}
        self._set_by: dict[str, str] = {}
        self._stack = ""

    def enter(self, block: Block) -> None:
        """Begin a block: at the beginning of a stack, `x` is what the stack receives."""
        if block.stack and block.stack != self._stack:
            self._copy(self._stacks[block.stack].of, "x")
        self._stack = block.stack or ""

    def of(self, step: Step) -> tuple[str, ...]:
        """Ids of the steps whose results a step reads, without repetition; weights and the graph's inputs have none."""
        names = (name for operand in step.of for name in (operand.name, operand.chosen) if name)
        found = (self._set_by.get(name) for name in names)
        return tuple(dict.fromkeys(id for id in found if id is not None))

    def set(self, step: Step, id: str) -> None:
        """Record a step of the pass under its id."""
        self._set_by[step.sets] = id

    def hand_on(self, node: Node) -> None:
        """End a node: from here on, its id names its result."""
        self._copy(node.sets, node.id)

    def leave(self, block: Block) -> None:
        """End a block: inside a stack, its last node is the next block's `x`, and the stack's result so far."""
        if block.stack:
            self._copy(block.nodes[-1].id, "x")
            self._copy(block.nodes[-1].id, block.stack)

    def _copy(self, source: str, target: str) -> None:
        if source in self._set_by:
            self._set_by[target] = self._set_by[source]
        else:
            self._set_by.pop(target, None)
