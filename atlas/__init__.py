"""Open Model Atlas: count, trace, verify and run open language models, each described once as data.

    import atlas

    model = atlas.load("llama3.1-8b")
    model.params().total_parameters   # 8030261248
    model.memory(context=8192).rows()
    model.explain("output").equation.text
    atlas.verify("path/to/checkpoint").verdict

Each function and method answers as the command of its name does, with the same options. An error is an `AtlasError`.
"""

from __future__ import annotations

from atlas.version import __version__

__all__ = ["AtlasError", "__version__", "load", "models", "run", "verify"]

# The command line imports this file before it can handle Ctrl-C, so nothing else is imported here: not even `typing`.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Sequence

    from atlas.api.model import Model
    from atlas.errors import AtlasError
    from atlas.execution.result import Result
    from atlas.pages.catalogue import ModelList
    from atlas.verification.result import Verification

    PathLike = str | os.PathLike[str]


def load(model: PathLike, *, specs: PathLike | Sequence[PathLike] = ()) -> Model:
    """The model that a catalogue id, a Hub id or a path names.

    Args:
        model: a string is read as on the command line; a path object is always the path of a file or a folder.
        specs: a further folder of description files, or several.

    Raises:
        AtlasError: the model is not known, not described, or its configuration cannot be read; or a folder of
            `specs` has no description files.
    """
    from atlas.api import model as api

    return api.load(model, specs)


def models(
    family: str | None = None,
    *,
    words: Sequence[str] = (),
    publisher: str | None = None,
    specs: PathLike | Sequence[PathLike] = (),
) -> ModelList:
    """The catalogue, as `atlas models`.

    Args:
        family: only the models of this family, such as `llama3.1`.
        words: only the models in whose id, name, alias or kind every word occurs.
        publisher: only the models of this publisher.

    Raises:
        AtlasError: there is no such family.
    """
    from atlas.api import model as api

    return api.models(words, family, publisher, specs)


def verify(
    path: PathLike | None = None,
    *,
    repo: str | None = None,
    revision: str | None = None,
    model: str | None = None,
    deep: bool = False,
    download: bool = False,
    ignore: Collection[str] = (),
    strict: bool = False,
    release: bool = False,
    specs: PathLike | Sequence[PathLike] = (),
) -> Verification:
    """Compare a checkpoint with its description, as `atlas verify`.

    Args:
        path: a checkpoint's folder, its index or one weight file; either this or `repo`.
        repo: a repository on the Hub, of which only the headers are read.
        revision: a branch, a tag or a commit of the repository.
        model: the model to compare with; by default the one that the checkpoint's own configuration describes.
        deep: read the data too.
        download: fetch the repository first.
        ignore: codes of findings to leave out.
        strict: report warnings as errors.
        release: report what a release lacks besides weights as errors.
        specs: a further folder of description files, or several.

    Returns:
        The findings; `verdict` is the summary.

    Raises:
        AtlasError: there is no checkpoint, or it cannot be reached.
    """
    from atlas.api import checkpoint as api

    return api.verify(
        path,
        repo=repo,
        revision=revision,
        model=model,
        deep=deep,
        download=download,
        ignore=ignore,
        strict=strict,
        release=release,
        specs=specs,
    )


def run(
    model: PathLike | None = None,
    *,
    prompt: str = "",
    token_ids: Sequence[int] | None = None,
    repo: str | None = None,
    weights: PathLike | None = None,
    tokenizer: PathLike | None = None,
    device: str = "auto",
    dtype: str | None = None,
    max_new_tokens: int = 0,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
    special: bool = False,
    bos: bool | None = None,
    show: int = 5,
    show_prompt: bool = False,
    trace: bool = False,
    specs: PathLike | Sequence[PathLike] = (),
) -> Result:
    """A real forward pass, and generation if asked for, as `atlas run`. It needs the extra `run` (torch).

    Args:
        model: a model, or a checkpoint's folder.
        token_ids: the prompt as token ids, instead of `prompt`.
        repo: a repository on the Hub whose weights are used, downloaded if they are not in the local cache.
        weights: a checkpoint's path, or `random`.
        tokenizer: the path of a tokenizer.json.
        bos: whether the prompt begins with BOS; None for what the tokenizer itself does.
        show: how many candidates for the next token are listed.
        trace: observe every declared step.

    Raises:
        AtlasError: the weights cannot be read, an option is out of range, or a step failed.
    """
    from atlas.api import run as api

    return api.run(
        model,
        prompt=prompt,
        token_ids=token_ids,
        repo=repo,
        weights=weights,
        tokenizer=tokenizer,
        device=device,
        dtype=dtype,
        max_new_tokens=max_new_tokens,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        seed=seed,
        special=special,
        bos=bos,
        show=show,
        show_prompt=show_prompt,
        trace=trace,
        specs=specs,
    )


def __getattr__(name: str) -> object:
    """`AtlasError`, imported on first use."""
    if name == "AtlasError":
        from atlas.errors import AtlasError

        return AtlasError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
