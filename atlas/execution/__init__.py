"""A real forward pass of a described model: the bound steps of `atlas.graph.graph`, interpreted with torch.

    session      one run from options to result; what the command line and Python call
    walk         the steps of every layer in execution order, one block's weights in memory at a time
    program      a block's steps, each compiled once into a closure
    kernels      what each operation computes; rotary and attention are its two larger ones
    checkpoint   weights from a folder of safetensors files; files finds them, layouts turns them as declared
    random_weights, held, prompt, tokenizer, sample, observe, devices, failure
    options, result   what is asked and what is answered; these need no torch

torch is imported in this room and nowhere else in the atlas.
"""

from __future__ import annotations

from importlib.util import find_spec

from atlas.errors import MissingExtra


def require_extra() -> None:
    """Refuse where the packages of the extra `run` are not installed; nothing is imported to find out.

    Raises:
        MissingExtra: with the command that installs them.
    """
    missing = [package for package in ("torch", "tokenizers") if find_spec(package) is None]
    if missing:
        raise MissingExtra(
            f"`atlas run` needs {' and '.join(missing)}, which this installation does not have",
            hint=f"pip install {' '.join(missing)}; the extra `run` has them all",
        )
