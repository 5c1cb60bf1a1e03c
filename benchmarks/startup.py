"""How long `atlas params llama3.1-8b` takes as a whole process, against two programs run beside it.

    python benchmarks/startup.py [--rounds 15]

Four ratios, each the median of pairs run one after the other in this one process:

    bare           a Typer + Rich + Pydantic program that prints a 15-row table and does nothing else
    transformers   the same count by building the model on the meta device
    layers         the same dimensions with 126 layers against 2: the cost must not grow with layers
    architectures  every architecture against a copy that holds the model's own alone: nor with their number

Compiled bytecode is kept in a folder of this run and is there before the first measured round, as it is after an installation.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]

BARE = """
import typer
from pydantic import BaseModel

class Row(BaseModel):
    name: str
    calculation: str
    count: int

app = typer.Typer()

@app.command()
def main(model: str) -> None:
    from rich.console import Console
    from rich.table import Table
    table = Table("name", "calculation", "count", title=model)
    for i in range(15):
        row = Row(name=f"row {i}", calculation=f"{i:,} x 4,096", count=i * 4096)
        table.add_row(row.name, row.calculation, f"{row.count:,}")
    Console().print(table)

app()
"""

TRANSFORMERS = """
import torch
from transformers import LlamaConfig, LlamaForCausalLM
with torch.device("meta"):
    model = LlamaForCausalLM(LlamaConfig(hidden_size=4096, intermediate_size=14336, num_hidden_layers=32,
        num_attention_heads=32, num_key_value_heads=8, vocab_size=128256))
print(sum(p.numel() for p in model.parameters()))
"""


def seconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def paired(ours: list[str], other: list[str], rounds: int) -> tuple[float, float, float]:
    """(median ratio other / ours, our median seconds, the other's); one unmeasured round first."""
    seconds(ours), seconds(other)
    pairs = [(seconds(ours), seconds(other)) for _ in range(rounds)]
    ratio = statistics.median(b / a for a, b in pairs)
    return ratio, statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    script = Path(sys.executable).with_name("atlas")
    atlas = [str(script), "params"] if script.exists() else [sys.executable, "-m", "atlas", "params"]
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}, {rounds} pairs")
    with tempfile.TemporaryDirectory() as folder:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(Path(folder) / "bytecode")
        bare = Path(folder) / "bare.py"
        bare.write_text(BARE)
        ratio, ours, theirs = paired([*atlas, "llama3.1-8b"], [sys.executable, str(bare), "x"], rounds)
        print(
            f"bare          atlas / bare {1 / ratio:.2f}        (atlas {ours:.3f} s, bare {theirs:.3f} s; at most 1.3)"
        )
        count = [sys.executable, "-c", TRANSFORMERS]
        ratio, ours, theirs = paired([*atlas, "llama3.1-8b"], count, max(3, rounds // 5))
        print(
            f"transformers  transformers / atlas {ratio:.1f} (atlas {ours:.3f} s, transformers {theirs:.3f} s; at least 15)"
        )
        configs = []
        for layers in (2, 126):
            config = Path(folder) / f"{layers}.json"
            shape = {
                "hidden_size": 16384,
                "intermediate_size": 53248,
                "num_attention_heads": 128,
                "vocab_size": 128256,
            }
            config.write_text(json.dumps({"model_type": "llama", "num_hidden_layers": layers, **shape}))
            configs.append(str(config))
        ratio, few, many = paired([*atlas, configs[0]], [*atlas, configs[1]], rounds)
        print(f"layers        126 / 2 layers {ratio:.2f}      ({many:.3f} s, {few:.3f} s)")
        every, one = copies(Path(folder))
        ratio, few, many = paired(one, every, rounds)
        print(f"architectures every / one {ratio:.2f}           ({many:.3f} s, {few:.3f} s)")


def copies(folder: Path) -> tuple[list[str], list[str]]:
    """The command in a copy of the program with every architecture, and in one with Llama's and the base it is like."""
    commands = []
    for name in ("every", "one"):
        shutil.copytree(ROOT / "atlas", folder / name / "atlas")
        shutil.copytree(ROOT / "specs", folder / name / "specs")
        start = (
            f"import sys; sys.path.insert(0, {str(folder / name)!r}); from atlas.__main__ import main; main()"
        )
        commands.append([sys.executable, "-c", start, "params", "llama3.1-8b"])
    for file in (folder / "one" / "specs" / "architectures").iterdir():
        if file.stem not in ("llama", "decoder"):
            file.unlink()
    return commands[0], commands[1]


if __name__ == "__main__":
    main()
