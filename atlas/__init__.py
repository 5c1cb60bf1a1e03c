"""Open Model Atlas: each open language model described once, as data; counted, traced, verified and run from it.

import atlas

model = atlas.load("llama3.1-8b")
model.params().total_parameters   # 8030261248
model.trace(batch=1, positions=128).total_flops
model.explain("output").equation.text
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atlas.version import __version__

__all__ = ["__version__", "load"]

if TYPE_CHECKING:
    from atlas.described import Described


def load(model: str, *, specs: tuple[str, ...] = ()) -> Described:
    """The model that a catalogue id, a Hub id or a path means.

    Args:
        specs: folders of description files that add to the atlas's own.

    Raises:
        AtlasError: as `atlas.resolve.resolve` and `atlas.bind.bind`.
    """
    from atlas.described import load as described

    return described(model, specs)
