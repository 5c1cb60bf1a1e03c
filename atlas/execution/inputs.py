"""Which model, weights and tokenizer a run uses: what MODEL, `--weights`, `--repo` and `--tokenizer` mean together.

Weights are those of `--weights`, else of `--repo`, else those in MODEL's own folder, else a complete copy in the local Hub
cache, else random. Nothing is downloaded that was not asked for with `--repo`. This needs no torch.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from atlas.checkpoint import contents
from atlas.errors import CheckpointError, UsageError, shown
from atlas.execution.options import DEFAULT_MODEL
from atlas.resolution.model import Model
from atlas.resolution.resolve import from_path, resolve
from atlas.spec.library import Library

TOKENIZER = "tokenizer.json"


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a run uses.

    Attributes:
        weights: a checkpoint's folder, one of its files or its index; None for random weights.
        tokenizer: a tokenizer.json; None where there is none.
        warnings: weights that exist and are not used.
    """

    model: Model
    weights: Path | None
    tokenizer: Path | None
    warnings: tuple[str, ...] = ()


def find(
    name: str | None,
    library: Library,
    *,
    repo: str | None = None,
    weights: str | None = None,
    tokenizer: Path | None = None,
    show_progress: bool = False,
) -> Inputs:
    """The model, weights and tokenizer of a run.

    Args:
        name: MODEL; None for the model of the weights, else the default one.
        weights: a path, or the word `random`.
        show_progress: whether a download may draw progress bars on stderr.

    Raises:
        UsageError: two options contradict each other, or a path does not exist.
        CheckpointError: MODEL's folder has weights only in formats that are not read.
        AtlasError: the model cannot be resolved, or the repository cannot be fetched.
    """
    if weights is not None and repo is not None:
        raise UsageError("--weights and --repo exclude each other")
    warnings: tuple[str, ...] = ()
    path: Path | None = None
    if repo is not None:
        path = _cached(repo)[0] or _download(repo, show_progress)
        model = resolve(name, library) if name else from_path(path, library)
    elif weights is not None and weights != "random":
        path = Path(os.path.expanduser(weights))
        if not os.path.exists(path):
            raise UsageError(
                f"--weights {shown(weights)}: no such file or folder",
                hint="give a checkpoint, or the word random",
            )
        own = path if os.path.isdir(path) else path.parent
        model = resolve(name, library) if name else from_path(own, library)
    else:
        model = resolve(DEFAULT_MODEL if name is None else name, library)
        if weights is None:
            path = _own_weights(name)
            if path is None and model.hub_id:
                path, warnings = _cached(model.hub_id)
    return Inputs(model, path, _tokenizer(tokenizer, name, path), warnings)


def _own_weights(name: str | None) -> Path | None:
    """The folder of a MODEL that is a path, if weights are in it.

    Raises:
        CheckpointError: only weights in other formats are in it. Random weights in their place would be a surprise.
    """
    folder = _folder(Path(name) if name else None)
    if folder is None:
        return None
    try:
        names = os.listdir(folder)
    except OSError as error:
        raise CheckpointError(f"{folder}: cannot be read: {error.strerror}") from None
    if contents.index_of(names) or any(file.endswith(contents.SUFFIX) for file in names):
        return folder
    if contents.other_weights(names):
        refusal = contents.refusal(str(folder), names)
        raise CheckpointError(refusal.message, hint=f"{refusal.hint}; --weights random runs without them")
    return None


def _cached(repo: str) -> tuple[Path | None, tuple[str, ...]]:
    """The repository's complete snapshot in the local Hub cache; else a warning if there is an incomplete one."""
    from atlas.checkpoint.snapshot import cached

    snapshot = cached(repo)
    if snapshot is None:
        return None, ()
    lacking = snapshot.lacking()
    if not lacking:
        return snapshot.path, ()
    others = contents.other_weights(snapshot.files())
    there = f" (it has {others[0]}, a format that is not read)" if others else ""
    more = f" and {len(lacking) - 1:,} more" if len(lacking) > 1 else ""
    warning = f"the copy of {repo} in the local Hub cache lacks {lacking[0]}{more}{there}: it is not used"
    return None, (f"{warning}; --repo {repo} fetches it",)


def _download(repo: str, show_progress: bool) -> Path:
    from atlas.checkpoint.download import download

    return download(repo, progress=show_progress)


def _tokenizer(given: Path | None, name: str | None, weights: Path | None) -> Path | None:
    """The tokenizer.json asked for; else the one next to the weights; else the one in MODEL's folder."""
    if given is not None:
        file = given / TOKENIZER if os.path.isdir(given) else given
        if not os.path.exists(file):
            raise UsageError(f"--tokenizer {shown(str(given))}: no such file", hint="give a tokenizer.json")
        return file
    folders = (_folder(weights), _folder(Path(name) if name else None))
    files = [folder / TOKENIZER for folder in folders if folder is not None]
    return next((file for file in files if os.path.exists(file)), None)


def _folder(path: Path | None) -> Path | None:
    if path is None or not os.path.exists(path):
        return None
    return path if os.path.isdir(path) else path.parent
