"""How long `atlas verify` takes in process, imports done, against merely reading and decoding the same headers.

    python benchmarks/verify.py [--rounds 30]

The checkpoint is Llama 3.1 405B at its true size in sparse files: 1,137 tensors in 191 shards. Each figure is the median of
ratios of pairs run one after the other in this one process:

    headers   our reader, every fault looked for / listing the folder, reading each header and `json.loads`
    verify    the whole command but for printing / the same
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import struct
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from atlas.checkpoint import local
from atlas.dtypes import size_bytes
from atlas.graph.binding import bind
from atlas.graph.tensors import expected
from atlas.resolution.resolve import resolve
from atlas.spec.library import Library
from atlas.verification import verify

MODEL = "llama3.1-405b:bf16-mp8"
SHARDS = 191


def write(folder: Path, library: Library) -> None:
    """The checkpoint: real headers, and a hole where the numbers would be."""
    tensors = list(expected(bind(resolve(MODEL, library), library), "hf"))
    places, total = {}, 0
    for i in range(SHARDS):
        file = f"model-{i + 1:05d}-of-{SHARDS:05d}.safetensors"
        header, end = {}, 0
        for tensor in tensors[i * len(tensors) // SHARDS : (i + 1) * len(tensors) // SHARDS]:
            elements = 1
            for length in tensor.shape:
                elements *= length
            begin, end = end, end + size_bytes("BF16", elements)
            header[tensor.name] = {"dtype": "BF16", "shape": tensor.shape, "data_offsets": [begin, end]}
            places[tensor.name] = file
        raw = json.dumps({"__metadata__": {"format": "pt"}, **header}, separators=(",", ":")).encode()
        with (folder / file).open("wb") as out:
            out.write(struct.pack("<Q", len(raw)) + raw)
            out.truncate(8 + len(raw) + end)
        total += end
    index = {"metadata": {"total_size": total}, "weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def bare(folder: Path) -> None:
    for name in sorted(os.listdir(folder)):
        if name.endswith(".safetensors"):
            with open(folder / name, "rb") as file:
                json.loads(file.read(int.from_bytes(file.read(8), "little")))


def seconds(what: Callable[[], object]) -> float:
    start = time.perf_counter()
    what()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=30)
    rounds = parser.parse_args().rounds
    library = Library()
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}, {rounds} pairs")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, library)

        def headers() -> None:
            store, _ = local.at(folder)
            list(store.examine(file for file in store.files() if file.endswith(".safetensors")))

        def whole() -> None:
            store, only = local.at(folder)
            result = verify(store, library, only=only, model=MODEL)
            assert result.exit_code == 0
            assert result.tensors.found == 1_137

        for label, what in (("headers", headers), ("verify", whole)):
            what()
            pairs = [(seconds(what), seconds(lambda: bare(folder))) for _ in range(rounds)]
            ratio = statistics.median(ours / theirs for ours, theirs in pairs)
            best = min(ours for ours, _ in pairs) / min(theirs for _, theirs in pairs)
            ours, theirs = (1000 * statistics.median(side) for side in zip(*pairs, strict=True))
            print(
                f"{label:<9} {ratio:.2f} (of the fastest {best:.2f}; {ours:.1f} ms against {theirs:.1f} ms)"
            )


if __name__ == "__main__":
    main()
