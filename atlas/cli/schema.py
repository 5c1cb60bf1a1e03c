"""`atlas schema`: the JSON schema of a command's output."""

from __future__ import annotations

from typing import Annotated

import typer

from atlas.errors import Failure, UsageError
from atlas.report import console

RESULTS = {
    "models": ("atlas.pages.catalogue", "Listing"),
    "params": ("atlas.analyse.counts", "Counts"),
    "trace": ("atlas.analyse.trace", "Trace"),
    "explain": ("atlas.pages.content", "Page"),
    "memory": ("atlas.analyse.memory", "Memory"),
    "flops": ("atlas.analyse.flops", "Flops"),
    "diff": ("atlas.analyse.diff", "Diff"),
    "verify": ("atlas.verification.result", "Printed"),
    "run": ("atlas.execution.result", "Result"),
    "evidence check": ("atlas.evidence.check", "Checked"),
    "specs check": ("atlas.graph.check", "SpecCheck"),
    "specs import": ("atlas.resolution.catalogue_import.reader", "Catalogue"),
    "receipt": ("atlas.verification.receipt", "Receipt"),
}
"""The module and class of what each command prints with --json; `receipt` is the file that `atlas verify --receipt` writes."""

SHORT = {"evidence": "evidence check", "specs": "specs check"}


def register(app: typer.Typer) -> None:
    app.command("schema")(schema)


def schema(
    command: Annotated[list[str], typer.Argument(metavar="COMMAND", help=f"One of {', '.join(RESULTS)}.")],
) -> None:
    """Print the JSON schema of a command's --json output, including the error that it prints on failure.

    Example: atlas schema params
    """
    from importlib import import_module

    from pydantic import TypeAdapter

    name = " ".join(command)
    name = SHORT.get(name, name)
    if name not in RESULTS:
        raise UsageError(
            f"no command with a JSON output is called {name!r}", hint=f"use one of {', '.join(RESULTS)}"
        )
    module, attribute = RESULTS[name]
    result = getattr(import_module(module), attribute)
    document = result if name == "receipt" else result | Failure
    made = TypeAdapter(document).json_schema(mode="serialization")
    console.json({"$schema": "https://json-schema.org/draft/2020-12/schema", **made})
