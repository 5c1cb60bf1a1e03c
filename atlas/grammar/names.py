"""Tensor names with placeholders, and which weights a stored tensor contains.

A template is a name with placeholders, `model.layers.{layer}.self_attn.q_proj.weight`. `expand` turns `layer=3` into a
name, and `match` turns the name back into `{"layer": 3}`.

A stored tensor contains one weight, or several concatenated along `*`:

    "attention.wq"                                  as the component declares it
    "attention.wq = (n_heads two pair) dim"         the same numbers, rows in another order
    "experts.w1 + experts.w3 = n_experts dim *"     two weights in one tensor, along the last axis
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property

from atlas.errors import SpecError
from atlas.grammar import shapes

MOST_PLACEHOLDERS = 8
"""Most placeholders in a tensor name: layer, expert and a few more."""

MOST_WEIGHTS = 64
"""Most weights in one tensor."""

_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}", re.ASCII)


@dataclass(frozen=True)
class Template:
    """A tensor's name with placeholders for the indices in it.

    Raises:
        SpecError: braces that are not a placeholder, too many placeholders, or two with only digits between them, so
            that a name could match in several ways.
    """

    text: str

    def __post_init__(self) -> None:
        pieces = _PLACEHOLDER.split(self.text)
        words, between = pieces[1::2], pieces[2:-1:2]
        if any("{" in piece or "}" in piece for piece in pieces[::2]) or not all(map(_separates, between)):
            raise SpecError(
                f"{_short(self.text)}: expected each placeholder as {{word}}, with something between two of them "
                "that is not only digits"
            )
        if len(words) > MOST_PLACEHOLDERS:
            raise SpecError(
                f"{_short(self.text)}: {len(words):,} placeholders, expected at most {MOST_PLACEHOLDERS}"
            )

    @cached_property
    def placeholders(self) -> tuple[str, ...]:
        """The placeholders in order."""
        return tuple(_PLACEHOLDER.findall(self.text))

    def expand(self, **indices: int) -> str:
        """The name at these indices."""
        return self.text.format_map(indices)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        pieces = _PLACEHOLDER.split(self.text)
        seen: set[str] = set()
        pattern = ""
        for i, piece in enumerate(pieces):
            if i % 2 == 0:
                pattern += re.escape(piece)
            elif piece in seen:
                pattern += f"(?P={piece})"
            else:
                seen.add(piece)
                # An index in a checkpoint has no sign and no leading zero; the length is bounded.
                pattern += f"(?P<{piece}>0|[1-9][0-9]{{0,17}})"
        return re.compile(pattern)

    def match(self, name: str) -> dict[str, int] | None:
        """The indices at which this template expands to the name; None if there are none."""
        found = self._pattern.fullmatch(name)
        return {word: int(index) for word, index in found.groupdict().items()} if found else None


def _separates(between: str) -> bool:
    """Whether the text between two placeholders separates their digits."""
    return re.search(r"[^0-9]", between) is not None


def _short(text: str) -> str:
    """The repr of a text, shortened for a message."""
    return repr(text if len(text) <= 80 else f"{text[:77]}...")


@dataclass(frozen=True)
class Holding:
    """The weights in a stored tensor, and their layout if it differs from the declared one."""

    weights: tuple[str, ...]
    layout: shapes.Shape | None

    @property
    def packed_along(self) -> int | None:
        """The dimension along which several weights are concatenated; None if there is one weight."""
        if self.layout is None or len(self.weights) == 1:
            return None
        return next(i for i, group in enumerate(self.layout) if shapes.REST in group)


@cache
def holding(text: str) -> Holding:
    """Parse the right-hand side of a row in a convention's table.

    Raises:
        SpecError: there is no weight, or there are several without a `*` for the dimension they are concatenated along.
    """
    left, equals, right = text.partition("=")
    weights = tuple(word.strip() for word in left.split("+"))
    if not all(re.fullmatch(r"\w+(\.\w+)+", word) for word in weights):
        raise SpecError(f"{_short(text)}: expected weights such as 'attention.wq', joined by '+', before '='")
    if len(weights) > MOST_WEIGHTS:
        raise SpecError(
            f"{_short(text)}: {len(weights):,} weights in one tensor, expected at most {MOST_WEIGHTS}"
        )
    layout = shapes.parse(right.strip()) if equals else None
    stars = shapes.atoms(layout or ()).count(shapes.REST)
    if len(weights) > 1 and stars != 1:
        raise SpecError(
            f"{_short(text)}: {len(weights)} weights in one tensor need one '*' in the layout, found {stars}"
        )
    if len(weights) == 1 and stars:
        raise SpecError(f"{_short(text)}: '*' is for several weights in one tensor, and this is one")
    return Holding(weights, layout)
