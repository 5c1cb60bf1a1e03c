"""Reads RoPE settings: the forms of scaling, and the parameters of each.

RoPE changes no tensor's shape, so a fault here never prevents counting: it becomes a gap, and the commands that need the
frequencies refuse. What each form computes is in `atlas.execution.rope_forms`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeGuard

from atlas.errors import shown
from atlas.resolution.model import Gap, Scalar

ORIGINAL = "original_max_position_embeddings"
LONGEST = "max_position_embeddings"


class Form(NamedTuple):
    """The parameters of a form of scaling.

    Attributes:
        required: numbers that it needs.
        optional: numbers that it may state.
        lists: lists of numbers that it needs, one number for each plane.
        context: the lengths it needs, which may be stated outside the table.
    """

    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    context: tuple[str, ...] = ()


FORMS: Mapping[str, Form] = {
    "default": Form(),
    "linear": Form(("factor",)),
    "dynamic": Form(("factor",), context=(LONGEST,)),
    "yarn": Form(
        optional=(
            "factor",
            "attention_factor",
            "beta_fast",
            "beta_slow",
            "mscale",
            "mscale_all_dim",
            "truncate",
        ),
        context=(ORIGINAL, LONGEST),
    ),
    "longrope": Form(
        (), ("factor", "attention_factor"), lists=("long_factor", "short_factor"), context=(ORIGINAL, LONGEST)
    ),
    "llama3": Form(("factor", "low_freq_factor", "high_freq_factor", ORIGINAL)),
    "proportional": Form(optional=("factor", "partial_rotary_factor")),
}
"""The forms of transformers' ROPE_INIT_FUNCTIONS."""

OTHER_NAMES = {"su": "longrope", "mrope": "default"}
"""Names of the same computation: Microsoft's for LongRoPE, and that of vision models, whose text positions are as usual."""

_SHARE = "partial_rotary_factor"
_NO_PARAMETERS = frozenset({"rope_theta", "rope_type", "type", "mrope_section", "mrope_interleaved"})
PARAMETERS = frozenset(
    name
    for form in FORMS.values()
    for name in (*form.required, *form.optional, *form.lists, *form.context)
    if name != _SHARE
)
"""The parameters of all forms. One that a form does not have is ignored in it."""

MOST_PLANES = 4_096
"""Most entries of a list of factors."""

OTHER_STEPS = frozenset({"trace", "explain", "run"})
"""Commands that a form with other steps affects."""

FREQUENCIES = frozenset({"explain", "run"})
"""Commands that the values of the frequencies affect."""

META_SCALED: dict[str, Scalar] = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
"""What Meta's reference code does for every model with use_scaled_rope (cite: rope-scaling)."""


@dataclass
class Rope:
    """The RoPE settings of one key, `rope_scaling` or transformers 5's `rope_parameters`.

    Attributes:
        theta: the base, if the key states one.
        scaling: the parameters of the scaling; empty if there is none.
        gaps: what is not described.
        faults: what is missing or not a valid value; a command that needs it refuses.
        others: further fields: `partial_rotary_factor`, and unknown ones.
        described: whether all fields of the form are known.
    """

    theta: float | None = None
    scaling: dict[str, Scalar] = field(default_factory=dict)
    gaps: list[Gap] = field(default_factory=list)
    faults: list[Gap] = field(default_factory=list)
    others: dict[str, Any] = field(default_factory=dict)
    described: bool = True


