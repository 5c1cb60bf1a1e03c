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

from atlas import shapes
from atlas.errors import SpecError

_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}")


@dataclass(frozen=True)
class Template:
    """A tensor's name with placeholders for the indices in it.

    Raises:
        SpecError: braces that are no placeholder, or two placeholders with nothing between, which could not be matched.
    """

    text: str

    def __post_init__(self) -> None:
        rest = _PLACEHOLDER.sub("", self.text)
        if "{" in rest or "}" in rest or "}{" in self.text:
            raise SpecError(
                f"{self.text!r}: expected each placeholder as {{word}}, with something between two of them"
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
                # As checkpoints write them: no sign, no leading zero, ASCII digits.
                pattern += f"(?P<{piece}>0|[1-9][0-9]*)"
        return re.compile(pattern)

    def match(self, name: str) -> dict[str, int] | None:
        """The indices at which this template gives that name; None if it never does."""
        found = self._pattern.fullmatch(name)
        return {word: int(index) for word, index in found.groupdict().items()} if found else None


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
        raise SpecError(f"{text!r}: expected weights such as 'attention.wq', joined by '+', before '='")
    layout = shapes.parse(right.strip()) if equals else None
    stars = shapes.atoms(layout or ()).count(shapes.REST)
    if len(weights) > 1 and stars != 1:
        raise SpecError(
            f"{text!r}: {len(weights)} weights in one tensor need one '*' in the layout, found {stars}"
        )
    if len(weights) == 1 and stars:
        raise SpecError(f"{text!r}: '*' is for several weights in one tensor, and this is one")
    return Holding(weights, layout)
