"""`atlas schema`: the JSON schema of a command's output."""

from __future__ import annotations

from typing import Annotated

import typer

from atlas.errors import UsageError
from atlas.report import console

# command -> module and class of what its --json prints
RESULTS = {
    "models": ("atlas.listing", "Listing"),
    "params": ("atlas.analyse.counts", "Counts"),
    "trace": ("atlas.analyse.trace", "Trace"),
    "explain": ("atlas.page", "Page"),
    "memory": ("atlas.analyse.memory", "Memory"),
    "flops": ("atlas.analyse.flops", "Flops"),
    "diff": ("atlas.analyse.diff", "Diff"),
    "verify": ("atlas.verify.result", "Printed"),
    "run": ("atlas.run.result", "Result"),
    "evidence": ("atlas.evidence", "Checked"),
    "specs": ("atlas.speccheck", "SpecCheck"),
}


def register(app: typer.Typer) -> None:
    app.command("schema")(schema)


def schema(
    command: Annotated[str, typer.Argument(metavar="COMMAND", help=f"One of {', '.join(RESULTS)}.")],
) -> None:
    """Print the JSON schema that a command's --json output validates against.

    Example: atlas schema params
    """
    from importlib import import_module

    from pydantic import TypeAdapter

    if command not in RESULTS:
        raise UsageError(
            f"no command with a JSON output is called {command!r}", hint=f"there are {', '.join(RESULTS)}"
        )
    module, name = RESULTS[command]
    made = TypeAdapter(getattr(import_module(module), name)).json_schema(mode="serialization")
    console.json({"$schema": "https://json-schema.org/draft/2020-12/schema", **made})
