"""The equations of a whole model and of its residuals, composed from the graph: `h = x + attention(norm(x))`.

Each component says how it stands in such an equation (`short`): `norm(<x>)`, `<x> + <y>`. A layer's input is x, what each
position of the layer hands on is h, h₂ and so on, and the layer's result is x′. Where layers differ, each form stands once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property

from atlas.graph.graph import Block, Graph, Node, Stack
from atlas.graph.words import words_of

OR = "  or  "
EACH = ", for each layer"
_PORT = re.compile(r"([(\[]?)<([a-z_]+)>([)\],]?)")
_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_LATEX = {
    "₀": "_0",
    "′": "'",
    "W_outᵀ": r"\,W_{\mathrm{out}}^{\top}",
    "W_sᵀ": r"\,W_s^{\top}",
    OR: r"\ \text{or}\ ",
    EACH: r"\ \text{for each layer}",
}


class Composition:
    """The composed equations of one graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    @cached_property
    def model(self) -> list[str]:
        """The equations of the model in order: the first layer's input, each residual of a layer, and the result."""
        found: list[str] = []
        known = {name: words.symbol for name, words in self._graph.inputs.items()}
        read = {part.of for part in self._graph.parts if isinstance(part, Stack)}
        for at, part in enumerate(self._graph.parts):
            last = at == len(self._graph.parts) - 1
            if isinstance(part, Stack):
                found += [f"{name} = {OR.join(forms)}" for name, forms in self._slots(part, known)]
                found[-1] += EACH
                known[part.id] = "x"
            else:
                node = part.nodes[0]
                text = _composed(node, known)
                symbol = "x₀" if node.id in read else node.steps[-1].words.symbol or node.id
                shown = last or node.id in read or self._is_read_inside(node)
                if shown:
                    found.append(f"{symbol} = {text}")
                known[node.id] = symbol if shown else text
        return found

    def residual(self, node: str) -> str:
        """The equation of a node that adds, `h = x + attention(norm(x))`, in each of its forms."""
        known = {name: words.symbol for name, words in self._graph.inputs.items()}
        forms: dict[str, None] = {}
        left = node
        for part in self._graph.parts:
            if isinstance(part, Block):
                text = _composed(part.nodes[0], known)
                if part.nodes[0].id == node:
                    return f"{part.nodes[0].steps[-1].words.symbol} = {text}"
                known[part.nodes[0].id] = text
                continue
            for name, was, block in self._blocks(part):
                made = self._inside(block, was, known)
                if node in made:
                    left = name if block.nodes[-1].id == node else "r"
                    forms[made[node]] = None
            known[part.id] = "x"
        return f"{left} = {OR.join(forms)}"

    def expression(self) -> str:
        """The model as calls of its parts: `output(norm(layers(tok_embeddings[tokens])))`."""
        calls = {name: name for name in self._graph.inputs}
        last = ""
        for part in self._graph.parts:
            if isinstance(part, Stack):
                calls[part.id] = f"{part.id}({calls[part.of]})"
                last = calls[part.id]
                continue
            node = part.nodes[0]
            args = ", ".join(calls[operand.name] for operand in node.of)
            looked_up = all(operand.name in self._graph.inputs for operand in node.of)
            last = calls[node.id] = f"{node.id}[{args}]" if looked_up else f"{node.id}({args})"
        return last

    def _slots(self, stack: Stack, known: Mapping[str, str]) -> Iterator[tuple[str, list[str]]]:
        """What each position of a layer hands on, and its forms."""
        found: dict[str, dict[str, None]] = {}
        for name, was, block in self._blocks(stack):
            found.setdefault(name, {})[self._inside(block, was, known)[block.nodes[-1].id]] = None
        return ((name, list(forms)) for name, forms in found.items())

    @staticmethod
    def _blocks(stack: Stack) -> Iterator[tuple[str, str, Block]]:
        """Each block that layers have: the name of its result, the name of its input, and the block."""
        was = "x"
        for at, slot in enumerate(stack.slots):
            last = at == len(stack.slots) - 1
            name = "x′" if last else "h" if at == 0 else f"h{str(at + 1).translate(_SUBSCRIPTS)}"
            for block in slot:
                if block.nodes:
                    yield name, was, block
            was = name

    @staticmethod
    def _inside(block: Block, was: str, known: Mapping[str, str]) -> dict[str, str]:
        """Node -> its composed text, inside a block whose input has that name."""
        made = {**known, "x": was}
        for node in block.nodes:
            made[node.id] = _composed(node, made)
        return made

    def _is_read_inside(self, node: Node) -> bool:
        return any(
            operand.name == node.sets or operand.name == node.id
            for block in self._graph.blocks
            if block.stack
            for inner in block.nodes
            for operand in inner.of
        )


def _composed(node: Node, known: Mapping[str, str]) -> str:
    """A node's short form with what it reads in place of its ports; a sum that is not an argument is in parentheses."""
    ports = dict(zip(node.component.ports, (operand.name for operand in node.of), strict=False))
    first = next(iter(ports))
    short = words_of(node.component, node.params).short or f"{node.component.id}(<{first}>)"

    def put(found: re.Match[str]) -> str:
        opens, port, closes = found.groups()
        text = known.get(ports[port], ports[port]) if port in ports else found[0]
        inside = bool(opens or closes) or (found.start() == 0 and short.startswith(f"<{port}> + "))
        return f"{opens}{text}{closes}" if inside or not _is_sum(text) else f"{opens}({text}){closes}"

    return _PORT.sub(put, short)


def _is_sum(text: str) -> bool:
    """Whether it adds outside of all parentheses."""
    depth = 0
    for i, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if not depth and text.startswith(" + ", i):
            return True
    return False


def latex(text: str) -> str:
    """A composed equation in LaTeX."""
    for plain, tex in _LATEX.items():
        text = text.replace(f" {plain}" if tex.startswith(r"\,") else plain, tex)
    text = re.sub("[₂-₉]", lambda found: f"_{'₀₁₂₃₄₅₆₇₈₉'.index(found[0])}", text)
    return re.sub(
        r"\b([A-Za-z_]{2,})(?=\()",
        lambda found: rf"\operatorname{{{found[1].replace('_', chr(92) + '_')}}}",
        text,
    )
