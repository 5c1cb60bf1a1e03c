"""What a run is asked: the options of `atlas run`, checked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from atlas.errors import UsageError, shown

MOST_TOKENS = 2**31 - 1
"""To generate; far beyond any text, and within what torch counts in."""


@dataclass(frozen=True, slots=True)
class Options:
    """What to run, with which weights, where, and what to say of it.

    Attributes:
        prompt: text; the empty text is the BOS token alone.
        token_ids: the prompt as ids, in place of text.
        weights: a checkpoint's folder, one of its files or its index; None for seeded random weights.
        tokenizer: a tokenizer.json; None for the one beside the weights, if there is one.
        device: `auto`, `cpu`, `cuda` or `mps`.
        dtype: of weights and activations, a code or torch's name; None for the stored one.
        temperature: 0 always takes the likeliest token.
        top_k: the likeliest tokens that are sampled from; None for all.
        seed: of random weights and of sampling.
        special: whether special tokens stay in decoded text.
        show: how many next tokens are listed.
        trace: observe every declared step of the prompt's pass, each executed as it is written.
    """

    prompt: str = ""
    token_ids: tuple[int, ...] | None = None
    weights: Path | None = None
    tokenizer: Path | None = None
    device: str = "auto"
    dtype: str | None = None
    max_new_tokens: int = 0
    temperature: float = 0.0
    top_k: int | None = None
    seed: int = 0
    special: bool = False
    show: int = 5
    trace: bool = False

    def check(self) -> None:
        """Refuse what is out of range.

        Raises:
            UsageError: naming the option.
        """
        ranges = {
            "max-new-tokens": (self.max_new_tokens, 0, MOST_TOKENS),
            "show": (self.show, 0, None),
            "top-k": (self.top_k, 1, None),
            "seed": (self.seed, 0, 2**63 - 1),
        }
        for option, (value, least, most) in ranges.items():
            if value is not None and not (least <= value and (most is None or value <= most)):
                bounds = f"{least} or more" if most is None else f"an integer from {least} to {most:,}"
                raise UsageError(f"--{option} is {shown(value)}, expected {bounds}")
        if not 0 <= self.temperature < math.inf:
            raise UsageError(f"--temperature is {self.temperature}, expected 0 or a positive number")
        if self.token_ids is not None and self.prompt:
            raise UsageError("--prompt and --token-ids are both given", hint="give one of them")
        if any("\ud800" <= char <= "\udfff" for char in self.prompt):
            raise UsageError("--prompt is not UTF-8", hint="give its ids with --token-ids")
