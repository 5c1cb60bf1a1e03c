"""torch's devices and dtypes by the names a user gives them, and the memory of device and process."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from atlas import dtypes
from atlas.errors import UsageError

FLOATS = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
"""The dtypes a model can be run in."""

CODES = {dtype: code for code, dtype in FLOATS.items()} | {torch.int64: "I64"}
"""torch's dtype -> safetensors' code, for every dtype that a step's result can have."""


def choose(name: str) -> torch.device:
    """The device of that name; `auto` is a CUDA GPU, else Apple's, else the CPU.

    Raises:
        UsageError: this machine has no such device, or the name is unknown.
    """
    here = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if name == "auto":
        name = next(kind for kind, available in here.items() if available)
    if name not in here:
        raise UsageError(f"unknown device {name!r}", hint=f"use auto, {', '.join(here)}")
    if not here[name]:
        raise UsageError(f"this machine has no {name} device", hint="use --device auto")
    return torch.device(name)


def float_dtype(name: str) -> torch.dtype:
    """The dtype for a safetensors code or torch's name.

    Raises:
        UsageError: the name is unknown, or a model cannot be run in that dtype.
    """
    code = dtypes.find(name)
    if code not in FLOATS:
        problem = f"unknown dtype {name!r}" if code is None else f"a model cannot be run in {code}"
        raise UsageError(problem, hint=f"use one of {', '.join(FLOATS)}, or torch's name such as bfloat16")
    return FLOATS[code]


SMALL = 2**18
"""Elements of a model's largest weight up to which a second thread only slows a product down."""


@contextmanager
def threads_for(largest: int, device: torch.device) -> Iterator[None]:
    """One thread for a model whose largest weight is small; torch's own number for all others.

    Synchronising threads at every step of a tiny model was measured to take ten times as long on a busy machine.
    """
    before = torch.get_num_threads()
    if device.type == "cpu" and largest <= SMALL:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def memory_bytes(device: torch.device) -> int | None:
    """A device's total memory in bytes; None where the system does not report it."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[1]
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # on Windows there is no sysconf
        return None


def peak_memory_bytes() -> int | None:
    """The peak resident memory of this process, in bytes; None where the system does not report it.

    On Linux `VmHWM` is used: `ru_maxrss` starts with the size of the process that started this one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    if sys.platform == "win32":
        return None
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
