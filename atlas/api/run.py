"""`atlas.run`: which model runs with which weights, and the run itself."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from atlas.errors import RunError, UsageError, shown
from atlas.graph.binding import bind
from atlas.resolution.model import Model
from atlas.spec.library import Library

if TYPE_CHECKING:
    from atlas.execution.result import Result

DEFAULT = "llama3.1-8b"

PathLike = str | os.PathLike[str]


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
    seed: int = 0,
    special: bool = False,
    show: int = 5,
    trace: bool = False,
    specs: Sequence[PathLike] = (),
) -> Result:
    """See `atlas.run`."""
    from atlas.execution import require_extra
    from atlas.execution.options import Options

    require_extra()
    library = Library(*map(Path, specs))
    # A path object is a path: never the catalogue's id of the same spelling.
    name = model if model is None or isinstance(model, str) else str(Path(model).expanduser().absolute())
    where = None if weights is None else os.fspath(weights)
    described, checkpoint = model_and_weights(name, repo, where, library)
    options = Options(
        prompt=prompt,
        token_ids=None if token_ids is None else tuple(token_ids),
        weights=checkpoint,
        tokenizer=tokenizer_file(None if tokenizer is None else Path(tokenizer), name, checkpoint),
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
    result: Result = load_session().run(bind(described, library), options)
    return result


def load_session() -> ModuleType:
    """The module `atlas.execution.session`, and with it torch.

    Raises:
        RunError: torch cannot be loaded.
    """
    try:
        from atlas.execution import session
    except (ImportError, OSError, MemoryError) as error:
        # Any of the libraries that torch loads may be broken, or too large for the memory this process may use.
        reason = " ".join(str(error).split())[:200] or "out of memory"
        memory = isinstance(error, MemoryError) or "failed to map" in reason or "llocate memory" in reason
        raise RunError(
            f"torch cannot be loaded: {reason}",
            hint="allow the process more memory" if memory else "install torch again",
            code="out_of_memory" if memory else "run",
        ) from error
    return session


def tokenizer_file(given: Path | None, model: str | None, checkpoint: Path | None) -> Path | None:
    """The given tokenizer.json; by default the one next to the weights, else the one next to MODEL's configuration."""
    if given is not None:
        file = given / "tokenizer.json" if os.path.isdir(given) else given
        if not os.path.exists(file):
            raise UsageError(f"--tokenizer {shown(str(given))}: no such file", hint="give a tokenizer.json")
        return file
    folders = (_folder(checkpoint), _folder(Path(model) if model else None))
    files = [folder / "tokenizer.json" for folder in folders if folder]
    return next((file for file in files if os.path.exists(file)), None)


def _folder(path: Path | None) -> Path | None:
    if path is None or not os.path.exists(path):
        return None
    return path if os.path.isdir(path) else path.parent


def model_and_weights(
    name: str | None, repo: str | None, weights: str | None, library: Library, *, progress: bool = False
) -> tuple[Model, Path | None]:
    """The model and its checkpoint; None for random weights. Only `repo` downloads anything.

    Args:
        progress: draw bars while downloading.
    """
    from atlas.resolution.resolve import from_path, resolve

    if weights is not None and repo is not None:
        raise UsageError("--weights and --repo exclude each other")
    if repo is not None:
        folder = _in_cache(repo) or _download(repo, progress=progress)
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
    """The folder of a MODEL that is a path, if there are weights in it."""
    path = Path(name or "")
    folder = path if os.path.isdir(path) else path.parent
    return folder if name and os.path.exists(path) and any(folder.glob("*.safetensors")) else None


def _in_cache(repo: str) -> Path | None:
    """The repository's complete snapshot in the local Hub cache."""
    from atlas.checkpoint.snapshot import cached

    snapshot = cached(repo)
    return snapshot.path if snapshot is not None and not snapshot.lacking() else None


def _download(repo: str, *, progress: bool) -> Path:
    from atlas.checkpoint.download import download

    return download(repo, progress=progress)
