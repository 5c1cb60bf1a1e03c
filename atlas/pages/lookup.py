"""Which page a name means: a component, an activation, a step, a stored tensor's name, a topic, or a word of a checkpoint's names.

The first match in this order wins, whatever the case:

    attention.wq, logits          a node, a weight, an input or an activation, in full or by its last word
    layers.3.attention.q_rotated  a step as `atlas trace` prints it, with or without its layer
    rope, kv_cache                a topic of `specs/topics`
    model.layers.3.…weight        a stored tensor, in any convention
    q_proj, lm_head, mlp          a part of such a name
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence

from atlas import spec
from atlas.errors import UsageError, shown
from atlas.graph import tensors
from atlas.graph.graph import Graph, Node, Step, Weight
from atlas.pages.parts import Parts
from atlas.pages.topic import steps

Target = Node | Weight | Step | spec.Topic | str
"""What has a page; a text is the full name of an input or an activation."""

_LAST_WORDS = {"weight", "bias"}


def names(graph: Graph) -> list[str]:
    """Every name that has a page, in execution order: inputs, components, activations."""
    found = list(graph.inputs)
    for block in graph.blocks:
        for node in block.nodes:
            found += [
                node.id,
                *(weight.component for weight in node.weights),
                *(step.sets for step in node.steps),
            ]
    return list(dict.fromkeys(found))


def find(parts: Parts, name: str) -> Target:
    """Find what a name means.

    Raises:
        UsageError: nothing has that name, several things have it, or the model has no such layer.
    """
    finders = (_by_full_name, _by_last_word, _step, _topic, _stored_tensor, _word_of_a_tensor_name)
    for search in finders:
        found = search(parts, name)
        if found is not None:
            return found
    raise _unknown(parts, name)


def _others(parts: Parts) -> dict[str, Target]:
    """Full name -> target, for everything except activations."""
    weights = {weight.component: weight for weight in parts.graph.weights.values()}
    return {**{name: name for name in parts.graph.inputs}, **weights, **parts.nodes}


def _by_full_name(parts: Parts, name: str) -> Target | None:
    wanted, others = name.casefold(), _others(parts)
    for full in [*others, *(step.sets for step in parts.steps())]:
        if full.casefold() == wanted:
            return others.get(full, full)
    return None


def _by_last_word(parts: Parts, name: str) -> Target | None:
    """Components come before activations: `norm` is the component."""
    wanted, others = name.casefold(), _others(parts)
    activations = list(dict.fromkeys(step.sets for step in parts.steps()))
    found = [full for full in others if full.rpartition(".")[2].casefold() == wanted]
    found = found or [full for full in activations if full.partition(".")[2].casefold() == wanted]
    if len(found) > 1:
        what = "components" if found[0] in others else "activations"
        raise UsageError(f"several {what} are called {shown(name)}", hint=f"use one of {', '.join(found)}")
    return others.get(found[0], found[0]) if found else None


def _step(parts: Parts, name: str) -> Target | None:
    """A step, or another target, with the layer that `atlas trace` prints before it: `layers.0–31.attention.q`."""
    stacks = {block.stack: block for block in parts.graph.blocks if block.stack}
    prefix = "|".join(map(re.escape, stacks))
    placed = (
        re.fullmatch(rf"({prefix})\.([0-9]{{1,9}})(?:[–,-][0-9]{{1,9}})*\.(.+)", name) if stacks else None
    )
    if placed:
        layers = {layer for layer, block in parts.graph.blocks_in_order() if block.stack == placed[1]}
        if int(placed[2]) not in layers:
            raise UsageError(
                f"{parts.model.id} has no layer {int(placed[2])}: its layers are 0 to {len(layers) - 1:,}"
            )
        name = placed[3]
        inner = _by_full_name(parts, name)
        if inner is not None:
            return inner
    return next((step for step in parts.steps() if step.id.casefold() == name.casefold()), None)


def _topic(parts: Parts, name: str) -> Target | None:
    wanted = name.casefold().replace("-", "_").replace(" ", "_")
    for topic in parts.library.topics():
        if wanted in (topic.id, *topic.aliases) and steps(parts, topic):
            return topic
    return None


def _stored_tensor(parts: Parts, name: str) -> Target | None:
    for row in _rows(parts.graph):
        indices = row.template.match(name)
        if indices is None:
            continue
        limits = dict(row.indices)
        inside = all(number < limits[word] for word, number in indices.items() if word in limits)
        if row.layers is not None and indices[row.layers[0]] not in row.layers[1]:
            inside = False
        if not inside:
            raise UsageError(
                f"{parts.model.id} has no tensor {name}: an index in the name is too large",
                hint="`atlas params --by tensor` lists the names",
            )
        return _one(parts, list(row.weights), whole=True)
    return None


def _word_of_a_tensor_name(parts: Parts, name: str) -> Target | None:
    wanted = ["*" if word.isdigit() else word for word in name.casefold().split(".")]
    found: list[Weight] = []
    whole = True
    for row in _rows(parts.graph):
        words = ["*" if word.startswith("{") else word.casefold() for word in row.template.text.split(".")]
        ends = [end for end in range(len(wanted), len(words) + 1) if words[end - len(wanted) : end] == wanted]
        if ends:
            found += row.weights
            whole = whole and set(words[ends[-1] :]) <= _LAST_WORDS
    return _one(parts, found, whole) if found else None


def _one(parts: Parts, weights: list[Weight], whole: bool) -> Target | None:
    """The weight, or the node that has all of these weights; None if several nodes have them.

    Args:
        whole: the name means tensors and not a module of several; then a matrix comes before its bias.
    """
    nodes = list(dict.fromkeys(weight.node for weight in weights))
    if len(nodes) > 1:
        return None
    node = parts.nodes[nodes[0]]
    distinct = list({weight.id: weight for weight in weights}.values())
    matrices = [weight for weight in distinct if len(weight.shape) > 1] or distinct
    if whole and len(matrices) == 1 and matrices[0].component != node.id:
        return matrices[0]
    return node


def _rows(graph: Graph) -> Iterator[tensors.Row]:
    """The rows of every convention, the published one's first."""
    first = tensors.published(graph)
    for convention in sorted(graph.architecture.conventions, key=lambda name: name != first):
        yield from tensors.rows(graph, convention)


def _unknown(parts: Parts, name: str) -> UsageError:
    topics = [topic.id for topic in parts.library.topics() if steps(parts, topic)]
    spelled = {short: full for full in names(parts.graph) for short in (full.rpartition(".")[2], full)}
    spelled |= {topic: topic for topic in topics}
    near = [spelled[word] for word in difflib.get_close_matches(name[:200], spelled, n=4)]
    return UsageError(
        f"{parts.model.id} has no component, activation, step, tensor or topic called {shown(name)}",
        hint=f"did you mean {', '.join(dict.fromkeys(near))}?" if near else _some_names(parts, topics),
    )


def _some_names(parts: Parts, topics: Sequence[str]) -> str:
    components = [*parts.nodes, *(weight.component for weight in parts.graph.weights.values())]
    return f"components are {', '.join(dict.fromkeys(components))}; topics are {', '.join(topics)}"
