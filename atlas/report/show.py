"""The table of `atlas show`: one row per fact and one column per model; in CSV, one row per model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from atlas.analyse.show import FactSheet, ModelFacts
from atlas.report import console
from atlas.report.plain import gibibytes
from atlas.tables import Column, Table

MOST = 12
"""Settings that are not described, listed per model; further ones are only counted."""

FIELDS = (
    "id",
    "name",
    "family",
    "architecture",
    "hub_id",
    "context_length",
    "norm_eps",
    "dtype",
    "quantisation",
    "tied",
    "total_parameters",
    "active_parameters",
    "weight_bytes",
    "kv_bytes_per_token",
    "kv_bytes_per_token_beyond_window",
    "state_bytes",
)
"""The first columns in CSV."""

DIMS = {
    "n_layers": "layers",
    "dim": "width",
    "n_heads": "query heads",
    "n_kv_heads": "key/value heads",
    "head_dim": "head width",
    "ffn_dim": "feed-forward width",
    "vocab_size": "vocabulary",
}
"""Axis -> its label; further axes are shown with their meaning."""


def show(sheet: FactSheet, *, markdown: bool = False) -> None:
    """Print the facts side by side; what needs a sentence is below the table."""
    columns = (Column(""), *(Column(facts.id) for facts in sheet.models))
    console.print_table(Table(columns, tuple(_rows(sheet.models, sheet.axes))), markdown=markdown)
    if markdown:
        return
    for facts in sheet.models:
        console.line()
        if len(sheet.models) > 1:
            console.line(f"{facts.id}: {facts.name}" if facts.name != facts.id else facts.id)
        for line in _sentences(facts):
            console.line(line)


def comma_separated(sheet: FactSheet) -> None:
    """Print one row per model, with plain integers."""
    axes = list(dict.fromkeys(name for facts in sheet.models for name in facts.dims))
    rope = list(dict.fromkeys(name for facts in sheet.models for name in facts.rope))
    rows = tuple(
        (
            *(getattr(facts, key) for key in FIELDS),
            *(facts.dims.get(name) for name in axes),
            *(facts.rope.get(name) for name in rope),
            len(facts.conflicts),
            "; ".join(facts.not_described),
        )
        for facts in sheet.models
    )
    columns = (*FIELDS, *axes, *rope, "conflicts", "not_described")
    console.print_table(Table(tuple(Column(None, word) for word in columns), rows), csv=True)


def _rows(models: tuple[ModelFacts, ...], meanings: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """The table's rows; one that no model has a value for is left out."""
    axes = dict.fromkeys([*DIMS, *(axis for facts in models for axis in facts.dims)])
    names = dict.fromkeys(name for facts in models for name in facts.settings)
    rows: list[tuple[str, Sequence[object]]] = [
        ("family", [facts.family or None for facts in models]),
        ("architecture", [facts.architecture for facts in models]),
        *(
            (DIMS.get(axis) or meanings.get(axis, axis), [facts.dims.get(axis) for facts in models])
            for axis in axes
        ),
        ("context length", [facts.context_length for facts in models]),
        ("RoPE theta", [facts.rope.get("rope_theta") for facts in models]),
        ("RoPE scaling", [_scaling(facts.rope) for facts in models]),
        ("norm epsilon", [facts.norm_eps for facts in models]),
        *((name.replace("_", " "), [facts.settings.get(name) for facts in models]) for name in names),
        ("kinds of layers", [_kinds(facts.layer_kinds) for facts in models]),
        ("dtype", [facts.dtype for facts in models]),
        ("quantised with", [facts.quantisation for facts in models]),
        ("tied embeddings", ["yes" if facts.tied else "no" for facts in models]),
        ("parameters", [facts.total_parameters for facts in models]),
        ("active per token", [facts.active_parameters for facts in models]),
        ("weights", [_size(facts.weight_bytes) or "size not described" for facts in models]),
        ("KV cache per token", [_size(facts.kv_bytes_per_token) for facts in models]),
        ("KV cache per token beyond windows", [_beyond(facts) for facts in models]),
        ("constant state", [_size(facts.state_bytes or None) for facts in models]),
        ("conflicts", [len(facts.conflicts) for facts in models]),
        ("not described", [len(facts.not_described) or None for facts in models]),
    ]
    for label, values in rows:
        if any(value is not None for value in values):
            yield (label, *("—" if value is None else _text(value) for value in values))


def _size(count: int | None) -> str | None:
    return None if count is None else gibibytes(count)


def _beyond(facts: ModelFacts) -> str | None:
    inside, beyond = facts.kv_bytes_per_token, facts.kv_bytes_per_token_beyond_window
    return None if inside == beyond else _size(beyond)


def _kinds(kinds: Mapping[str, int]) -> str | None:
    return ", ".join(f"{many:,} {kind}" for kind, many in kinds.items()) or None


def _scaling(rope: Mapping[str, Any]) -> str | None:
    if rope.get("rope_type", "default") == "default":
        return None
    factor = rope.get("factor")
    return _text(rope["rope_type"]) + ("" if factor is None else f" × {_text(factor)}")


def _sentences(facts: ModelFacts) -> list[str]:
    lines = [f"published as {facts.hub_id}"] if facts.hub_id else []
    lines.append(f"dimensions from {facts.rests_on}")
    for conflict in facts.conflicts:
        catalogue, used = _text(conflict.catalogue), _text(conflict.used)
        lines.append(
            f"conflict: {conflict.field} is {catalogue} in the catalogue and {used} in the released model. {conflict.why}"
        )
    lines += [f"not described: {setting}" for setting in facts.not_described[:MOST]]
    if len(facts.not_described) > MOST:
        lines.append(
            f"and {len(facts.not_described) - MOST:,} more settings that are not described (--json lists all)"
        )
    return lines


def _text(value: object) -> str:
    if value is None:
        return "absent"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:,.10g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
