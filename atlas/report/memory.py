"""The tables of `atlas memory` and `atlas flops`, and what is printed below them."""

from __future__ import annotations

from collections.abc import Mapping

from atlas.analyse.fit import Fit
from atlas.analyse.flops import Flops
from atlas.analyse.memory import Memory
from atlas.report import console
from atlas.report.plain import gibibytes
from atlas.tables import Cell, Column, Table

_LIMITS = {
    "memory": "",
    "model": ", the model's own context",
    "asked": ", the context asked for",
    "window": ", the sliding window: longer contexts are not described",
}


def memory(result: Memory) -> None:
    """Print each figure in GiB and bytes with its calculation, and what fits."""
    console.line(
        f"{result.model}: weights in {result.dtype}, KV cache in {result.kv_dtype}, batch {result.batch:,}, "
        f"context {result.context:,}"
    )
    console.line()
    console.print_table(memory_table(result))
    for fit in result.fit:
        console.line(f"fit        {_fit(fit, result)}")
    for text in result.notes:
        console.line(f"note       {text}")


def memory_table(result: Memory) -> Table:
    """One row a figure; `figure` in CSV is its JSON key, and an unknown size is an empty cell."""
    how = result.calculations
    unknown = f"not known: {result.weights_reason}"
    cache = result.kv_dtype
    figures: list[tuple[str, str, str | None, int | None, str]] = [
        ("weights", "weights_bytes", result.dtype, result.weights_bytes, how["weights"] or unknown),
        (
            "KV cache per token",
            "kv_bytes_per_token",
            cache,
            result.kv_bytes_per_token,
            how["kv_per_token"],
        ),
        (
            "KV cache per token, beyond windows",
            "kv_bytes_per_token_beyond_window",
            cache,
            result.kv_bytes_per_token_beyond_window,
            how.get("kv_per_token_beyond_window", ""),
        ),
        *_kinds(result),
        ("KV cache", "kv_bytes", cache, result.kv_bytes, how["kv"]),
        ("KV cache, full context", "kv_reserved_bytes", cache, result.kv_reserved_bytes, how["kv_reserved"]),
        ("states", "state_bytes", None, result.state_bytes, how.get("state", "")),
        ("logits", "logits_bytes", None, result.logits_bytes, how["logits"]),
        ("largest activation", "activation_bytes", None, result.activation_bytes, how["activation"]),
        (
            "total",
            "total_bytes",
            None,
            result.total_bytes,
            f"weights + KV cache {'+ states ' if result.state_bytes else ''}+ logits + largest activation",
        ),
    ]
    absent = {
        "kv_reserved_bytes": result.kv_reserved_bytes is None,
        "kv_bytes_per_token_beyond_window": "kv_per_token_beyond_window" not in how,
        "state_bytes": not result.state_bytes,
    }
    figures = [row for row in figures if not absent.get(row[1], False)]
    if result.devices > 1:
        how_many = f"over {result.devices:,} devices"
        figures.append(("each device", "per_device_bytes", None, result.per_device_bytes, how_many))
    columns = (
        Column("", None),
        Column(None, "figure"),
        Column(None, "dtype"),
        Column("size", None, right=True),
        Column("bytes", right=True),
        Column("calculation", None),
    )
    return Table(
        columns,
        tuple((name, key, dtype, _size(count), count, text) for name, key, dtype, count, text in figures),
    )


def _kinds(result: Memory) -> list[tuple[str, str, str | None, int | None, str]]:
    """A row for each kind of layer that caches, if they differ in their window: its part of the cache."""
    kinds = [kind for kind in result.by_layer_kind if kind.kv_bytes_per_token]
    if len({kind.window for kind in kinds}) < 2:
        return []
    rows: list[tuple[str, str, str | None, int | None, str]] = []
    for kind in kinds:
        window = "" if kind.window is None else f", window {kind.window:,}"
        name = f"KV cache of {kind.layers:,} layers ({kind.kind}{window})"
        kept = result.context if kind.window is None else min(result.context, kind.window)
        how = f"batch {result.batch:,} × {kept:,} positions × {kind.calculation}"
        rows.append((name, f"kv_bytes.{kind.kind}", result.kv_dtype, kind.kv_bytes, how))
    return rows


