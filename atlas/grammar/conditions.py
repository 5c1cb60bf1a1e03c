"""Conditions in a description: whether an optional weight, step, node, layer rule or note applies.

"bias"                    the value is set: not false, 0 or "off"
"not bias"                it is not set
"tied=false"              the value equals this one; numbers compare as numbers
"scale!=1"                the value differs
"bias and qk_norm=head"   all of them are met
"""

from __future__ import annotations

from collections.abc import Mapping

from atlas.errors import SpecError

MOST_TERMS = 8
"""Most terms of one condition."""


class ConditionFault(SpecError):
    """A condition that cannot be evaluated; the message does not say where it is."""


Values = Mapping[str, bool | int | float | str]


def holds(when: str | None, values: Values) -> bool:
    """Whether the condition is met. None is always met.

    Raises:
        ConditionFault: it uses a name that has no value, or has too many terms.
    """
    if when is None:
        return True
    terms = when.split(" and ")
    if len(terms) > MOST_TERMS:
        raise ConditionFault(f"when = {when[:80]!r}: {len(terms):,} terms, expected at most {MOST_TERMS}")
    return all(_is_met(term.strip(), when, values) for term in terms)


def names(when: str | None) -> set[str]:
    """The names that a condition reads."""
    terms = [] if when is None else [term.strip().removeprefix("not ") for term in when.split(" and ")]
    return {term.partition("=")[0].removesuffix("!").strip() for term in terms}


def _is_met(term: str, when: str, values: Values) -> bool:
    negated = term.startswith("not ")
    name, equals, word = term.removeprefix("not ").partition("=")
    differs = name.endswith("!")
    name = name.removesuffix("!").strip()
    if name not in values:
        raise ConditionFault(f"when = {when[:80]!r}: nothing is called {name[:80]!r}")
    value = values[name]
    met = value not in (0, False, "off") if not equals else _equals(value, word.strip())
    return met != (negated or differs)


def _equals(value: bool | int | float | str, word: str) -> bool:
    if isinstance(value, bool):
        return str(value).lower() == word
    if isinstance(value, int | float):
        try:
            return value == float(word)
        except ValueError:
            return False
    return value == word
