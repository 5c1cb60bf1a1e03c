"""The options of a run, checked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from atlas.errors import UsageError, shown
from atlas.units import require_integer

DEFAULT_MODEL = "llama3.1-8b"
"""The model of a run that names none."""

MOST_TOKENS = 2**31 - 1
"""To generate; far more than any text has, and within torch's integers."""


@dataclass(frozen=True, slots=True)
class Options:
    """What to run, with which weights, on which device, and what to report.

    Attributes:
        prompt: text; the empty text is the BOS token alone.
        token_ids: the prompt as ids, in place of text.
        weights: a checkpoint's folder, one of its files or its index; None for seeded random weights.
        tokenizer: a tokenizer.json; None for the one next to the weights, if there is one.
        bos: whether the prompt begins with BOS; None for what the tokenizer itself does.
        device: `auto`, `cpu`, `cuda` or `mps`.
        dtype: of weights and activations, a code or torch's name; None for the stored one.
        temperature: 0 always takes the likeliest token.
        top_k: how many of the likeliest tokens are sampled from; None for all.
        top_p: the likeliest tokens whose probabilities sum to this are sampled from; None for all.
        seed: of random weights and of sampling.
        special: whether decoded text includes special tokens.
        show: how many next tokens are listed.
        show_prompt: whether the result lists the prompt's tokens.
        trace: execute every step of the prompt's pass as declared, and observe each.
    """

    prompt: str = ""
    token_ids: tuple[int, ...] | None = None
    weights: Path | None = None
    tokenizer: Path | None = None
    bos: bool | None = None
    device: str = "auto"
    dtype: str | None = None
    max_new_tokens: int = 0
    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 0
    special: bool = False
    show: int = 5
    show_prompt: bool = False
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
            if value is not None:
                require_integer(value, f"--{option}")
            if value is not None and not (least <= value and (most is None or value <= most)):
                bounds = f"{least} or more" if most is None else f"an integer from {least} to {most:,}"
                raise UsageError(f"--{option} is {shown(value)}, expected {bounds}")
        if not 0 <= self.temperature < math.inf:
            raise UsageError(f"--temperature is {self.temperature}, expected 0 or a positive number")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise UsageError(f"--top-p is {self.top_p}, expected a number above 0 and at most 1")
        if self.token_ids is not None and self.prompt:
            raise UsageError("--prompt and --token-ids are both given", hint="give one of them")
        if self.token_ids is not None and self.bos is not None:
            raise UsageError(
                f"--token-ids are used as they are: {'--bos' if self.bos else '--no-bos'} applies to text only",
                hint="put the id of BOS into --token-ids, or leave it out",
            )
        require_utf8(self.prompt)


def require_utf8(prompt: str) -> None:
    """Refuse a prompt with half of a surrogate pair, which is how Python reads an argument that is not UTF-8.

    Raises:
        UsageError: naming the option.
    """
    if any("\ud800" <= char <= "\udfff" for char in prompt):
        raise UsageError("--prompt is not UTF-8", hint="give its ids with --token-ids")
