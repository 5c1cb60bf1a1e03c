"""`--deep`: read the data. Finds NaN and Inf, matrices of zeros, copies that differ, and files with a wrong hash.

    check        what is read of a checkpoint, and the findings
    work_items   one file (values and hash, in one pass) or one pair of tensors to compare, block by block
    thread_pool  the threads that read the blocks, progress, Ctrl-C
    blocks       where a file is divided, so that every element is whole
    memory_map   a block as mapped memory, and what happens if the file is truncated meanwhile
    patterns     the bit patterns of each dtype that are NaN, Inf or zero
    values       search for these patterns, with NumPy
    copies       tensors that should be equal: tied matrices, and what every device holds whole
    recorded     the recorded hashes: of a download's metadata, the cache or a checklist
    findings     the messages

NumPy is imported here and under `atlas.execution`, nowhere else. The checks are about bits; they never show that a value is right.
"""

from __future__ import annotations

from importlib.util import find_spec

from atlas.errors import MissingExtra


def require_extra() -> None:
    """Refuse if NumPy is not installed, without importing it.

    Raises:
        MissingExtra: with the command that installs it.
    """
    if find_spec("numpy") is None:
        raise MissingExtra(
            "`atlas verify --deep` needs numpy, which this installation does not have",
            hint="pip install numpy; the extra `run` includes it",
        )
