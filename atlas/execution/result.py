"""The result of a run: plain data, with the names and the order of `atlas run --json`."""

from __future__ import annotations

from dataclasses import dataclass

from atlas.tables import Tabular


@dataclass(frozen=True, slots=True)
class Logits:
    """The prompt's logits; `finite` is whether none of them is NaN or infinite."""

    shape: tuple[int, ...]
    dtype: str
    finite: bool


@dataclass(frozen=True, slots=True)
class TensorType:
    """The shape and dtype of a step's result."""

    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A step whose result has another shape or dtype than the description declares."""

    step: str
    declared: TensorType
    observed: TensorType


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of the prompt's pass.

    Attributes:
        declared: how many the description has.
        observed: how many of them were observed.
        mismatches: those with another shape or dtype than declared.
        not_finite: the observed steps whose result has a NaN or an infinite value, in execution order: the first one is
            where it arose. The minus infinity of masked scores is not counted.
        not_observed: those computed inside a fused call.
    """

    declared: int
    observed: int
    mismatches: tuple[Mismatch, ...]
    not_finite: tuple[str, ...]
    not_observed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PromptToken:
    """A token of the prompt; `text` is the vocabulary's spelling, None without a tokenizer."""

    id: int
    text: str | None


@dataclass(frozen=True, slots=True)
class NextToken:
    """A candidate for the token after the prompt; `text` is None without a tokenizer."""

    id: int
    text: str | None
    logit: float
    probability: float


@dataclass(frozen=True, slots=True)
class Generated:
    """The tokens after the prompt, which is not repeated; `text` is None without a tokenizer."""

    ids: tuple[int, ...]
    text: str | None


@dataclass(frozen=True, slots=True)
class Seconds:
    """Wall-clock seconds: loading weights and tokenizer, the prompt's pass, and the passes of the tokens after it."""

    load: float
    prefill: float
    decode: float


@dataclass(frozen=True, slots=True)
class Rates:
    """Tokens per second; None where there was no such pass."""

    prefill: float | None
    decode: float | None


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabular):
    """One run.

    Attributes:
        weights: `checkpoint` or `random`.
        source: the checkpoint's path; for random weights, the seed.
        dtype: of weights and activations, a safetensors code.
        kernel: `scaled_dot_product_attention` where attention was fused, `as declared` where no step was.
        tokenizer: path of the tokenizer that tokenized the prompt; `UTF-8 bytes` without one; None where ids were given.
        prompt_tokens: the prompt's tokens, if asked for.
        confirmed: every component's output was observed, everything observed had the declared shape and dtype and only
            finite values, and all logits are finite.
        decode_passes: forward passes after the prompt's; the last generated token needs none.
        peak_memory_bytes: the peak resident memory of the process; None where the system does not report it.
        warnings: what may be wrong with the checkpoint.
        notes: what a reader needs to know to read the figures correctly.
    """

    model: str
    weights: str
    source: str
    device: str
    dtype: str
    kernel: str
    tokenizer: str | None
    prompt_ids: tuple[int, ...]
    prompt_tokens: tuple[PromptToken, ...] | None
    logits: Logits
    confirmed: bool
    steps: Steps
    next_tokens: tuple[NextToken, ...]
    generated: Generated
    seconds: Seconds
    decode_passes: int
    tokens_per_second: Rates
    peak_memory_bytes: int | None
    warnings: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of several prompts, in their order."""

    runs: tuple[Result, ...]


Printed = Result | Runs
"""What `atlas run --json` prints."""


@dataclass(frozen=True, slots=True)
class ObservedStep:
    """An observed step and a summary of its values; a figure is None where it is not finite.

    Attributes:
        finite: no value is NaN or infinite, apart from the minus infinity of masked scores.
        mean: of the finite values; None for integers and where there is no finite value.
        rms: the root of the mean square of the finite values; None as `mean`.
    """

    id: str
    shape: tuple[int, ...]
    dtype: str
    finite: bool
    min: float | None
    max: float | None
    mean: float | None
    rms: float | None


@dataclass(frozen=True, slots=True)
class ObservedTrace:
    """What `--trace-to` writes: the observed steps of the prompt's pass, in execution order."""

    model: str
    weights: str
    source: str
    device: str
    dtype: str
    kernel: str
    prompt_ids: tuple[int, ...]
    steps: tuple[ObservedStep, ...]
    not_observed: tuple[str, ...]
