"""Settings that change the computation and are not described: which answers they leave open, in sentences for notes."""

from __future__ import annotations

from collections.abc import Iterable

from atlas.resolution.model import Gap, Model


def weights_gaps(model: Model) -> list[Gap]:
    """The settings because of which the weights' bytes are not known (a quantisation)."""
    return [gap for gap in model.gaps if "weights" in gap.affects]


def window(model: Model, command: str) -> int | None:
    """The longest context that the command can answer for; None where every context is."""
    lengths = [gap.within for gap in model.gaps if command in gap.affects and gap.within is not None]
    return min(lengths, default=None)


def window_notes(model: Model, command: str, context: int) -> list[str]:
    """A sentence for each setting that has no effect on contexts of this length, and has one on longer ones."""
    gaps = [gap for gap in model.gaps if command in gap.affects and gap.within is not None]
    return [f"{sentence(gap)}; a context of {context:,} is inside it and not affected." for gap in gaps]


def sentence(gap: Gap) -> str:
    """What is not described, with a capital and without a full stop."""
    return f"{gap.reason[0].upper()}{gap.reason[1:]}"


def reason(gaps: Iterable[Gap]) -> str | None:
    return "; ".join(gap.reason for gap in gaps) or None
