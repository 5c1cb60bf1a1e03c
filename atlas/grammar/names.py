"""The names a checkpoint gives its tensors, and what each tensor holds.

A template is a name with placeholders, `model.layers.{layer}.self_attn.q_proj.weight`. It expands forwards,
`layer=3` to a name, and matches backwards, a name to `{"layer": 3}`, and the two are each other's inverse.

What a tensor holds is one weight, or several that lie side by side along `*`:

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
"""Of a tensor's name: layer, expert and a few more."""

MOST_WEIGHTS = 64
"""Side by side in one tensor."""

_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}", re.ASCII)


@dataclass(frozen=True)
class Template:
    """A tensor's name with placeholders for the indices in it.

    Raises:
        SpecError: braces that are no placeholder, too many of them, or two with nothing but digits between: then a name
            could be matched in several ways, and looking for one would take for ever.
    """

    text: str

    def __post_init__(self) -> None:
        pieces = _PLACEHOLDER.split(self.text)
        words, between = pieces[1::2], pieces[2:-1:2]
        if any("{" in piece or "}" in piece for piece in pieces[::2]) or not all(map(_parts, between)):
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
        """The placeholders' words in order."""
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
                # As checkpoints write them: no sign, no leading zero, ASCII digits; and not thousands of them.
                pattern += f"(?P<{piece}>0|[1-9][0-9]{{0,17}})"
        return re.compile(pattern)

    def match(self, name: str) -> dict[str, int] | None:
        """The indices at which this template gives that name; None if it never does."""
        found = self._pattern.fullmatch(name)
        return {word: int(index) for word, index in found.groupdict().items()} if found else None


def _parts(between: str) -> bool:
    """Whether a text between two placeholders parts their digits."""
    return re.search(r"[^0-9]", between) is not None


def _short(text: str) -> str:
    """A text in a message: as Python writes it, and never long."""
    return repr(text if len(text) <= 80 else f"{text[:77]}...")


@dataclass(frozen=True)
class Holding:
    """What a tensor holds: the weights in it and how they lie."""

    weights: tuple[str, ...]
    layout: shapes.Shape | None

    @property
    def packed_along(self) -> int | None:
        """The dimension along which several weights lie side by side; None where the tensor is one weight."""
        if self.layout is None or len(self.weights) == 1:
            return None
        return next(i for i, group in enumerate(self.layout) if shapes.REST in group)


@cache
def holding(text: str) -> Holding:
    """Parse a right-hand side of a convention's table.

    Raises:
        SpecError: no weight, or several without the `*` that says where they lie.
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
