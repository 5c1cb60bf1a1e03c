"""The tables of `atlas memory` and `atlas flops`."""

from __future__ import annotations

from atlas.analyse.flops import Flops
from atlas.analyse.memory import Memory
from atlas.report import console
from atlas.report.plain import gibibytes


def memory(result: Memory) -> None:
    """Each figure in GiB and bytes, with its calculation."""
    how = result.calculations
    console.line(
        f"{result.model}: weights in {result.dtype}, KV cache in {result.kv_dtype}, batch {result.batch:,}, "
        f"context {result.context:,}"
    )
    console.line()
    figures = [
        ("weights", result.weights_bytes, how["weights"]),
        ("KV cache per token", result.kv_bytes_per_token, how["kv_per_token"]),
        ("KV cache", result.kv_bytes, how["kv"]),
        ("KV cache, reserved", result.kv_reserved_bytes, how["kv_reserved"]),
        ("logits", result.logits_bytes, how["logits"]),
        ("largest activation", result.activation_bytes, how["activation"]),
        ("total", result.total_bytes, "weights + KV cache + logits + largest activation"),
    ]
    if result.devices > 1:
        figures.append(
            ("each device", result.per_device_bytes, f"over {result.devices:,} devices, vectors on every one")
        )
    rows = [
        [name, gibibytes(count), f"{count:,}", text] for name, count, text in figures if count is not None
    ]
    console.out(console.table(["", "size", "bytes", "calculation"], rows, right=[1, 2]))
    for fit in result.fit:
        limit = "the model's own context" if fit.limited_by == "model" else "as much as fits"
        what = f"{fit.context:,} positions ({limit})" if fit.context else "the weights do not fit"
        console.line(f"fit        {fit.size_bytes:,} bytes ({gibibytes(fit.size_bytes)}): {what}")
    for text in result.notes:
        console.line(f"note       {text}")


def flops(result: Flops) -> None:
    """One line a component."""
    console.line(
        f"{result.model}: batch {result.batch:,}, positions {result.positions:,}, past {result.past:,}"
    )
    console.line()
    bound = any(row.bound for row in result.components)
    rows = [
        [
            row.id,
            f"{row.flops:,}",
            f"{row.bytes:,}",
            f"{row.intensity:,.2f}",
            *([row.bound or ""] if bound else []),
        ]
        for row in result.components
    ]
    rows.append(["total", f"{result.total_flops:,}", f"{result.total_bytes:,}", "", *([""] if bound else [])])
    headers = ["component", "FLOPs", "bytes", "FLOPs/byte", *(["bound by"] if bound else [])]
    console.out(console.table(headers, rows, right=[1, 2, 3]))
    if result.seconds is not None:
        console.line(f"at least   {result.seconds * 1000:,.3f} ms at 100 % of peak")
    console.line(f"counted    {result.convention}")
