"""`atlas run`: a real forward pass, and the tokens after it."""

from __future__ import annotations

import os
import re
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atlas.cli.options import Json, Specs, library_of
from atlas.errors import UsageError, shown
from atlas.execution.options import DEFAULT_MODEL
from atlas.report import console

if TYPE_CHECKING:
    from collections.abc import Iterable

    from atlas.execution.result import ObservedTrace, Result
    from atlas.report.run import TextOutput


def register(app: typer.Typer) -> None:
    app.command("run")(run)


def run(
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="MODEL", help=f"A model, or a checkpoint's folder; {DEFAULT_MODEL} where none is given."
        ),
    ] = None,
    prompt: Annotated[
        list[str] | None,
        typer.Option(
            "--prompt",
            metavar="TEXT",
            help="The empty text is the BOS token alone. Repeatable: one run for each.",
        ),
    ] = None,
    prompt_file: Annotated[
        Path | None, typer.Option("--prompt-file", metavar="F", help="Read the prompt from a file.")
    ] = None,
    token_ids: Annotated[
        str | None, typer.Option("--token-ids", metavar="1,2,3", help="The prompt as token ids.")
    ] = None,
    repo: Annotated[
        str | None,
        typer.Option("--repo", metavar="ID", help="Weights of this Hub repository, downloaded if needed."),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option("--weights", metavar="PATH|random", help="A checkpoint, or seeded random weights."),
    ] = None,
    tokenizer: Annotated[
        Path | None, typer.Option("--tokenizer", metavar="PATH", help="A tokenizer.json.")
    ] = None,
    bos: Annotated[
        bool | None,
        typer.Option(
            "--bos/--no-bos", help="Whether the prompt begins with BOS; by default as the tokenizer does."
        ),
    ] = None,
    device: Annotated[str, typer.Option("--device", metavar="D", help="auto, cpu, cuda or mps.")] = "auto",
    dtype: Annotated[
        str | None,
        typer.Option("--dtype", metavar="D", help="Of weights and activations; the stored one by default."),
    ] = None,
    max_new_tokens: Annotated[
        int, typer.Option("--max-new-tokens", metavar="N", help="Tokens to generate.")
    ] = 0,
    temperature: Annotated[
        float, typer.Option("--temperature", metavar="T", help="0 always takes the likeliest token.")
    ] = 0.0,
    top_k: Annotated[
        int | None, typer.Option("--top-k", metavar="K", help="Sample from the K likeliest tokens only.")
    ] = None,
    top_p: Annotated[
        float | None,
        typer.Option(
            "--top-p",
            metavar="P",
            help="Sample from the likeliest tokens that have this probability together.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Of random weights and of sampling.")] = 0,
    special: Annotated[
        bool, typer.Option("--special", help="Keep special tokens in the generated text.")
    ] = False,
    show: Annotated[int, typer.Option("--show", metavar="N", help="How many next tokens are listed.")] = 5,
    show_prompt: Annotated[
        bool, typer.Option("--show-prompt", help="List the tokens of the prompt.")
    ] = False,
    trace: Annotated[
        bool, typer.Option("--trace", help="Observe every declared step, without fused attention.")
    ] = False,
    trace_to: Annotated[
        Path | None,
        typer.Option("--trace-to", metavar="F", help="Write the observed steps to a file, as JSON."),
    ] = None,
    json: Json = False,
    specs: Specs = None,
) -> None:
    """Run a real forward pass and confirm that every step came out as declared.

    The generated text is printed as it is decoded, before the report; with --quiet it is all of the output.

    Example: atlas run --prompt "The capital of France is"
    """
    from atlas.api.run import load_session
    from atlas.execution import inputs, require_extra
    from atlas.execution.options import Options
    from atlas.graph.binding import bind
    from atlas.report import run as report
    from atlas.report.progress import bars_are_seen, progress
    from atlas.resolution.model import messages

    require_extra()
    prompts = _prompts(prompt, prompt_file, token_ids)
    if trace_to is not None:
        _require_writable(trace_to, len(prompts))
    library = library_of(specs)
    found = inputs.find(
        model, library, repo=repo, weights=weights, tokenizer=tokenizer, show_progress=bars_are_seen()
    )
    for warning in (*messages(found.model), *found.warnings):
        console.warn(warning)
    for note in (
        () if found.model.family else found.model.notes
    ):  # defaults that the configuration does not state
        console.note(note)
    options = Options(
        prompt=prompts[0],
        token_ids=_ids(token_ids),
        weights=found.weights,
        tokenizer=found.tokenizer,
        bos=bos,
        device=device,
        dtype=dtype,
        max_new_tokens=max_new_tokens,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        seed=seed,
        special=special,
        show=show,
        show_prompt=show_prompt,
        trace=trace,
    )
    options.check()  # before torch is imported, which takes seconds
    session = load_session()
    text = report.TextOutput()
    traces: list[ObservedTrace] = []
    with ExitStack() as bars, text:
        on_progress = bars.enter_context(progress())

        def on_text(piece: str) -> None:
            bars.close()  # a progress bar and the text would overwrite each other
            text.write(piece)

        callbacks = session.Callbacks(
            on_progress, None if json else on_text, None if trace_to is None else traces.append
        )
        results = _shown(
            session.run_each(bind(found.model, library), options, prompts, callbacks), text, json=json
        )
    if trace_to is not None:
        _write_trace(trace_to, traces[0])
    if json:
        from atlas.execution.result import Runs

        console.json(results[0] if len(results) == 1 else Runs(tuple(results)))
    if not all(result.confirmed for result in results):
        raise typer.Exit(1)


def _shown(results: Iterable[Result], text: TextOutput, *, json: bool) -> list[Result]:
    """Every result, reported as soon as it is there unless all of them are printed as JSON."""
    from atlas.report import run as report

    found = []
    for result in results:
        found.append(result)
        text.end()
        for warning in dict.fromkeys(result.warnings):
            console.warn(warning)
        for note in result.notes:
            console.note(note)
        if not json and not console.quiet:
            report.show(result, first=len(found) == 1 and not result.generated.ids)
    return found


def _prompts(texts: list[str] | None, file: Path | None, ids: str | None) -> list[str]:
    if sum(given is not None for given in (texts or None, file, ids)) > 1:
        raise UsageError("--prompt, --prompt-file and --token-ids exclude each other")
    if file is not None:
        from atlas.files import read_text

        return [read_text(file, "--prompt-file")]
    return texts or [""]


def _require_writable(file: Path, prompts: int) -> None:
    """Refuse a --trace-to that could not be written after the run."""
    if prompts > 1:
        raise UsageError("--trace-to writes the trace of one prompt", hint="give one --prompt")
    if os.path.isdir(file):
        raise UsageError(f"--trace-to {shown(str(file))} is a folder", hint="give a file")
    if not os.path.isdir(file.parent):
        raise UsageError(f"--trace-to {shown(str(file))}: no such folder: {shown(str(file.parent))}")


def _write_trace(file: Path, trace: ObservedTrace) -> None:
    from atlas.files import write_whole
    from atlas.report.plain import dumps

    write_whole(file, dumps(trace) + "\n")


def _ids(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    words = [word.strip() for word in text.split(",")]
    wrong = next((word for word in words if not re.fullmatch(r"-?[0-9]{1,20}", word, re.ASCII)), None)
    if wrong is not None:
        raise UsageError(
            f"--token-ids {shown(text)}: {shown(wrong)} is not a token id; expected integers with commas between, such as 1,2,3"
        )
    return tuple(map(int, words))
