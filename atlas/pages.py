"""What each page of the atlas says, as plain data: of a model, a component, or an activation.

A page is made from the bound graph alone, so that no figure on it can differ from the table, the trace or the run.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import replace

from atlas import shapes, spec
from atlas.analyse import counts
from atlas.analyse.trace import shape_of
from atlas.bibliography import Evidence, evidence
from atlas.conditions import holds
from atlas.errors import UsageError
from atlas.evidence import Reader
from atlas.graph import Block, Graph, Node, Operand, Step, Weight
from atlas.library import Library
from atlas.model import require_described
from atlas.page import Amount, Code, Equation, Facts, Page, Value


def page(graph: Graph, library: Library, node: str | None = None, reader: Reader | None = None) -> Page:
    """The page of a model, or of a component or an activation in it.

    Args:
        node: a component's id (`output`, `attention.wq`), an activation (`logits`, `attention.scores`), an input, or
            None for the model itself.
        reader: where sources may be read for excerpts; without one none are shown.

    Raises:
        UsageError: nothing in the model is called that, or several activations are; with their full names.
        NotDescribed: the model computes something that is not described.
        SourceError: a source at hand does not hold the lines that are cited.
    """
    require_described(graph.model, "explain")
    made = _Maker(graph, library).make(node)
    return (
        made
        if reader is None
        else replace(made, code=tuple(_with_excerpt(code, made, reader) for code in made.code))
    )


def names(graph: Graph) -> list[str]:
    """Everything that has a page, in execution order: inputs, components, activations."""
    found = list(graph.inputs)
    for block in graph.blocks:
        for node in block.nodes:
            found += [
                node.id,
                *(weight.component for weight in node.weights),
                *(step.sets for step in node.steps),
            ]
    return list(dict.fromkeys(found))


def _with_excerpt(code: Code, made: Page, reader: Reader) -> Code:
    cited = next(item for item in made.sources if (item.source, item.lines) == (code.source, code.lines))
    lines = reader.excerpt(code.source, code.lines, cited.sha256) if code.lines else None
    return replace(code, excerpt=tuple(lines or ()))


class _Maker:
    def __init__(self, graph: Graph, library: Library) -> None:
        self.graph = graph
        self.library = library
        self.model = graph.model
        self.nodes: dict[str, tuple[Block, Node]] = {
            n.id: (block, n) for block in graph.blocks for n in block.nodes
        }
        self.conditions = {**graph.architecture.flags, **graph.model.flags}

    def make(self, name: str | None) -> Page:
        if name is None:
            return self._model()
        weights = {weight.component: weight for weight in self.graph.weights.values()}
        if name in self.nodes:
            return self._component(*self.nodes[name])
        if name in weights:
            return self._weight(weights[name])
        if name in self.graph.inputs:
            return self._input(name)
        steps = self._setting(name)
        if steps:
            return self._activation(name, steps)
        everything = names(self.graph)
        near = difflib.get_close_matches(
            name, [*everything, *(full.rpartition(".")[2] for full in everything)], n=4
        )
        raise UsageError(
            f"{self.model.id} has neither a component nor an activation called {name!r}",
            hint=f"did you mean {', '.join(dict.fromkeys(near))}?" if near else self._some_names(),
        )

    def _some_names(self) -> str:
        components = [*self.nodes, *(weight.component for weight in self.graph.weights.values())]
        return f"components are {', '.join(dict.fromkeys(components))}; activations are what they hand on, such as logits"

    def _setting(self, name: str) -> list[Step]:
        """The steps that set an activation, by its full name or, where only one node has it, its last word."""
        steps = [step for _, node in self.nodes.values() for step in node.steps]
        full = [step for step in steps if step.sets == name]
        if full:
            return full
        short = [step for step in steps if step.sets.partition(".")[2] == name]
        owners = list(dict.fromkeys(step.sets for step in short))
        if len(owners) > 1:
            raise UsageError(
                f"several activations are called {name!r}", hint=f"say which: {', '.join(owners)}"
            )
        return short

    # ---- kinds of page

    def _model(self) -> Page:
        architecture = self.graph.architecture
        rows = counts.count(self.graph, self.library)
        family = self.library.family(self.model.family) if self.model.family else None
        last = self.graph.blocks[-1].nodes[-1]
        conflicts = [
            f"The catalogue says {_said(c.catalogue)} of {c.field}; used is {_said(c.used)}. {c.why}"
            for c in rows.conflicts
        ]
        disputed = [cite for conflict in self.model.conflicts for cite in conflict.cites]
        cites = [*architecture.cites, *self.model.cites, *disputed]
        sources = evidence(cites, self.library, self.model.family)
        return self._page(
            node=None,
            kind="model",
            words=spec.Words(
                title=self.model.name,
                summary=architecture.summary,
                expression=architecture.expression,
                text=architecture.text,
                latex=architecture.latex,
            ),
            inputs=[self._named(name) for name in self.graph.inputs],
            outputs=[self._result(last.steps[-1])],
            accounting=[
                Amount(
                    c.id,
                    _tied(c) or (f"{c.instances} × ({c.calculation})" if c.instances > 1 else c.calculation),
                    c.parameters,
                )
                for c in rows.components
            ],
            per_instance=rows.total_parameters,
            parameters=rows.total_parameters,
            notes=[*rows.notes, *conflicts],
            sources=sources,
            facts=Facts(
                publisher=family.publisher if family else "",
                released=family.released if family else "",
                family=family.name if family else "",
                follows=family.follows if family else None,
                kind=family.kind if family else architecture.title,
                hub_id=self.model.hub_id,
                context_length=self.model.context_length,
                dtype=self.model.dtype,
            ),
        )

    def _component(self, block: Block, node: Node) -> Page:
        own = self.graph.architecture.pages.get(node.id, spec.Words())
        base = node.component
        tied = all(self.graph.tied_to(weight) for weight in node.weights)
        per_instance = sum(self.graph.size(weight) for weight in node.weights)
        return self._page(
            node=node.id,
            kind="learned" if node.weights else "computed",
            words=_over(own, base),
            inputs=[self._value(operand, node) for operand in node.of],
            outputs=[self._result(node.steps[-1])],
            accounting=[self._amount(weight) for weight in node.weights],
            instances=block.instances,
            per_instance=per_instance,
            parameters=0 if tied else per_instance * block.instances,
            sources=self._sources(own.cites or base.cites),
        )

    def _weight(self, weight: Weight) -> Page:
        block, node = self.nodes[weight.node]
        step = next(step for step in node.steps if weight in step.weights)
        own = self.graph.architecture.pages.get(weight.component, spec.Words())
        inputs = [self._value(operand, node) for operand in step.of if operand.weight is None]
        name = weight.component.rpartition(".")[2]
        words = _over(own, _over(weight.words, step.words))
        size = self.graph.size(weight)
        matrix = "The weight is stored output by input, [out, in], and applied as x Wᵀ."
        return self._page(
            node=weight.component,
            kind="learned",
            words=words.model_copy(update={"expression": words.expression or f"{name}({inputs[0].symbol})"}),
            inputs=inputs,
            outputs=[self._result(step)],
            accounting=[self._amount(weight)],
            instances=block.instances,
            per_instance=size,
            parameters=size * block.instances,
            notes=[matrix] if len(weight.shape) > 1 else [],
            sources=self._sources(own.cites or weight.words.cites or node.component.cites),
        )

    def _activation(self, name: str, steps: Sequence[Step]) -> Page:
        block, node = self.nodes[steps[0].node]
        first, last = steps[0], steps[-1]
        own = self.graph.architecture.pages.get(last.sets, spec.Words())
        words = _over(own, first.words)
        equations = {step.words.text: step.words.latex for step in steps}
        cites = (
            list(dict.fromkeys(cite for step in steps for cite in step.words.cites)) or node.component.cites
        )
        if last is node.steps[-1]:
            page_of_node = self.graph.architecture.pages.get(node.id, spec.Words())
            cites = list(dict.fromkeys([*cites, *(page_of_node.cites or node.component.cites)]))
        inputs = [
            self._value(o, node)
            for step in steps
            for o in step.of
            if o.weight is None and o.name != last.sets
        ]
        return self._page(
            node=last.sets,
            kind="activation",
            words=words.model_copy(
                update={
                    "title": words.title or name,
                    "summary": words.summary or f"Made by {node.id}, step {last.words.id}.",
                    "expression": words.expression or f"{node.id} → {last.sets.partition('.')[2]}",
                    "text": ";  ".join(equations),
                    "latex": r",\quad ".join(equations.values()),
                }
            ),
            inputs=list(dict.fromkeys(inputs)),
            outputs=[self._result(last)],
            instances=block.instances,
            sources=self._sources(cites),
        )

    def _input(self, name: str) -> Page:
        words = self.graph.inputs[name]
        return self._page(node=name, kind="input", words=words, outputs=[self._named(name)])

    def _page(
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
        notes: Iterable[str] = (),
        sources: Sequence[Evidence] = (),
        facts: Facts | None = None,
    ) -> Page:
        said = [note.text for note in words.notes if holds(note.when, self.conditions)]
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
            notes=tuple(dict.fromkeys([*said, *notes])),
            rests_on=f"Worked out from {self.model.rests_on}; no checkpoint's tensors have been counted for this page.",
            code=tuple(Code(item.source, item.path, item.lines, ()) for item in sources if item.lines),
            sources=tuple(sources),
            facts=facts,
        )

    # ---- parts of a page

    def _sources(self, cites: Iterable[str]) -> list[Evidence]:
        return evidence([*cites, *self.model.cites], self.library, self.model.family)

    def _amount(self, weight: Weight) -> Amount:
        matrix = "matrix" if len(weight.shape) > 1 else "vector"
        return Amount(
            weight.words.matrix or f"Weight {matrix}",
            counts.calculation(self.graph, weight),
            self.graph.size(weight),
        )

    def _result(self, step: Step) -> Value:
        return self._shaped(step.sets, step.words.symbol or step.sets, step.shape, step.dtype)

    def _named(self, name: str) -> Value:
        entry = self.graph.inputs[name]
        return self._shaped(name, entry.symbol, shapes.parse(entry.shape), entry.dtype)

    def _value(self, operand: Operand, node: Node) -> Value:
        """An operand as the equations name it: by the component's port, or by the symbol of the step that made it."""
        if operand.name in self.graph.inputs:
            return self._named(operand.name)
        ports = dict(zip((given.name for given in node.of), node.component.ports, strict=True))
        made = self._setting_exactly(operand.name)
        symbol = ports.get(operand.name) or (made[-1].words.symbol if made else operand.name)
        return self._shaped(operand.name, symbol, operand.shape, made[-1].dtype if made else "A")

    def _setting_exactly(self, name: str) -> list[Step]:
        if name in self.nodes:
            return [self.nodes[name][1].steps[-1]]
        return [step for _, node in self.nodes.values() for step in node.steps if step.sets == name]

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


def _over(words: spec.Words, base: spec.Words) -> spec.Words:
    """The first's words, and the second's where the first says nothing; notes of both."""
    fields = ("title", "summary", "expression", "text", "latex")
    said = {name: getattr(words, name) or getattr(base, name) for name in fields}
    if words.text:
        said["latex"] = words.latex
    return spec.Words(**said, notes=[*words.notes, *base.notes], cites=words.cites or base.cites)


def _tied(component: counts.Component) -> str:
    return f"the matrix of {component.tied_to}, counted there" if component.tied_to else ""


def _said(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:,}" if isinstance(value, int) else str(value)
