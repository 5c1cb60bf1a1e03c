"""Devices and dtypes of torch, by the names a user gives them; and how much memory the process has had."""

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
"""torch's dtype -> safetensors' code, for what a step's result can be."""


def choose(name: str) -> torch.device:
    """The device of that name; `auto` is a CUDA GPU, else Apple's, else the CPU.

    Raises:
        UsageError: there is none here, or no device is called that.
    """
    here = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if name == "auto":
        name = next(kind for kind, available in here.items() if available)
    if name not in here:
        raise UsageError(f"no device is called {name!r}", hint=f"use auto, {', '.join(here)}")
    if not here[name]:
        raise UsageError(f"there is no {name} device here", hint="use --device auto")
    return torch.device(name)


def float_dtype(name: str) -> torch.dtype:
    """The dtype to run in that a code or torch's name means.

    Raises:
        UsageError: no dtype is called that, or no model can be run in it.
    """
    code = dtypes.find(name)
    if code not in FLOATS:
        problem = f"no dtype is called {name!r}" if code is None else f"a model cannot be run in {code}"
        raise UsageError(problem, hint=f"use one of {', '.join(FLOATS)}, or torch's name such as bfloat16")
    return FLOATS[code]


SMALL = 2**18
"""Numbers in a model's largest weight, up to which its products are over before a second thread has begun."""


@contextmanager
def threads_for(largest: int, device: torch.device) -> Iterator[None]:
    """One thread while a model runs whose largest weight is small; as many as torch takes for all others.

    Threads that wait for each other at every step of a tiny model cost more than they do: ten times the whole run on a busy
    machine.
    """
    before = torch.get_num_threads()
    if device.type == "cpu" and largest <= SMALL:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def memory_bytes(device: torch.device) -> int | None:
    """The memory that a device has in all, in bytes; None where the system does not say."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[1]
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # on Windows there is no sysconf
        return None


def peak_memory_bytes() -> int | None:
    """The most memory this process has had resident, in bytes; None where the system does not say.

    Linux's own figure comes first: `ru_maxrss` of a program started by a larger one begins with the size of that one.
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
