"""Optional weights, such as biases: stored although their flag is off, or missing although it is on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from atlas.checkpoint.findings import Finding
from atlas.grammar.names import Template, holding
from atlas.graph.conventions import convention, entries
from atlas.verification import formatting
from atlas.verification.comparison import Comparison


def on_but_absent(comparison: Comparison) -> Iterator[Finding]:
    """None of the weights that a flag turns on is stored."""
    if not comparison.missing:
        return
    flags = _flags(comparison)
    groups: dict[str, list[str]] = {}
    for name, row in comparison.needed.items():
        if (flag := flags.get(row.weights[0].id)) is not None:
            groups.setdefault(flag, []).append(name)
    for flag, names in groups.items():
        if all(name in comparison.missing for name in names):
            yield _finding(comparison, "missing", flag, names, "is true, but none of its weights is stored")


def bias_absent(comparison: Comparison) -> Iterator[Finding]:
    """Some of the biases that a flag turns on are stored in no layer, although others are."""
    if not comparison.missing:
        return
    flags = _flags(comparison)
    groups: dict[str, dict[str, list[str]]] = {}
    for name, row in comparison.needed.items():
        flag = flags.get(row.weights[0].id)
        if flag is not None and len(row.shape) == 1 and name.endswith(".bias"):
            groups.setdefault(flag, {}).setdefault(row.template.text, []).append(name)
    for flag, rows in groups.items():
        absent = [names for names in rows.values() if all(name in comparison.missing for name in names)]
        if not absent or len(absent) == len(rows):
            continue
        names = [name for each in absent for name in each]
        stored = [name for each in rows.values() if each not in absent for name in each]
        key = comparison.description.key(flag)
        yield Finding(
            code="missing",
            tensor=names[0],
            expected=comparison.needed[names[0]].shape,
            count=len(names),
            message=f"{formatting.name_list(names)} ({formatting.tensor_count(len(names))}) {_is_or_are(absent)} missing: {key} in "
            f"{comparison.description.source} is true, but only {formatting.name_list(stored)} are stored; transformers sets "
            f"a missing bias to zero, other loaders may refuse it; store zeros, or describe a model without "
            f"{'this bias' if len(absent) == 1 else 'these biases'}",
        )
        comparison.explained(names)


def _is_or_are(patterns: Sequence[object]) -> str:
    return "is" if len(patterns) == 1 else "are"


def off_but_stored(comparison: Comparison) -> Iterator[Finding]:
    """Stored weights that the architecture knows, and that a flag turns off."""
    if not comparison.unexpected:
        return
    flags = _flags(comparison)
    off: dict[str, str] = {}
    table = convention(comparison.graph, comparison.naming.table.convention)
    for entry in entries(table):
        weight = holding(entry.holds).weights[0]
        if weight in flags and weight not in comparison.graph.weights:
            off[entry.name.format_map(dict.fromkeys(Template(entry.name).placeholders, "*"))] = flags[weight]
    groups: dict[str, list[str]] = {}
    for name in comparison.unexpected:
        if (flag := off.get(formatting.wildcard(name))) is not None:
            groups.setdefault(flag, []).append(name)
    for flag, names in groups.items():
        stored = {formatting.wildcard(name) for name in names}
        if stored == {pattern for pattern, its in off.items() if its == flag}:
            yield _finding(comparison, "unexpected", flag, names, "is false, but its weights are stored")
        else:
            yield _finding(
                comparison,
                "unexpected",
                flag,
                names,
                "is false, but some of its weights are stored",
                "neither value of {key} matches the file, because true requires the other ones too",
            )


def _finding(
    comparison: Comparison, code: str, flag: str, names: Iterable[str], what: str, conclusion: str = ""
) -> Finding:
    """A finding on the weights of one flag.

    Args:
        conclusion: what follows, with `{key}` for the flag's key; by default, that its value is probably wrong.
    """
    names = list(names)
    comparison.explained(names)
    key = comparison.description.key(flag)
    conclusion = conclusion.format(key=key) or f"{key} in {comparison.description.source} is probably wrong"
    return Finding(
        code=code,
        tensor=names[0],
        count=len(names),
        message=f"{key} {what}: {formatting.name_list(names)} ({formatting.tensor_count(len(names))}); {conclusion}",
    )


def _flags(comparison: Comparison) -> dict[str, str]:
    """Weight -> the model's flag that turns it on; of flags that one setting sets, the first."""
    architecture = comparison.graph.architecture
    nodes = [node for block in architecture.blocks.values() for node in block]
    given = {
        node.id: node.given for node in [*nodes, *(part.node for part in architecture.graph if part.node)]
    }
    found: dict[str, str] = {}
    of_key: dict[str, str] = {}
    for node in (node for block in comparison.graph.blocks for node in block.nodes):
        for name, weight in node.component.weights.items():
            first = (weight.when or "").split(" and ")[0]  # the other terms say for which variant it is
            flag = given.get(node.id, {}).get(first)
            if isinstance(flag, str):
                found[f"{node.id}.{name}"] = of_key.setdefault(comparison.description.key(flag), flag)
    return found