def _fit(fit: Fit, result: Memory) -> str:
    """One line: the device, what is reserved of it, whether the context asked for fits, and what would."""
    on = f"on each of {result.devices:,} devices of " if result.devices > 1 else ""
    kept = f"{gibibytes(fit.reserved_bytes)} of it reserved" if fit.reserved_bytes else "nothing reserved"
    size = f"{on}{gibibytes(fit.size_bytes)} ({fit.size_bytes:,} bytes), {kept}"
    if fit.fits is None:
        return f"{size}: not known, since the weights' size is not"
    asked = (
        f"{result.batch:,} × {result.context:,} positions"
        if result.batch > 1
        else (f"{result.context:,} positions")
    )
    each = f" for each of {result.batch:,} sequences" if result.batch > 1 else ""
    longest = f"longest context {fit.context or 0:,} positions{each}{_LIMITS[fit.limited_by or 'memory']}"
    if not fit.context:
        longest = "not even one position fits"
    if fit.fits:
        return (
            f"{size}: {asked} fit; at most {fit.sequences or 0:,} sequences of {result.context:,}; {longest}"
        )
    over = "they fit over no number of devices that divides the model"
    if fit.devices is not None:
        over = f"over {fit.devices:,} devices they fit"
    short = f"{gibibytes(fit.short_bytes or 0)} short"
    return f"{size}: {asked} do not fit, {short}{' on each' if on else ''}; {over}; {longest}"


def flops(result: Flops, content: Table) -> None:
    """Print the table, and the time on a machine."""
    console.line(
        f"{result.model}: batch {result.batch:,}, positions {result.positions:,}, past {result.past:,}"
    )
    console.line()
    console.print_table(content)
    if result.seconds_at_least is not None:
        line = f"at least   {_milliseconds(result.seconds_at_least)} at 100 % of peak"
        if result.masked_flops and result.seconds_at_least_masked_skipped is not None:
            skipped = _milliseconds(result.seconds_at_least_masked_skipped)
            line += f", for all of these FLOPs; {skipped} for a kernel that skips the causal half"
        console.line(line)
    if result.masked_flops:
        console.line(
            f"causal     {_amount(result.masked_flops)} of the total are scores that masks discard; "
            "a kernel may skip them"
        )
    console.line(f"counted    {result.convention}")
    for text in result.notes:
        console.line(f"note       {text}")


def flops_table(result: Flops, names: Mapping[str, str], *, ids: bool = False) -> Table:
    """One row a component: rounded for people, exact in CSV.

    Args:
        names: component id -> its name in the table.
        ids: whether ids are shown next to names that differ from them.
    """
    bound = any(row.bound for row in result.components)
    both = ids and any(names.get(row.id, row.id) != row.id for row in result.components)
    columns = (
        Column("component", "name"),
        Column("id" if both else None, "component"),
        Column("FLOPs", None, right=True),
        Column(None, "flops"),
        Column("bytes", None, right=True),
        Column(None, "bytes"),
        Column("FLOPs/byte", None, right=True),
        Column(None, "intensity"),
        Column("bound by" if bound else None, "bound"),
    )
    rows = tuple(
        (
            names.get(row.id, row.id),
            row.id,
            _amount(row.flops),
            row.flops,
            _size(row.bytes),
            row.bytes,
            "—" if row.intensity is None else f"{row.intensity:,.2f}",
            row.intensity,
            row.bound,
        )
        for row in result.components
    )
    total: tuple[Cell, ...] = ("total", None, _amount(result.total_flops), None, _size(result.total_bytes))
    return Table(columns, rows, (*total, None, None, None, None))


def _size(count: int | None) -> str:
    return "—" if count is None else gibibytes(count)


def _amount(flops: int) -> str:
    """`158.14 TFLOPs`: four or more significant digits for people; JSON has every digit."""
    for name, power in (("E", 18), ("P", 15), ("T", 12), ("G", 9), ("M", 6), ("k", 3)):
        if flops >= 10**power:
            hundredths = (200 * flops + 10**power) // (2 * 10**power)
            return f"{hundredths // 100:,}.{hundredths % 100:02d} {name}FLOPs"
    return f"{flops:,} FLOPs"


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:,.3f} ms"
