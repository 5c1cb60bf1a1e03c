"""`atlas memory` and `atlas flops`: the bytes and the FLOPs of a model."""

from __future__ import annotations

from typing import Annotated

import typer

from atlas.cli.options import Json, ModelName, Specs, count, graph_of, library_of
from atlas.errors import UsageError
from atlas.report import console


def register(app: typer.Typer) -> None:
    app.command("memory")(memory)
    app.command("flops")(flops)


def memory(
    model: ModelName,
    dtype: Annotated[
        str | None, typer.Option("--dtype", metavar="D", help="Of the weights; the stored one by default.")
    ] = None,
    kv_dtype: Annotated[str | None, typer.Option("--kv-dtype", metavar="D", help="Of the KV cache.")] = None,
    batch: Annotated[
        int, typer.Option("--batch", metavar="N", parser=count("--batch"), help="Sequences.")
    ] = 1,
    context: Annotated[
        int | None,
        typer.Option(
            "--context",
            metavar="N",
            parser=count("--context"),
            help="Positions of each; the model's own by default.",
        ),
    ] = None,
    positions: Annotated[
        int,
        typer.Option(
            "--positions", metavar="N", parser=count("--positions"), help="Tokens of each in one pass."
        ),
    ] = 1,
    devices: Annotated[
        int, typer.Option("--devices", metavar="N", parser=count("--devices"), help="Over how many devices.")
    ] = 1,
    fit: Annotated[
        list[str] | None,
        typer.Option("--fit", metavar="SIZE", help="The longest context in 80GB or 24GiB. Repeatable."),
    ] = None,
    json: Json = False,
    specs: Specs = None,
) -> None:
    """Bytes for weights, KV cache, logits and the largest activation, each with its calculation.

    Example: atlas memory llama3.1-8b --context 8192 --fit 24GiB
    """
    from atlas import dtypes, units
    from atlas.analyse.memory import memory as needed
    from atlas.report import memory as show

    sizes = [units.size_bytes(text, "--fit") for text in fit or ()]
    result = needed(
        graph_of(model, library_of(specs)),
        dtype=dtypes.code(dtype) if dtype is not None else None,
        kv_dtype=dtypes.code(kv_dtype) if kv_dtype is not None else None,
        batch=batch,
        context=context,
        positions=positions,
        devices=devices,
        fit=sizes,
    )
    if json:
        console.json(result)
    else:
        show.memory(result)


def flops(
    model: ModelName,
    batch: Annotated[
        int, typer.Option("--batch", metavar="N", parser=count("--batch"), help="Sequences.")
    ] = 1,
    positions: Annotated[
        int,
        typer.Option(
            "--positions", metavar="N", parser=count("--positions"), help="Tokens of each in this pass."
        ),
    ] = 1,
    past: Annotated[
        int,
        typer.Option("--past", metavar="N", parser=count("--past"), help="Positions already in the cache."),
    ] = 0,
    rate: Annotated[
        str | None, typer.Option("--flops", metavar="X", help="The machine's FLOPs a second, such as 989T.")
    ] = None,
    bandwidth: Annotated[
        str | None, typer.Option("--bandwidth", metavar="Y", help="Its bytes a second, such as 3.35TB.")
    ] = None,
    json: Json = False,
    specs: Specs = None,
) -> None:
    """FLOPs of a pass for each component, the bytes it moves, and which of the two bounds it.

    Example: atlas flops llama3.1-8b --positions 128 --flops 989T --bandwidth 3.35TB
    """
    from atlas import units
    from atlas.analyse.flops import flops as counted
    from atlas.report import memory as show

    if (rate is None) != (bandwidth is None):
        raise UsageError("--flops and --bandwidth go together: the bound of a component depends on both")
    result = counted(
        graph_of(model, library_of(specs)),
        batch=batch,
        positions=positions,
        past=past,
        flops_per_second=units.per_second(rate, "--flops") if rate is not None else None,
        bytes_per_second=units.per_second(bandwidth, "--bandwidth") if bandwidth is not None else None,
    )
    if json:
        console.json(result)
    else:
        show.flops(result)
