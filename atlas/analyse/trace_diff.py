"""Two traces written as JSON, compared step by step: `atlas trace --json`, or what `atlas run --trace-to` writes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atlas.analyse.diff import Diff
from atlas.analyse.settings import flat, same
from atlas.errors import UsageError, shown
from atlas.files import read_regular
from atlas.text import KeyTwice, beyond_limits, no_key_twice

MOST_BYTES = 256 * 2**20
"""Of one trace: hundreds of times that of the largest model described."""

NOT_COMPARED = ("seconds", "tokens_per_second", "peak_memory_bytes", "requests", "bytes_read")
"""Keys that differ from run to run."""


@dataclass(frozen=True, slots=True)
class FieldDiff:
    """A field of a step, or of the whole trace, in both; None if one has no such field.

    Attributes:
        step: the step's id; None for a field of the whole trace, such as `total_flops`.
    """

    step: str | None
    field: str
    a: Any
    b: Any


@dataclass(frozen=True, slots=True)
class TraceDiff:
    """The result of `atlas diff --trace`.

    Attributes:
        a, b: the files.
        steps: the number of steps in each.
        only_a, only_b: ids of the steps that only one trace has.
        same_order: whether the steps that both have come in the same order.
        first: id of the first step that differs, in the first trace's order; None if no step does.
        changed: the fields that differ, the whole trace's first.
    """

    a: str
    b: str
    steps: Mapping[str, int]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    same_order: bool
    first: str | None
    changed: tuple[FieldDiff, ...]

    @property
    def differs(self) -> bool:
        """Whether anything that was compared differs."""
        return bool(self.only_a or self.only_b or self.changed or not self.same_order)


Printed = Diff | TraceDiff
"""What `atlas diff --json` prints: of two models, or of two traces."""


def diff_traces(a: Path, b: Path) -> TraceDiff:
    """Compare two trace files.

    Raises:
        UsageError: a file cannot be read, or is not a trace.
    """
    (whole_a, steps_a), (whole_b, steps_b) = _read(a), _read(b)
    changed = _fields(None, whole_a, whole_b)
    by_step = {id: _fields(id, row, steps_b[id]) for id, row in steps_a.items() if id in steps_b}
    only_a = tuple(id for id in steps_a if id not in steps_b)
    only_b = tuple(id for id in steps_b if id not in steps_a)
    differing = {*only_a, *(id for id, fields in by_step.items() if fields)}
    return TraceDiff(
        a=str(a),
        b=str(b),
        steps={"a": len(steps_a), "b": len(steps_b)},
        only_a=only_a,
        only_b=only_b,
        same_order=[id for id in steps_a if id in steps_b] == [id for id in steps_b if id in steps_a],
        first=next((id for id in steps_a if id in differing), only_b[0] if only_b else None),
        changed=(*changed, *(field for fields in by_step.values() for field in fields)),
    )


def _fields(step: str | None, a: Mapping[str, Any], b: Mapping[str, Any]) -> list[FieldDiff]:
    left, right = dict(flat(a)), dict(flat(b))
    return [
        FieldDiff(step, name, left.get(name), right.get(name))
        for name in dict.fromkeys([*left, *right])
        if not same(left.get(name), right.get(name))
    ]


def _read(path: Path) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """(fields of the whole trace, id -> fields of a step) of a file."""
    hint = "write one with `atlas trace MODEL --json > FILE` or `atlas run … --trace-to FILE`"
    data = read_regular(path, most=MOST_BYTES, what="--trace")
    try:
        document = json.loads(data, object_pairs_hook=no_key_twice)
    except KeyTwice as error:
        raise UsageError(f"--trace {path}: the key {error.key[:80]!r} occurs twice in one object") from None
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise UsageError(f"--trace {path}: not JSON, so not a trace", hint=hint) from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--trace {path}: JSON that cannot be read: {beyond_limits(error)}") from None
    rows = document.get("steps") if isinstance(document, dict) else None
    if not isinstance(rows, list) or not rows:
        raise UsageError(f"--trace {path}: not a trace: it has no list of `steps`", hint=hint)
    steps: dict[str, dict[str, Any]] = {}
    for i, row in enumerate(rows):
        id = row.get("id") if isinstance(row, dict) else None
        if not isinstance(id, str):
            raise UsageError(f"--trace {path}: steps[{i}] is {shown(row)}, expected an object with an `id`")
        if id in steps:
            raise UsageError(f"--trace {path}: the step {id[:80]!r} occurs twice")
        steps[id] = {name: value for name, value in row.items() if name != "id"}
    ignored = {"steps", *NOT_COMPARED}
    return {name: value for name, value in document.items() if name not in ignored}, steps
