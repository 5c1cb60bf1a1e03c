"""The parts of every page of one model: values with their shapes, names in each convention, sources, and the page itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from atlas import spec
from atlas.analyse.trace import shape_of
from atlas.evidence.bibliography import Evidence, evidence
from atlas.grammar import shapes
from atlas.grammar.conditions import holds, names
from atlas.graph import cites, tensors
from atlas.graph.graph import Graph, Node, Operand, Step, Weight
from atlas.pages.content import Amount, Code, Equation, Facts, Page, StoredName, Value
from atlas.resolution.model import Scalar
from atlas.spec.library import Library


class Parts:
    """A bound model, as pages describe it.

    Attributes:
        nodes: id -> the node.
        conditions: the settings that a note may depend on: the architecture's flags, the model's, and `rope_type`.
    """

    def __init__(self, graph: Graph, library: Library) -> None:
        self.graph = graph
        self.library = library
        self.model = graph.model
        self.nodes: dict[str, Node] = {node.id: node for block in graph.blocks for node in block.nodes}
        scaling = graph.model.rope.get("rope_type", "default")
        if any(kind.get("rope_type", "default") != "default" for kind in graph.model.ropes.values()):
            scaling = "by kind of layer"
        self.conditions = {**graph.architecture.flags, **graph.model.flags, "rope_type": scaling}

    def page(
        self,
        *,
        node: str | None,
        kind: str,
        words: spec.Words,
        inputs: Sequence[Value] = (),
        outputs: Sequence[Value] = (),
        accounting: Sequence[Amount] = (),
        instances: int = 1,
        per_instance: int = 0,
        parameters: int = 0,
        stored: Sequence[StoredName] = (),
        notes: Iterable[str] = (),
        settings: Mapping[str, Scalar] | None = None,
        sources: Sequence[Evidence] = (),
        facts: Facts | None = None,
    ) -> Page:
        """A page: the given content, and what all pages of the model have in common.

        Args:
            settings: the parameters of the page's component, on which its notes may depend.
        """
        # Parameters have values only where they are needed, so none is read before a note asks for it.
        asked = {name for note in words.notes for name in names(note.when)}
        known = {
            **self.conditions,
            **{name: settings[name] for name in asked if settings and name in settings},
        }
        said = [note.text for note in words.notes if holds(note.when, known)]
        return Page(
            model=self.model.id,
            node=node,
            kind=kind,
            title=words.title,
            summary=words.summary,
            expression=words.expression,
            equation=Equation(words.latex, words.text),
            inputs=tuple(inputs),
            outputs=tuple(outputs),
            accounting=tuple(accounting),
            instances=instances,
            parameters_per_instance=per_instance,
            parameters=parameters,
            stored=tuple(stored),
            notes=tuple(dict.fromkeys([*said, *notes])),
            not_described=tuple(gap.reason for gap in self.model.gaps),
            rests_on=f"Dimensions from {self.model.rests_on}. No checkpoint was counted for this page.",
            code=tuple(Code(item.source, item.path, item.lines, ()) for item in sources if item.lines),
            sources=tuple(sources),
            facts=facts,
        )

    def sources(self, cites: Iterable[str]) -> list[Evidence]:
        """The sources of these cites, and of the dimensions."""
        return evidence([*cites, *self.model.cites], self.library, self.model.family)

    def cites_of_topic(self, topic: spec.Topic, steps: Sequence[Step]) -> list[str]:
        """The topic's own cites, then the architecture's evidence for it, or else that of its steps."""
        evidence = self.graph.architecture.evidence.get(cites.TOPIC + topic.id)
        found = [
            cites.of_step(self.graph, step) or cites.of_node(self.graph, self.nodes[step.node])
            for step in steps
        ]
        return [*topic.cites, *(evidence or dict.fromkeys(cite for each in found for cite in each))]

    def stored(self, weights: Sequence[Weight]) -> list[StoredName]:
        """The names of these weights in each convention, the published one first."""
        first = tensors.published(self.graph)
        wanted = {weight.id for weight in weights}
        return [
            StoredName(convention, row.template.text, row.shape, shapes.render(layout))
            for convention in sorted(self.graph.architecture.conventions, key=lambda name: name != first)
            for row in tensors.rows(self.graph, convention)
            for weight, layout in zip(row.weights, row.layouts, strict=True)
            if weight.id in wanted
            and (row.tied_to is None or tensors.convention(self.graph, convention).stores_tied)
        ]

    def steps(self) -> list[Step]:
        """Every step of every node, in execution order."""
        return [step for node in self.nodes.values() for step in node.steps]

    def setting(self, name: str) -> list[Step]:
        """The steps that set an activation, by its full name."""
        return [step for step in self.steps() if step.sets == name]

    def result(self, step: Step) -> Value:
        """What a step makes."""
        return self._shaped(step.sets, step.words.symbol or step.sets, step.shape, step.dtype)

    def named(self, name: str) -> Value:
        """What is put into the model under that name."""
        entry = self.graph.inputs[name]
        return self._shaped(name, entry.symbol, shapes.parse(entry.shape), entry.dtype)

    def value(self, operand: Operand, node: Node) -> Value:
        """An operand as the equations name it: by the component's port, or by the symbol of the step that made it."""
        if operand.name in self.graph.inputs:
            return self.named(operand.name)
        ports = dict(zip((given.name for given in node.of), node.component.ports, strict=False))
        made = self._making(operand.name)
        symbol = ports.get(operand.name) or (made[-1].words.symbol if made else operand.name)
        return self._shaped(operand.name, symbol, operand.shape, made[-1].dtype if made else "A")

    def _making(self, name: str) -> list[Step]:
        """The steps that make what goes by that name: an activation's, or, for a node, its last."""
        if name in self.nodes:
            return [self.nodes[name].steps[-1]]
        return self.setting(name)

    def _shaped(self, name: str, symbol: str, shape: shapes.Shape, dtype: str) -> Value:
        sizes = shape_of(self.graph, shape, self.graph.dims)
        labels = []
        for group, size in zip(shape, sizes, strict=True):
            axes = [self.graph.axes[axis] for axis in group]
            labels.append(f"{size} {' '.join(axis.label or axis.symbol for axis in axes)}")
        return Value(
            name=name,
            symbol=symbol,
            axes=tuple(" ".join(group) for group in shape),
            shape=sizes,
            dtype=self.model.dtype if dtype == "A" else dtype,
            text=f"{symbol} [{', '.join(labels)}]",
        )


def over(words: spec.Words, base: spec.Words) -> spec.Words:
    """The first words, completed from the second; notes of both."""
    fields = ("title", "summary", "expression", "text", "latex")
    said = {name: getattr(words, name) or getattr(base, name) for name in fields}
    if words.text:
        said["latex"] = words.latex
    return spec.Words(**said, notes=[*words.notes, *base.notes], cites=words.cites or base.cites)
