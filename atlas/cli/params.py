"""`atlas params`: exact parameter counts, each with its calculation and its source."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from atlas.cli.options import Json, ModelName, Specs, count, graph_of, library_of
from atlas.errors import UsageError
from atlas.report import console

if TYPE_CHECKING:
    from atlas.analyse.counts import Counts


class By(StrEnum):
    component = "component"
    layer = "layer"
    tensor = "tensor"


def register(app: typer.Typer) -> None:
    app.command("params")(params)


def params(
    model: ModelName,
    by: Annotated[By, typer.Option("--by", help="The rows of the table.")] = By.component,
    devices: Annotated[
        int | None,
        typer.Option(
            "--devices", metavar="N", parser=count("--devices"), help="Also count the parameters on each of N devices."
        ),
    ] = None,
    json: Json = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="A Markdown table.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Comma-separated values.")] = False,
    specs: Specs = None,
) -> None:
    """Count every parameter exactly, component by component, with its calculation and its source.

    Example: atlas params llama3.1-8b --by tensor --csv
    """
    from atlas.analyse.counts import count as counted
    from atlas.report import params as show

    if json + markdown + csv > 1:
        raise UsageError("--json, --markdown and --csv exclude each other")
    library = library_of(specs)
    result: Counts = counted(graph_of(model, library), library, by=by.value, devices=devices)
    if json:
        console.json(result)
    elif markdown:
        console.write(show.markdown(result, by.value))
    elif csv:
        console.write(show.comma_separated(result, by.value))
    else:
        show.show(result, by.value)