def read(key: str, value: object, *, longest: int | None = None, original: float | None = None) -> Rope:
    """The RoPE settings that a key states. `false` means the same as null.

    Args:
        longest: the model's context length, for forms that need it.
        original: the context length before it was extended, where a key outside the settings states it.
    """
    found = Rope()
    if value is None or value is False or value == {}:
        return found
    if not isinstance(value, Mapping):
        found.faults.append(Gap(f"the key {key} is {shown(value)}, expected a table or null", OTHER_STEPS))
        return found
    theta = value.get("rope_theta")
    if positive(theta):
        found.theta = float(theta)
    elif theta is not None:
        found.faults.append(
            Gap(f"the key {key}.rope_theta is {shown(theta)}, expected a positive number", FREQUENCIES)
        )
    kinds = sorted({name_of(value[word]) for word in ("rope_type", "type") if value.get(word) is not None})
    kind = kinds[0] if kinds else "default"
    form = FORMS.get(kind)
    own = (
        frozenset()
        if form is None
        else frozenset((*form.required, *form.optional, *form.lists, *form.context))
    )
    found.others = {
        name: item
        for name, item in value.items()
        if name not in _NO_PARAMETERS | own | PARAMETERS and item is not None
    }
    if any(isinstance(each, Mapping) for each in value.values()):
        found.gaps.append(
            Gap(f"RoPE differs from layer to layer ({key}), which is not described", OTHER_STEPS)
        )
        found.described = False
    elif len(kinds) > 1:
        found.faults.append(Gap(f"the key {key} states two types, {' and '.join(kinds)}", OTHER_STEPS))
    elif form is None:
        found.gaps.append(
            Gap(f"RoPE is scaled in the form {kind!r} ({key}), which is not described", OTHER_STEPS)
        )
        found.described = False
    elif kind != "default":
        lengths = {LONGEST: longest, ORIGINAL: original or longest}
        _parameters(found, key, kind, form, value, lengths)
    return found


def _parameters(
    found: Rope,
    key: str,
    kind: str,
    form: Form,
    value: Mapping[str, Any],
    lengths: Mapping[str, float | None],
) -> None:
    """Read the parameters of a form; what it needs and is not a valid value becomes a fault."""
    found.scaling = {"rope_type": kind}

    def fault(name: str, expected: str, needed: bool = True) -> None:
        item = value.get(name)
        problem = "is missing" if item is None else f"is {shown(item)}"
        why = f": the {kind} form needs it" if needed else ""
        found.faults.append(Gap(f"the key {key}.{name} {problem}, expected {expected}{why}", FREQUENCIES))

    for name in (*form.required, *form.context):
        number = value.get(name)
        if number is None and name in form.context:
            number = lengths[name]
        if positive(number):
            found.scaling[name] = number
        else:
            fault(name, "a positive number")
    for name in form.optional:
        item = value.get(name)
        if (
            (name == "truncate" and isinstance(item, bool))
            or positive(item)
            or (item == 0 and item is not False and name in ("mscale", "mscale_all_dim"))
        ):
            found.scaling[name] = item
        elif item is not None:
            fault(name, "a positive number", needed=False)
    for name in form.lists:
        items = value.get(name)
        if isinstance(items, list) and 0 < len(items) <= MOST_PLANES and all(map(positive, items)):
            found.scaling[name] = " ".join(f"{float(item)!r}" for item in items)
        else:
            fault(name, f"a list of at most {MOST_PLANES:,} positive numbers")


def name_of(kind: object) -> str:
    """A form's name: the same one for forms with the same computation."""
    text = str(kind)[:40]
    return OTHER_NAMES.get(text, text)


def score_scale(scaling: Mapping[str, Scalar]) -> float:
    """By how much a model that uses yarn's `mscale_all_dim` scales its scores, once for queries and once for keys.

    It is 0.1 · mscale_all_dim · ln(factor) + 1 (Peng et al., 2023); 1 where the settings do not state both.
    """
    factor, share = scaling.get("factor"), scaling.get("mscale_all_dim")
    if not (isinstance(factor, int | float) and isinstance(share, int | float)) or factor <= 1:
        return 1.0
    return 0.1 * share * math.log(factor) + 1.0


def positive(number: object) -> TypeGuard[float]:
    """Whether a value is a positive number that a double can represent."""
    return (
        isinstance(number, int | float) and not isinstance(number, bool) and 0 < number <= sys.float_info.max
    )
