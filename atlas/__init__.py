"""Open Model Atlas: each open language model described once, as data; counted, traced, verified and run from it.

import atlas

model = atlas.load("llama3.1-8b")
model.params().total_parameters   # 8030261248
model.trace(batch=1, positions=128).total_flops
model.explain("output").equation.text
"""

from __future__ import annotations

from atlas.version import __version__

__all__ = ["__version__", "load"]

# `typing` is not imported for this: the command line imports this file before it can handle Ctrl-C.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import os

    from atlas.api.described import Described


def load(model: str | os.PathLike[str], *, specs: tuple[str | os.PathLike[str], ...] = ()) -> Described:
    """The model that a catalogue id, a Hub id or a path means.

    Args:
        model: a text is read as on the command line; a path object always means a file or a folder.
        specs: folders of description files that add to the atlas's own.

    Raises:
        AtlasError: as `atlas.resolution.resolve.resolve` and `atlas.graph.binding.bind`.
    """
    from atlas.api.described import load as described

    return described(model, specs)
