"""`atlas diff`: what differs between two models, or between the traces of two runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from atlas.cli.options import (
    Csv,
    Json,
    Markdown,
    Names,
    Specs,
    graph_of,
    library_of,
    require_one_format,
)
from atlas.report import console


def register(app: typer.Typer) -> None:
    app.command("diff")(diff)


def diff(
    a: Annotated[
        str, typer.Argument(metavar="A", help="A catalogue id, a Hub id or a path; with --trace, a trace.")
    ],
    b: Annotated[str, typer.Argument(metavar="B", help="What to compare it with.")],
    trace: Annotated[
        bool,
        typer.Option(
            "--trace", help="Compare two traces, files of `run --trace-to` or `trace --json`, step by step."
        ),
    ] = False,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with 1 if they differ.")] = False,
    names: Names = None,
    json: Json = False,
    markdown: Markdown = False,
    csv: Csv = False,
    specs: Specs = None,
) -> None:
    """Compare two models: dimensions, settings, components, tensors and totals. Weights are not compared.

    Example: atlas diff llama3-8b llama3.1-8b
    """
    from atlas.analyse.diff import Diff
    from atlas.analyse.diff import diff as compared
    from atlas.analyse.labels import convention_of, labels
    from atlas.analyse.trace_diff import TraceDiff, diff_traces
    from atlas.report import diff as report

    require_one_format(json=json, markdown=markdown, csv=csv)
    result: Diff | TraceDiff
    if trace:
        result = diff_traces(Path(a), Path(b))
        found = report.traces(result)
    else:
        library = library_of(specs)
        one, other = graph_of(a, library), graph_of(b, library)
        result = compared(one, other, convention=None if json else names)
        shown = labels(one, convention_of(one, names)), labels(other, convention_of(other, names))
        found = report.models(result, {**shown[1], **shown[0]})
    if json:
        console.json(result)
    else:
        report.show(found, markdown=markdown, csv=csv)
    if exit_code and result.differs:
        raise typer.Exit(1)
