"""A real forward pass of a described model: the bound steps of `atlas.graph.graph`, executed with torch.

    inputs       which model and which weights a command line means
    session      a run from options to result: what the command line and Python call
    runner       the steps of every layer in execution order, one block's weights in memory at a time
    program      a block's steps, each compiled once into a closure
    kernels      what each operation computes; rotary and fused_attention are the two larger ones
    weights      where weights come from; checkpoint_weights reads safetensors files, random_weights draws from a seed
    generation   the tokens after the prompt; sampling chooses each
    observer     each step's result compared with the trace of the same pass
    prompt       text to token ids and back; tokenizer runs the tokenizers library in a process of its own
    options, result   what is asked for and what is returned; these need no torch

torch is imported only in this room. `cli`, `report` and `api` may import it; it imports `analyse` and the rooms below.
"""

from __future__ import annotations

from importlib.util import find_spec

from atlas.errors import MissingExtra


def require_extra() -> None:
    """Refuse to run where the packages of the extra `run` are not installed. Nothing is imported to find out.

    Raises:
        MissingExtra: with the command that installs them.
    """
    missing = [package for package in ("torch", "tokenizers") if find_spec(package) is None]
    if missing:
        raise MissingExtra(
            f"`atlas run` needs {' and '.join(missing)}, which this installation does not have",
            hint=f"pip install {' '.join(missing)}; the extra `run` has them all",
        )
