"""How long the names of a large mixture of experts take, as a multiple of reading an index that has them.

    python benchmarks/names.py [--rounds 15]

The test architecture with 61 layers, 256 experts in each from the fourth on, and one tensor for each of an expert's matrices.
In turns:

    json    `json.loads` of a checkpoint's index with these names
    bind    the architecture bound to the model
    expand  every name made, and put where it is found
    match   every name of the index found, with its row and indices

Each figure is the median over the rounds of that round's ratio to `json`; beside it the fastest of each.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from atlas.graph import tensors
from atlas.graph.binding import bind
from atlas.resolution import config
from atlas.spec.library import Library

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.test_grammar_holds import SETTINGS, SPECS  # noqa: E402

PACKED = '{expert}.gate_up.weight"   = "experts.w1 + experts.w3 = * dim"'
SINGLE = '{expert}.gate.weight" = "experts.w1"\n"text.layers.{layer}.moe.experts.{expert}.up.weight" = "experts.w3"'


def seconds(job: Callable[[], object]) -> float:
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "architectures" / "patchwork.toml"
        path.parent.mkdir()
        text = (SPECS / "architectures" / "patchwork.toml").read_text()
        if PACKED not in text:
            raise SystemExit("the test architecture has changed: no packed row of experts")
        path.write_text(text.replace(PACKED, SINGLE))
        library = Library(SPECS, Path(folder))
        large = {"num_hidden_layers": 61, "num_experts": 256, "num_experts_per_tok": 8, "num_dense_layers": 3}
        model = config.describe(SETTINGS | large, library, id="large")
        graph = bind(model, library)
    names = tensors.Names(tensors.rows(graph, "hf"))
    index = json.dumps({"weight_map": dict.fromkeys(names, "model-00001-of-00163.safetensors")})

    def expand() -> tensors.Names:
        graph.rows.clear()
        return tensors.Names(tensors.rows(graph, "hf"))

    jobs: dict[str, Callable[[], object]] = {
        "json": lambda: json.loads(index),
        "bind": lambda: bind(model, library),
        "expand": expand,
        "match": lambda: [names.get(name) for name in json.loads(index)["weight_map"]],
    }
    taken: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(rounds):
        for name, job in jobs.items():
            taken[name].append(seconds(job))
    print(f"{len(names):,} names, {len(index):,} bytes of index")
    for name, each in taken.items():
        ratio = statistics.median(a / b for a, b in zip(each, taken["json"], strict=True))
        print(f"{name:8}{ratio:6.2f}{min(each) * 1e3:9.1f} ms")


if __name__ == "__main__":
    main()
