"""`--deep`: the data itself. Values that are no numbers, matrices of zeros, unequal copies, files with other bytes.

    check       what is read of a checkpoint, and the findings in it
    lanes       one file (values and hash, in one pass) or one pair of tied tensors, block by block
    crew        the threads that take the blocks, progress, Ctrl-C
    blocks      where a file is cut: every element whole, whatever its offset
    mapped      a block as memory, and what happens when the file is cut short under it
    patterns    the bit patterns of each dtype that are no finite number
    values      these looked for, with NumPy
    recorded    what a file's hash should be: as recorded in a download's metadata, the cache or a checklist

NumPy is imported here and under `atlas.execution`, nowhere else. What is found is about bits; that a value is right, no check tells.
"""

from __future__ import annotations

from importlib.util import find_spec

from atlas.errors import MissingExtra


def require_extra() -> None:
    """Refuse where NumPy is not installed; nothing is imported to find out.

    Raises:
        MissingExtra: with the command that installs it.
    """
    if find_spec("numpy") is None:
        raise MissingExtra(
            "`atlas verify --deep` needs numpy, which this installation does not have",
            hint="pip install numpy; the extra `run` has it too",
        )
