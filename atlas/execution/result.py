"""What a run answers: plain data, with the names and in the order of `atlas run --json`."""

from __future__ import annotations

from dataclasses import dataclass

from atlas.tables import Tabular


@dataclass(frozen=True, slots=True)
class Logits:
    """The prompt's logits; `finite` says that none of them is NaN or infinite."""

    shape: tuple[int, ...]
    dtype: str
    finite: bool


@dataclass(frozen=True, slots=True)
class Seen:
    """The shape and dtype of a step's result."""

    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A step whose result was not what the description declares."""

    step: str
    declared: Seen
    observed: Seen


@dataclass(frozen=True, slots=True)
class Steps:
    """How many steps of the prompt's pass are declared, how many were observed, and those that differed."""

    declared: int
    observed: int
    mismatches: tuple[Mismatch, ...]


@dataclass(frozen=True, slots=True)
class NextToken:
    """A candidate for the token after the prompt; `text` is None where there is no tokenizer."""

    id: int
    text: str | None
    logit: float
    probability: float


@dataclass(frozen=True, slots=True)
class Generated:
    """The tokens after the prompt, which is not repeated; `text` is None where there is no tokenizer."""

    ids: tuple[int, ...]
    text: str | None


@dataclass(frozen=True, slots=True)
class Seconds:
    """Wall-clock seconds: until the weights are at hand, for the prompt's pass, for the tokens after it."""

    load: float
    prefill: float
    decode: float


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabular):
    """One run.

    Attributes:
        weights: `checkpoint` or `random`.
        source: the checkpoint's path; for random weights, how they were drawn.
        dtype: of weights and activations, a safetensors code.
        kernel: `scaled_dot_product_attention` where attention was fused, `as declared` where no step was.
        tokenizer: its path; without one `UTF-8 bytes`, or None where ids were given.
        confirmed: every component's output was observed, everything observed had the declared shape and dtype, and
            all logits are finite.
        peak_memory_bytes: the most memory the process has had resident; None where the system does not say.
        notes: what a reader has to know to read the figures right.
    """

    model: str
    weights: str
    source: str
    device: str
    dtype: str
    kernel: str
    tokenizer: str | None
    prompt_ids: tuple[int, ...]
    logits: Logits
    confirmed: bool
    steps: Steps
    next_tokens: tuple[NextToken, ...]
    generated: Generated
    seconds: Seconds
    peak_memory_bytes: int | None
    notes: tuple[str, ...]
