"""How fast `atlas verify --deep` looks at values, as a share of what threads can read at all.

    python benchmarks/deep.py [--gib 1] [--rounds 9] [--folder DIR]

A checkpoint of one file, BF16, normally distributed, is written to a temporary folder and read until it is in the page cache.
Then, by one thread and by two, in turns:

    map     the least there is: the file mapped, and one pass over it, the maximum of 64-bit integers
    read    `readinto` a buffer of 1 MiB, and nothing done with it
    maxima  the two maxima that tell a value which is no number, and no more: what `deep` could reach
    deep    the whole check, values only
    hash    the whole check with SHA-256 of the file, against SHA-256 of memory by one thread
    numpy   widened to F32, `isfinite().all()` of pieces that fit the cache, mapped
    torch   `isfinite().all()` of its bfloat16, likewise, where torch is installed

Each figure is the median over the rounds of that round's ratio to `map` by as many threads; beside it the fastest of each.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import mmap
import os
import platform
import statistics
import struct
import tempfile
import threading
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from atlas.checkpoint import local
from atlas.checkpoint.inventory import Inventory, take
from atlas.verification.deep.check import check

PIECE = 2**20
Job = Callable[[int, int], None]


def write(path: Path, size: int) -> None:
    """Sixteen matrices in BF16, without a NaN."""
    random = np.random.default_rng(0)
    share = size // 16
    shape = [share // 2 // 4096, 4096]
    header = {
        f"w{i}.weight": {"dtype": "BF16", "shape": shape, "data_offsets": [i * share, (i + 1) * share]}
        for i in range(16)
    }
    raw = json.dumps(header).encode()
    raw += b" " * (-len(raw) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(raw)) + raw)
        for _ in range(16):
            words = random.standard_normal(share // 2, np.float32).view("<u4") >> 16
            file.write(words.astype("<u2").tobytes())


def mapped(path: Path, look: Callable[[np.ndarray], object]) -> Job:
    """Look at a mapping of the file, a piece after the other."""

    def job(begin: int, end: int) -> None:
        with path.open("rb") as file:
            data = np.frombuffer(
                mmap.mmap(file.fileno(), end - begin, access=mmap.ACCESS_READ, offset=begin), np.uint8
            )
        for i in range(0, data.size, PIECE):
            look(data[i : i + PIECE])

    return job


def read(path: Path) -> Job:
    """Read the file, and do nothing with it."""

    def job(begin: int, end: int) -> None:
        buffer = memoryview(bytearray(PIECE))
        with path.open("rb", buffering=0) as file:
            file.seek(begin)
            for _ in range(begin, end, PIECE):
                file.readinto(buffer)

    return job


def maxima(piece: np.ndarray) -> object:
    return np.maximum.reduce(piece.view("<u2")), np.maximum.reduce(piece.view("<i2"))


def widened(piece: np.ndarray) -> object:
    return np.isfinite((piece.view("<u2").astype("<u4") << 16).view("<f4")).all()


def torch_look() -> Callable[[np.ndarray], object]:
    import warnings

    import torch

    warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
    torch.set_num_threads(1)
    return lambda piece: torch.from_numpy(piece).view(torch.bfloat16).isfinite().all()


def seconds(job: Job, size: int, threads: int) -> float:
    """How long it takes threads to do a job, each its share of the file."""
    page = mmap.ALLOCATIONGRANULARITY
    cuts = [size * i // threads // page * page for i in range(threads)] + [size // PIECE * PIECE]
    workers = [threading.Thread(target=job, args=pair) for pair in itertools.pairwise(cuts)]
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return time.perf_counter() - start


def timed(what: Callable[[], object]) -> float:
    start = time.perf_counter()
    what()
    return time.perf_counter() - start


def deep(inventory: Inventory, threads: int, hash_all: bool = False) -> None:
    assert not check(inventory, threads=threads, hash_all=hash_all).findings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--gib", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        path = Path(name) / "model.safetensors"
        write(path, int(options.gib * 2**30) // PIECE * PIECE)
        store, _ = local.at(path.parent)
        measure(path, take(store), options.rounds)


def measure(path: Path, inventory: Inventory, rounds: int) -> None:
    size = path.stat().st_size
    some = memoryview(bytes(PIECE))
    least = mapped(path, lambda piece: np.maximum.reduce(piece.view("<u8")))
    others = {"read": read(path), "maxima": mapped(path, maxima), "numpy": mapped(path, widened)}
    if find_spec("torch"):
        others["torch"] = mapped(path, torch_look())

    def hashed() -> None:
        digest = hashlib.sha256()
        for _ in range(0, size, PIECE):
            digest.update(some)

    print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}, "
        f"NumPy {np.__version__}, {size / 2**30:.2f} GiB, {rounds} rounds"
    )
    seconds(least, size, 1)
    for threads in (1, 2):
        taken: dict[str, list[float]] = {}
        for _ in range(rounds):
            row = {
                "map": seconds(least, size, threads),
                "deep": timed(lambda: deep(inventory, threads)),  # noqa: B023
                **{label: seconds(job, size, threads) for label, job in others.items()},
                "sha256": timed(hashed),
                "hash": timed(lambda: deep(inventory, threads, hash_all=True)),  # noqa: B023
            }
            for label, took in row.items():
                taken.setdefault(label, []).append(took)
        print(f"{threads} thread{'s' if threads > 1 else ''}")
        for label in ("map", "read", "maxima", "deep", "numpy", "torch", "hash"):
            if label in taken:
                of = "sha256" if label == "hash" else "map"
                ratio = statistics.median(a / b for a, b in zip(taken[of], taken[label], strict=True))
                best = min(taken[of]) / min(taken[label])
                fastest = size / min(taken[label]) / 1e9
                print(f"  {label:<6} {ratio:.2f} of {of:<6} (of the fastest {best:.2f}; {fastest:.1f} GB/s)")


if __name__ == "__main__":
    main()
