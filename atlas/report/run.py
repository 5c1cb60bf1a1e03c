"""`atlas run` for reading. The result's classes need no torch."""

from __future__ import annotations

from atlas.execution.result import Result
from atlas.report import console
from atlas.report.plain import gibibytes


def show(result: Result) -> None:
    """What ran, what of it was confirmed, the likeliest next tokens, and last the generated text as it stands."""
    console.line(f"{result.model} on {result.device} in {result.dtype}, attention {result.kernel}")
    console.line(f"weights    {result.weights}: {result.source}")
    ids = ", ".join(map(str, result.prompt_ids[:12])) + (", …" if len(result.prompt_ids) > 12 else "")
    cut = f", cut by {result.tokenizer}" if result.tokenizer else ""
    console.line(
        f"prompt     {len(result.prompt_ids):,} {'id' if len(result.prompt_ids) == 1 else 'ids'}{cut}: {ids}"
    )
    finite = "finite" if result.logits.finite else "NOT FINITE"
    console.line(f"logits     [{', '.join(map(str, result.logits.shape))}] {result.logits.dtype}, {finite}")
    seen = f"{result.steps.observed:,} of {result.steps.declared:,} declared steps observed"
    if result.confirmed:
        console.line(f"confirmed  {seen}, every one with the declared shape and dtype")
    else:
        console.line(f"NOT CONFIRMED: {seen}, {len(result.steps.mismatches):,} not as declared")
        if not result.logits.finite:
            console.note(
                "`atlas verify --deep` names the weights with values that are no finite numbers, if it is they"
            )
    for wrong in result.steps.mismatches:
        declared = f"{list(wrong.declared.shape)} {wrong.declared.dtype}"
        console.line(
            f"           {wrong.step}: declared {declared}, observed {list(wrong.observed.shape)} {wrong.observed.dtype}"
        )
    if result.next_tokens:
        rows = [
            [
                str(token.id),
                "" if token.text is None else repr(token.text),
                f"{token.logit:.4f}",
                f"{token.probability:.4f}",
            ]
            for token in result.next_tokens
        ]
        console.line()
        console.out(console.table(["next id", "text", "logit", "probability"], rows, right=[0, 2, 3]))
    spent = result.seconds
    peak = "" if result.peak_memory_bytes is None else f"; peak memory {gibibytes(result.peak_memory_bytes)}"
    console.line()
    console.line(
        f"seconds    load {spent.load:.2f}, prefill {spent.prefill:.2f}, decode {spent.decode:.2f}{peak}"
    )
    if result.generated.ids:
        text = result.generated.text
        console.line(f"generated  {len(result.generated.ids):,} tokens")
        console.line()
        console.write(", ".join(map(str, result.generated.ids)) if text is None else text)
