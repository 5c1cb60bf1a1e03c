"""Names for components in a convention's words: `attention.wq` is `self_attn.q_proj` in the Hub's."""

from __future__ import annotations

from collections.abc import Mapping

from atlas.graph import tensors
from atlas.graph.graph import Graph


def convention_of(graph: Graph, asked: str | None = None) -> str:
    """The convention whose names a table shows: the one asked for, else the one that the model's configuration is written in.

    Raises:
        UsageError: the architecture has no names in the convention asked for.
    """
    if asked is not None:
        tensors.convention(graph, asked)
        return asked
    known = graph.architecture.conventions
    return graph.model.names if graph.model.names in known else next(iter(known))


def labels(graph: Graph, convention: str) -> Mapping[str, str]:
    """Component or node id -> its name: the stored tensor's name without its layer's prefix and without `.weight`.

    A node has what the names of its weights begin with in common (`self_attn`), if they do.
    """
    rows = tensors.rows(graph, convention)
    roots = [_parent(row.template.text.partition(_layer(row))[0]) for row in rows if row.layers]
    root = roots[0] if roots and set(roots) == {roots[0]} else ""
    found: dict[str, str] = {}
    of_node: dict[str, list[str]] = {}
    for row in rows:
        text = row.template.text
        text = text.partition(_layer(row))[2].lstrip(".") if row.layers else text.removeprefix(root)
        label = text.removesuffix(".weight") or row.template.text
        for weight in row.weights:
            part = f" ({weight.id.rpartition('.')[2]})" if len(row.weights) > 1 else ""
            found[weight.component] = label + part
            of_node.setdefault(weight.node, []).append(label)
    for node, names in of_node.items():
        common = _common(names)
        if node not in found and common:
            found[node] = common
    return found


def _layer(row: tensors.Row) -> str:
    return f"{{{row.layers[0]}}}" if row.layers else ""


def _parent(prefix: str) -> str:
    """`model.layers.` -> `model.`; `layers.` -> nothing."""
    head, dot, _ = prefix.rstrip(".").rpartition(".")
    return head + dot


def _common(names: list[str]) -> str:
    """The dotted words with which all the names begin."""
    words = [name.split(".") for name in names]
    shared = []
    for column in zip(*words, strict=False):
        if len(set(column)) > 1:
            break
        shared.append(column[0])
    return ".".join(shared)
