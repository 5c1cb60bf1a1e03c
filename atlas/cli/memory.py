"""`atlas memory` and `atlas flops`: the bytes and the FLOPs of a model."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

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
from atlas.errors import NotDescribed, UsageError
from atlas.report import console


class AttentionKind(StrEnum):
    fused = "fused"
    eager = "eager"


Attention = Annotated[
    AttentionKind,
    typer.Option("--attention", help="Fused: scores are never in memory. Eager: every step's result is."),
]
Batch = Annotated[int, typer.Option("--batch", metavar="N", parser=count("--batch"), help="Sequences.")]
Positions = Annotated[
    int,
    typer.Option(
        "--positions",
        metavar="N",
        parser=count("--positions"),
        help="Tokens of each sequence in this pass; 8k is 8192.",
    ),
]


def register(app: typer.Typer) -> None:
    app.command("memory")(memory)
    app.command("flops")(flops)


def memory(
    model: ModelName,
    dtype: Annotated[
        str | None, typer.Option("--dtype", metavar="D", help="Of the weights; the stored one by default.")
    ] = None,
    kv_dtype: Annotated[
        str | None,
        typer.Option("--kv-dtype", metavar="D", help="Of the KV cache; that of the activations by default."),
    ] = None,
    batch: Batch = 1,
    context: Annotated[
        int | None,
        typer.Option(
            "--context",
            metavar="N",
            parser=count("--context"),
            help="Positions of each sequence, such as 8192 or 32k; the model's own by default.",
        ),
    ] = None,
    positions: Positions = 1,
    devices: Annotated[
        int,
        typer.Option(
            "--devices", metavar="N", parser=count("--devices"), help="Divide the model over N devices."
        ),
    ] = 1,
    attention: Attention = AttentionKind.fused,
    fit: Annotated[
        list[str] | None,
        typer.Option(
            "--fit",
            metavar="SIZE",
            help="Whether the context fits into 80GB or 24GiB, and the longest that does. Repeatable.",
        ),
    ] = None,
    reserve: Annotated[
        str | None, typer.Option("--reserve", metavar="SIZE", help="Of each device, left free for --fit.")
    ] = None,
    utilization: Annotated[
        str, typer.Option("--utilization", metavar="F", help="The share of each device --fit may use.")
    ] = "1",
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 1 if the context does not fit into a --fit.")
    ] = False,
    json: Json = False,
    markdown: Markdown = False,
    csv: Csv = False,
    specs: Specs = None,
) -> int:
    """Bytes for weights, KV cache, logits and the largest activation, each with its calculation.

    Example: atlas memory llama3.1-8b --context 8192 --fit 24GiB
    """
    from atlas import dtypes, units
    from atlas.analyse.memory import memory as needed
    from atlas.report import memory as show

    require_one_format(json=json, markdown=markdown, csv=csv)
    if not fit:
        for option, given in (
            ("--exit-code", exit_code),
            ("--reserve", reserve is not None),
            ("--utilization", utilization != "1"),
        ):
            if given:
                raise UsageError(f"{option} goes with --fit", hint="add --fit 24GiB")
    result = needed(
        graph_of(model, library_of(specs)),
        dtype=dtypes.code(dtype) if dtype is not None else None,
        kv_dtype=dtypes.code(kv_dtype) if kv_dtype is not None else None,
        batch=batch,
        context=context,
        positions=positions,
        devices=devices,
        attention=attention.value,
        fit=[units.size_bytes(text, "--fit") for text in fit or ()],
        reserve=units.size_bytes(reserve, "--reserve") if reserve is not None else 0,
        utilization=utilization,
    )
    if exit_code and result.weights_reason is not None:
        raise NotDescribed(
            f"{result.model}: {result.weights_reason}, so --exit-code has no answer",
            hint="give the weights' dtype with --dtype",
        )
    if json:
        console.json(result)
    elif markdown or csv:
        console.print_table(show.memory_table(result), markdown=markdown, csv=csv)
    else:
        show.memory(result)
    return int(exit_code and not all(each.fits for each in result.fit))


def flops(
    model: ModelName,
    batch: Batch = 1,
    positions: Positions = 1,
    past: Annotated[
        int,
        typer.Option("--past", metavar="N", parser=count("--past"), help="Positions already in the cache."),
    ] = 0,
    attention: Attention = AttentionKind.fused,
    rate: Annotated[
        str | None,
        typer.Option("--flops", metavar="X", help="The machine's FLOPs per second, such as 989T."),
    ] = None,
    bandwidth: Annotated[
        str | None, typer.Option("--bandwidth", metavar="Y", help="Its bytes per second, such as 3.35TB.")
    ] = None,
    names: Names = None,
    json: Json = False,
    markdown: Markdown = False,
    csv: Csv = False,
    specs: Specs = None,
) -> None:
    """FLOPs of a pass for each component, the bytes it moves, and which of the two bounds it.

    Example: atlas flops llama3.1-8b --positions 128 --flops 989T --bandwidth 3.35TB
    """
    from atlas import units
    from atlas.analyse.flops import flops as counted
    from atlas.analyse.labels import convention_of, labels
    from atlas.report import memory as show

    require_one_format(json=json, markdown=markdown, csv=csv)
    if (rate is None) != (bandwidth is None):
        raise UsageError("--flops and --bandwidth go together: the bound of a component depends on both")
    graph = graph_of(model, library_of(specs))
    result = counted(
        graph,
        batch=batch,
        positions=positions,
        past=past,
        attention=attention.value,
        flops_per_second=units.per_second(rate, "--flops", "FLOPS") if rate is not None else None,
        bytes_per_second=units.per_second(bandwidth, "--bandwidth", "B") if bandwidth is not None else None,
    )
    named = labels(graph, convention_of(graph, names))
    if json:
        console.json(result)
        return
    content = show.flops_table(result, named, ids=names is None)
    if markdown or csv:
        console.print_table(content, markdown=markdown, csv=csv)
    else:
        show.flops(result, content)
