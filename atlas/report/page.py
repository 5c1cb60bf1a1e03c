"""A page of the atlas in the terminal."""

from __future__ import annotations

from atlas.pages.content import Page
from atlas.report import console


def show(page: Page) -> None:
    """Title and kind, expression, one sentence, equation, in and out, accounting, notes, code, sources."""
    for line in lines(page):
        console.line(line.expandtabs(4))


def lines(page: Page) -> list[str]:
    """The page, a line at a time."""
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
    if page.notes:
        found += ["", "Notes", *(f"  {note}" for note in page.notes)]
    found += ["", "Rests on", f"  {page.rests_on}"]
    if page.code:
        found += ["", "Code"]
        for code in page.code:
            found.append(f"  {code.source}: {code.path.rpartition('/')[2]} {_spans(code.lines)}")
            found += [f"    {line.number:>5}  {line.text}" for line in code.excerpt]
    if page.sources:
        found += ["", "Sources"]
        for item in page.sources:
            revision = f" @ {item.revision[:12]}" if item.revision else ""
            spans = f" lines {_spans(item.lines)}" if item.lines else ""
            found += [
                f"  {item.relation}: {item.claim}",
                f"    {item.id} · {item.repo}{revision} · {item.path}{spans}",
            ]
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
