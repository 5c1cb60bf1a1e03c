"""`atlas run` for reading. The result's classes need no torch."""

from __future__ import annotations

import re
from collections.abc import Iterable
from types import TracebackType

from atlas.execution.result import Result, Steps
from atlas.report import console
from atlas.report.plain import gibibytes

MOST_LISTED = 12
"""Token ids of the prompt on one line."""


class TextOutput:
    """Generated text on stdout as it is decoded; ended by a newline, also where the run fails."""

    def __init__(self) -> None:
        self._open = False

    def __enter__(self) -> TextOutput:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not isinstance(error, console.ReaderGoneError | console.OutputError):
            self.end()

    def write(self, text: str) -> None:
        self._open = True
        console.write(text, end="")
        console.flush()

    def end(self) -> None:
        """End the line, if there was any text since the last call."""
        if self._open:
            self._open = False
            console.write("")


def show(result: Result, *, first: bool) -> None:
    """What was run, what of it was confirmed, and the likeliest next tokens. The generated text comes before this.

    Args:
        first: whether nothing has been printed so far.
    """
    if not first:
        console.line()
    console.line(f"{result.model} on {result.device} in {result.dtype}, attention {result.kernel}")
    console.line(f"weights    {result.weights}: {result.source}")
    ids = ", ".join(map(str, result.prompt_ids[:MOST_LISTED]))
    more = ", …" if len(result.prompt_ids) > MOST_LISTED else ""
    count = f"{len(result.prompt_ids):,} {'token' if len(result.prompt_ids) == 1 else 'tokens'}"
    by = f"tokenized with {result.tokenizer}" if result.tokenizer else "given as ids"
    console.line(f"prompt     {count}, {by}: {ids}{more}")
    finite = "finite" if result.logits.finite else "NOT FINITE"
    console.line(f"logits     [{', '.join(map(str, result.logits.shape))}] {result.logits.dtype}, {finite}")
    _show_steps(result)
    if result.prompt_tokens is not None:
        rows = [[str(token.id), _quoted(token.text)] for token in result.prompt_tokens]
        console.line()
        console.out(console.table(["prompt id", "token"], rows, right=[0]))
    if result.next_tokens:
        rows = [
            [str(token.id), _quoted(token.text), f"{token.logit:.4f}", f"{token.probability:.4f}"]
            for token in result.next_tokens
        ]
        console.line()
        console.out(console.table(["next id", "text", "logit", "probability"], rows, right=[0, 2, 3]))
    spent, rates = result.seconds, result.tokens_per_second
    peak = "" if result.peak_memory_bytes is None else f"; peak memory {gibibytes(result.peak_memory_bytes)}"
    console.line()
    console.line(
        f"seconds    load {spent.load:.2f}, prefill {spent.prefill:.2f}{_rate(rates.prefill)}, "
        f"decode {spent.decode:.2f}{_rate(rates.decode)}{peak}"
    )
    if result.generated.ids:
        passes = f"{result.decode_passes:,} passes after the prompt's"
        console.line(f"generated  {len(result.generated.ids):,} tokens, {passes}")


def _show_steps(result: Result) -> None:
    steps = result.steps
    seen = f"{steps.observed:,} of {steps.declared:,} declared steps observed"
    if result.confirmed:
        console.line(f"confirmed  {seen}, each with the declared shape and dtype and finite values")
    else:
        wrong = [
            f"{len(steps.mismatches):,} not as declared" if steps.mismatches else "",
            f"{len(steps.not_finite):,} with NaN or infinite values" if steps.not_finite else "",
            "" if result.logits.finite else "the logits are not finite",
        ]
        console.line(
            f"NOT CONFIRMED: {seen}; {', '.join(filter(None, wrong)) or 'a component was not observed'}"
        )
    if steps.not_finite:
        console.line(f"           {steps.not_finite[0]} is the first step with a NaN or infinite value")
        console.note("`atlas verify --deep` lists the weights that are NaN or infinite, if any are")
    for wrong_step in steps.mismatches:
        declared = f"{list(wrong_step.declared.shape)} {wrong_step.declared.dtype}"
        observed = f"{list(wrong_step.observed.shape)} {wrong_step.observed.dtype}"
        console.line(f"           {wrong_step.step}: declared {declared}, observed {observed}")
    if steps.not_observed:
        console.line(f"unobserved {_unobserved(steps)}")


def _unobserved(steps: Steps) -> str:
    """The steps that were not observed, by name, and how to observe them."""
    names = _without_layers(steps.not_observed)
    layers = max(names.values())
    where = f" of {layers:,} layers" if layers > 1 else ""
    return f"{', '.join(names)}{where}: inside the fused attention call; --trace observes them too"


def _without_layers(steps: Iterable[str]) -> dict[str, int]:
    """Step ids without their layer -> in how many layers each is."""
    names: dict[str, int] = {}
    for step in steps:
        name = re.sub(r"^\w+\.\d+\.", "", step)
        names[name] = names.get(name, 0) + 1
    return names


def _quoted(text: str | None) -> str:
    return "" if text is None else repr(text)


def _rate(rate: float | None) -> str:
    return "" if rate is None else f" ({rate:,.1f} tokens/s)"
