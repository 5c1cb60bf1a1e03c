"""A page of the atlas in the terminal."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

from atlas.pages.content import Difference, Facts, Page
from atlas.report import console

MOST_RUNS = 8
"""Most runs of equal values that are listed of a setting with a value for each layer; beyond it, each value is counted."""


def show(page: Page, names: str | None = None) -> None:
    """Print title, expression, summary, equation, input and output, accounting, names, notes and sources.

    Args:
        names: the only convention whose names are shown; None for all.
    """
    for line in lines(page, names):
        console.line(line.expandtabs(4))


def lines(page: Page, names: str | None = None) -> list[str]:
    """The lines of the page."""
    found = [f"{page.title} · {page.kind}", f"{page.model}{' · ' + page.node if page.node else ''}", ""]
    if page.facts:
        facts = page.facts
        follows = f"follows {facts.follows}" if facts.follows else ""
        context = f"{facts.context_length:,} positions" if facts.context_length else ""
        said = [
            facts.publisher,
            facts.released,
            facts.kind,
            follows,
            context,
            facts.dtype,
            facts.hub_id or "",
        ]
        found += [" · ".join(filter(None, said)), ""]
    for text in (f"  {page.expression}", page.summary, f"  {page.equation.text}"):
        found += [text, ""] if text.strip() else []
    found += [f"in         {value.text} {value.dtype}" for value in page.inputs]
    found += [f"out        {value.text} {value.dtype}" for value in page.outputs]
    if page.accounting:
        found += _accounting(page)
    stored = [each for each in page.stored if names in (None, each.convention)]
    if stored:
        found += ["", "Stored as"]
        found += [f"  {each.convention}: {each.name}  {list(each.shape)}  {each.layout}" for each in stored]
    if page.facts:
        found += _differences(page.facts)
        found += ["", "Nodes in order", f"  {', '.join(page.facts.nodes)}"]
    if page.not_described:
        found += [
            "",
            "Not described, and left out of this page",
            *(f"  {reason}" for reason in page.not_described),
        ]
    if page.notes:
        found += ["", "Notes", *(f"  {note}" for note in page.notes)]
    found += ["", page.rests_on]
    if page.sources:
        found += ["", "Sources", *_sources(page)]
    return found


def _differences(facts: Facts) -> list[str]:
    """How a model differs from the one that it follows; a group of settings such as `rope.factor` is one line."""
    if facts.differs_from is None:
        return []
    groups: dict[str, list[Difference]] = {}
    for each in facts.differences:
        groups.setdefault(each.name.partition(".")[0], []).append(each)
    found = ["", f"Differs from {facts.differs_from} (weights not compared)"]
    for name, group in groups.items():
        changes = [
            (f"{each.name.partition('.')[2]} " if "." in each.name else "")
            + f"{_value(each.before)} → {_value(each.now)}"
            for each in group
        ]
        found.append(f"  {name}: {'; '.join(changes)}")
    if not groups:
        found.append("  in no dimension and no setting")
    return found


def _value(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, tuple):
        runs = [(each, len(list(run))) for each, run in groupby(value)]
        if len(runs) > MOST_RUNS:
            counts = Counter(value)
            return f"{len(value):,} values: " + ", ".join(
                f"{n:,} × {each}" for each, n in counts.most_common(MOST_RUNS)
            )
        return ", ".join(f"{n:,} × {each}" if n > 1 else str(each) for each, n in runs)
    return f"{value:,}" if type(value) is int else str(value)


def _sources(page: Page) -> list[str]:
    """Every source once: how it bears out the claim, where it is, and the cited lines if they were read."""
    excerpts = {(code.source, code.lines): code.excerpt for code in page.code}
    found = []
    for item in page.sources:
        revision = f" @ {item.revision[:12]}" if item.revision else ""
        spans = f" {_lines(item.lines)} {_spans(item.lines)}" if item.lines else ""
        found += [
            f"  {item.title if item.relation == 'implementation' else item.relation}: {item.claim}",
            f"    {item.id} · {item.repo}{revision} · {item.path}{spans}",
        ]
        cited = excerpts.pop((item.source, item.lines), ())
        found += [f"    {line.number:>5}  {line.text}" for line in cited]
    return found


def _accounting(page: Page) -> list[str]:
    name = max(len(row.component) for row in page.accounting)
    how = max(len(row.calculation) for row in page.accounting)
    amount = max(
        len(f"{page.parameters_per_instance:,}"), *(len(f"{row.parameters:,}") for row in page.accounting)
    )
    found = [f"parameters {page.parameters:,}"]
    if page.instances > 1:
        found[0] += f" = {page.instances} instances × {page.parameters_per_instance:,}"
    found += ["", "Exact accounting" if page.kind == "model" else "Exact accounting of one instance"]
    found += [
        f"  {row.component:<{name}}  {row.calculation:<{how}}  {row.parameters:>{amount},}"
        for row in page.accounting
    ]
    found.append(f"  {'total':<{name}}  {'':<{how}}  {page.parameters_per_instance:>{amount},}")
    return found


def _spans(lines: tuple[tuple[int, int], ...]) -> str:
    return ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in lines)


def _lines(lines: tuple[tuple[int, int], ...]) -> str:
    return "line" if len(lines) == 1 and lines[0][0] == lines[0][1] else "lines"
