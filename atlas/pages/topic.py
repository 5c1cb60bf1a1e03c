"""The page of a topic: the steps that it is about, wherever the model has them, and what follows from the model's own numbers."""

from __future__ import annotations

from atlas import spec
from atlas.graph.graph import Step
from atlas.pages import topic_facts
from atlas.pages.content import Page, Value
from atlas.pages.parts import Parts


def steps(parts: Parts, topic: spec.Topic) -> list[Step]:
    """The steps of the model that a topic is about, each once, in execution order."""
    found: dict[tuple[object, ...], Step] = {}
    for block in parts.graph.blocks:
        for node in block.nodes:
            for step in node.steps:
                if _is_about(topic, node.component.id, step):
                    found.setdefault((step.id, step.by, step.share, step.rope, step.over), step)
    return list(found.values())


def page(parts: Parts, topic: spec.Topic) -> Page:
    """The page of a topic that the model has."""
    found = steps(parts, topic)
    inputs, results = _inputs(parts, topic, found), _results(parts, topic, found)
    return parts.page(
        node=topic.id,
        kind="topic",
        words=topic,
        inputs=list(dict.fromkeys(inputs)),
        outputs=list(dict.fromkeys(results)),
        instances=max(parts.graph.times(step.node) for step in found),
        notes=[
            f"Computed in the steps {', '.join(dict.fromkeys(step.id for step in found))}.",
            *topic_facts.facts(parts, topic, found),
        ],
        sources=parts.sources(parts.cites_of_topic(topic, found)),
    )


def _inputs(parts: Parts, topic: spec.Topic, steps: list[Step]) -> list[Value]:
    """What the steps take. Where the topic has consecutive steps, what an earlier one made is no input."""
    made: set[str] = set()
    found = []
    for step in steps:
        for operand in step.of:
            if operand.weight is None and (topic.op or operand.name not in made):
                found.append(parts.value(operand, parts.nodes[step.node]))
        made.add(step.sets)
    return found


def _results(parts: Parts, topic: spec.Topic, steps: list[Step]) -> list[Value]:
    """What the steps make. Where the topic has consecutive steps, what a later one takes is no result."""
    found = []
    for at, step in enumerate(steps):
        later = [operand.name for after in steps[at + 1 :] for operand in after.of]
        if topic.op or step.sets not in later:
            found.append(parts.result(step))
    return found


def _is_about(topic: spec.Topic, component: str, step: Step) -> bool:
    if topic.bounded and (isinstance(step.by, bool | str) or not step.by):
        return False
    if topic.op:
        return step.op == topic.op
    if topic.component:
        return component == topic.component
    return step.id.split(".")[1] in topic.within
