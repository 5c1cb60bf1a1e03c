"""`atlas run`: a real forward pass, and the tokens after it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated

import typer

from atlas.cli.options import Json, Specs, library_of
from atlas.errors import RunError, UsageError, shown
from atlas.report import console

if TYPE_CHECKING:
    from atlas.resolution.model import Model
    from atlas.spec.library import Library

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
    from atlas.execution import require_extra
    from atlas.execution.options import Options
    from atlas.graph.binding import bind
    from atlas.report import run as report
    from atlas.report.progress import progress
    from atlas.resolution.model import messages

    require_extra()
    text = _prompt(prompt, prompt_file, token_ids)
    library = library_of(specs)
    described, checkpoint = _model_and_weights(model, repo, weights, library)
    for warning in messages(described):
        console.warn(warning)
    for note in () if described.family else described.notes:  # defaults that the configuration does not state
        console.note(note)
    options = Options(
        prompt=text,
        token_ids=_ids(token_ids),
        weights=checkpoint,
        tokenizer=_tokenizer(tokenizer, model, checkpoint),
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
    session = _session()
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


def _session() -> ModuleType:
    """`atlas.execution.session`, and with it torch."""
    try:
        from atlas.execution import session
    except (ImportError, OSError, MemoryError) as error:
        # Of all the libraries torch loads, one may be broken, or not fit into the memory this process may take.
        said = " ".join(str(error).split())[:200] or "out of memory"
        memory = isinstance(error, MemoryError) or "failed to map" in said or "llocate memory" in said
        raise RunError(
            f"torch cannot be loaded: {said}",
            hint="allow the process more memory" if memory else "install torch again",
            code="out_of_memory" if memory else "run",
        ) from error
    return session


def _tokenizer(given: Path | None, model: str | None, checkpoint: Path | None) -> Path | None:
    """The tokenizer.json asked for; else MODEL's own, where the weights lie elsewhere and have none beside them."""
    if given is not None:
        file = given / "tokenizer.json" if os.path.isdir(given) else given
        if not os.path.exists(file):
            raise UsageError(f"--tokenizer {shown(str(given))}: no such file", hint="give a tokenizer.json")
        return file
    beside = [
        folder / "tokenizer.json"
        for folder in (_folder(checkpoint), _folder(Path(model) if model else None))
        if folder
    ]
    return next((file for file in beside if os.path.exists(file)), None)


def _folder(path: Path | None) -> Path | None:
    if path is None or not os.path.exists(path):
        return None
    return path if os.path.isdir(path) else path.parent


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


def _model_and_weights(
    name: str | None, repo: str | None, weights: str | None, library: Library
) -> tuple[Model, Path | None]:
    """The model, and its checkpoint; None for random weights. Nothing is downloaded that was not asked for with --repo."""
    from atlas.resolution.resolve import from_path, resolve

    if weights is not None and repo is not None:
        raise UsageError("--weights and --repo exclude each other")
    if repo is not None:
        folder = _fetched(repo)
        return (resolve(name, library) if name else from_path(folder, library)), folder
    if weights is not None and weights != "random":
        path = Path(os.path.expanduser(weights))
        if not os.path.exists(path):
            raise UsageError(
                f"--weights {shown(weights)}: no such file or folder",
                hint="give a checkpoint, or the word random",
            )
        if name is None:
            return from_path(path if os.path.isdir(path) else path.parent, library), path
        return resolve(name, library), path
    model = resolve(DEFAULT if name is None else name, library)
    if weights == "random":
        return model, None
    return model, _own_folder(name) or (_in_cache(model.hub_id) if model.hub_id else None)


def _own_folder(name: str | None) -> Path | None:
    """The folder a MODEL that is a path stands in, if it holds weights."""
    path = Path(name or "")
    folder = path if os.path.isdir(path) else path.parent
    return folder if name and os.path.exists(path) and any(folder.glob("*.safetensors")) else None


def _in_cache(repo: str) -> Path | None:
    """The repository's complete snapshot in the local Hub cache."""
    from atlas.checkpoint.snapshot import cached

    snapshot = cached(repo)
    return snapshot.path if snapshot is not None and not snapshot.lacking() else None


def _fetched(repo: str) -> Path:
    from atlas.checkpoint.download import download
    from atlas.report.progress import bars_are_seen

    return _in_cache(repo) or download(repo, progress=bars_are_seen())
