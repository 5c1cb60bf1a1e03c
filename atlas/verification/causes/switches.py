"""Optional weights, such as biases: stored although they are switched off, or absent although they are on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from atlas.checkpoint.findings import Finding
from atlas.grammar.names import Template, holding
from atlas.verification import words
from atlas.verification.case import Case


def on_but_absent(case: Case) -> Iterator[Finding]:
    """Not one of the weights that a switch turns on is there."""
    if not case.missing:
        return
    switches = _switches(case)
    groups: dict[str, list[str]] = {}
    for name, row in case.needed.items():
        if (switch := switches.get(row.weights[0].id)) is not None:
            groups.setdefault(switch, []).append(name)
    for switch, names in groups.items():
        if all(name in case.missing for name in names):
            yield _finding(case, "missing", switch, names, "is on, and none of what it turns on is there")


def off_but_stored(case: Case) -> Iterator[Finding]:
    """Weights that the architecture knows, and that a switch turns off."""
    if not case.unexpected:
        return
    switches = _switches(case)
    off: dict[str, str] = {}
    for text, entry in case.graph.architecture.conventions[case.naming.table.convention].tensors.items():
        weight = holding(entry if isinstance(entry, str) else entry.holds).weights[0]
        if weight in switches and weight not in case.graph.weights:
            off[text.format_map(dict.fromkeys(Template(text).placeholders, "*"))] = switches[weight]
    groups: dict[str, list[str]] = {}
    for name in case.unexpected:
        if (switch := off.get(words.starred(name))) is not None:
            groups.setdefault(switch, []).append(name)
    for switch, names in groups.items():
        yield _finding(case, "unexpected", switch, names, "is off, and what it turns on is stored")


def _finding(case: Case, code: str, switch: str, names: Iterable[str], what: str) -> Finding:
    names = list(names)
    case.explained(names)
    key = case.description.key(switch)
    return Finding(
        code=code,
        tensor=names[0],
        count=len(names),
        message=f"{key} {what}: {words.together(names)} ({words.tensors(len(names))}); "
        f"{key} in {case.description.who} is probably wrong",
    )


def _switches(case: Case) -> dict[str, str]:
    """Weight -> the flag of the model that turns it on."""
    architecture = case.graph.architecture
    nodes = [node for block in architecture.blocks.values() for node in block]
    given = {
        node.id: node.given for node in [*nodes, *(part.node for part in architecture.graph if part.node)]
    }
    found = {}
    for node in (node for block in case.graph.blocks for node in block.nodes):
        for name, weight in node.component.weights.items():
            flag = given[node.id].get(weight.when or "")
            if isinstance(flag, str):
                found[f"{node.id}.{name}"] = flag
    return found
