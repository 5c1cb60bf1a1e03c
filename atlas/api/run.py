"""`atlas.run`: a real forward pass, with the options of the command."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from atlas.errors import RunError
from atlas.graph.binding import bind
from atlas.spec.folders import Folders, open_library

if TYPE_CHECKING:
    from atlas.execution.result import Result

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
    top_p: float | None = None,
    seed: int = 0,
    special: bool = False,
    bos: bool | None = None,
    show: int = 5,
    show_prompt: bool = False,
    trace: bool = False,
    specs: Folders = (),
) -> Result:
    """See `atlas.run`."""
    from atlas.execution import inputs, require_extra
    from atlas.execution.options import Options

    library = open_library(specs)
    require_extra()
    # A path object is a path: never the catalogue's id of the same spelling.
    name = model if model is None or isinstance(model, str) else str(Path(model).expanduser().absolute())
    found = inputs.find(
        name,
        library,
        repo=repo,
        weights=None if weights is None else os.fspath(weights),
        tokenizer=None if tokenizer is None else Path(tokenizer),
    )
    options = Options(
        prompt=prompt,
        token_ids=None if token_ids is None else tuple(token_ids),
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
    result: Result = load_session().run(bind(found.model, library), options)
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
