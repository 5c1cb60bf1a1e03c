"""`atlas run`: a real forward pass, and the tokens after it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atlas.cli.options import Json, Specs, library_of
from atlas.errors import UsageError, shown
from atlas.report import console

if TYPE_CHECKING:
    pass

DEFAULT = "llama3.1-8b"


def register(app: typer.Typer) -> None:
    app.command("run")(run)


def run(
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="MODEL", help=f"A model, or a checkpoint's folder; {DEFAULT} where none is given."
        ),
    ] = None,
    prompt: Annotated[
        str | None, typer.Option("--prompt", metavar="TEXT", help="The empty text is the BOS token alone.")
    ] = None,
    prompt_file: Annotated[
        Path | None, typer.Option("--prompt-file", metavar="F", help="Read the prompt from a file.")
    ] = None,
    token_ids: Annotated[
        str | None, typer.Option("--token-ids", metavar="1,2,3", help="The prompt as token ids.")
    ] = None,
    repo: Annotated[
        str | None,
        typer.Option("--repo", metavar="ID", help="Weights of this Hub repository, fetched if need be."),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option("--weights", metavar="PATH|random", help="A checkpoint, or seeded random weights."),
    ] = None,
    tokenizer: Annotated[
        Path | None, typer.Option("--tokenizer", metavar="PATH", help="A tokenizer.json.")
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
        int | None, typer.Option("--top-k", metavar="K", help="Sample from the K likeliest only.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Of random weights and of sampling.")] = 0,
    special: Annotated[
        bool, typer.Option("--special", help="Keep special tokens in the generated text.")
    ] = False,
    show: Annotated[int, typer.Option("--show", metavar="N", help="How many next tokens are listed.")] = 5,
    trace: Annotated[
        bool, typer.Option("--trace", help="Observe every declared step, without fused attention.")
    ] = False,
    json: Json = False,
    specs: Specs = None,
) -> None:
    """Run a real forward pass and confirm that every step came out as declared.

    Example: atlas run --prompt "The capital of France is"
    """
    from atlas.api.run import load_session, model_and_weights, tokenizer_file
    from atlas.execution import require_extra
    from atlas.execution.options import Options
    from atlas.graph.binding import bind
    from atlas.report import run as report
    from atlas.report.progress import bars_are_seen, progress

    require_extra()
    text = _prompt(prompt, prompt_file, token_ids)
    library = library_of(specs)
    described, checkpoint = model_and_weights(model, repo, weights, library, progress=bars_are_seen())
    for warning in described.warnings:
        console.warn(warning)
    options = Options(
        prompt=text,
        token_ids=_ids(token_ids),
        weights=checkpoint,
        tokenizer=tokenizer_file(tokenizer, model, checkpoint),
        device=device,
        dtype=dtype,
        max_new_tokens=max_new_tokens,
        temperature=temperature,
        top_k=top_k,
        seed=seed,
        special=special,
        show=show,
        trace=trace,
    )
    options.check()  # before torch is imported, which takes seconds
    session = load_session()
    with progress() as told:
        result = session.run(bind(described, library), options, told)
    for note in result.notes:
        console.note(note)
    if json:
        console.json(result)
    else:
        report.show(result)
    if not result.confirmed:
        raise typer.Exit(1)


def _prompt(text: str | None, file: Path | None, ids: str | None) -> str:
    if sum(given is not None for given in (text, file, ids)) > 1:
        raise UsageError("--prompt, --prompt-file and --token-ids exclude each other")
    if file is not None:
        from atlas.files import read_text

        return read_text(file, "--prompt-file")
    return text or ""


def _ids(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    words = [word.strip() for word in text.split(",")]
    wrong = next((word for word in words if not re.fullmatch(r"-?[0-9]{1,20}", word, re.ASCII)), None)
    if wrong is not None:
        raise UsageError(
            f"--token-ids {shown(text)}: {shown(wrong)} is no token id; expected integers with commas between, such as 1,2,3"
        )
    return tuple(map(int, words))
