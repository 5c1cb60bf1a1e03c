"""`atlas params`: exact parameter counts, each with its calculation and its source."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from atlas.cli.options import (
    Csv,
    Json,
    Markdown,
    ModelName,
    Names,
    Specs,
    count,
    graph_of,
    library_of,
    require_one_format,
)
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
    layer: Annotated[
        int | None,
        typer.Option("--layer", metavar="N", parser=count("--layer"), help="Only what is in layer N."),
    ] = None,
    names: Names = None,
    devices: Annotated[
        int | None,
        typer.Option(
            "--devices",
            metavar="N",
            parser=count("--devices"),
            help="Also count the parameters on each of N devices.",
        ),
    ] = None,
    json: Json = False,
    markdown: Markdown = False,
    csv: Csv = False,
    specs: Specs = None,
) -> None:
    """Count every parameter exactly, component by component, with its calculation and its source.

    Example: atlas params llama3.1-8b --by tensor --csv
    """
    from atlas.analyse.counts import count as counted
    from atlas.report import params as show

    require_one_format(json=json, markdown=markdown, csv=csv)
    library = library_of(specs)
    result: Counts = counted(
        graph_of(model, library), library, by=by.value, devices=devices, layer=layer, names=names
    )
    if json:
        console.json(result)
        return
    content = show.table(result, by.value, one_convention=names is not None)
    if markdown or csv:
        console.print_table(content, markdown=markdown, csv=csv)
    else:
        show.show(result, content)
