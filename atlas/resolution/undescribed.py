"""What a configuration states beyond the description: values that are not described, and keys that are unknown.

Whether such a setting changes the computation cannot be ruled out, so a comparison of two models has to show it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from atlas import spec
from atlas.resolution import rope

_ROPE_TYPE = ("rope_type", "type")
_PARTIAL = "partial_rotary_factor"


def is_described(value: Any, described: Sequence[object]) -> bool:
    """Whether a value is one of the described ones, or a list of nothing else (`layer_types`)."""
    items = value if isinstance(value, list) and value and value not in described else [value]
    return all(any(_same(item, option) for option in described) for item in items)


def _same(value: object, option: object) -> bool:
    return value == option and isinstance(value, bool) == isinstance(option, bool)


def rope_beyond(key: str, value: Any, config: Mapping[str, Any], table: spec.Config) -> dict[str, Any]:
    """The RoPE settings of a key that are not described.

    They are named alike however the configuration spells them (`rope_scaling` or `rope_parameters`, `type` or `rope_type`):
    `rope.rope_type`, `rope.factor`.
    """
    if not isinstance(value, Mapping):
        return {"rope": value} if value else {}
    stated = {field: item for field, item in value.items() if item is not None}
    kinds = list(dict.fromkeys(rope.name_of(stated.pop(word)) for word in _ROPE_TYPE if word in stated))
    kind = "default" if not kinds else " and ".join(kinds)
    found: dict[str, Any] = {}
    theta = stated.pop("rope_theta", None)
    thetas = [config.get(name) for name, means in table.used.items() if means == "rope_theta"]
    if theta is not None and any(other is not None and other != theta for other in thetas):
        found[f"{key}.rope_theta"] = theta
    partial = stated.pop(_PARTIAL, None)
    if _PARTIAL not in table.used and partial is not None and not (rope.positive(partial) and partial == 1):
        found[_PARTIAL] = partial
    nested = any(isinstance(item, Mapping) for item in stated.values())
    form = rope.FORMS.get(kind)
    if nested or form is None or any(not rope.positive(stated.get(field)) for field in form.required):
        found["rope.rope_type"] = kind
    else:  # the parameters of other forms have no effect
        stated = {field: item for field, item in stated.items() if field not in rope.PARAMETERS}
    return found | {f"rope.{field}": item for field, item in stated.items()}
