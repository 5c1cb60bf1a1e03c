"""Reading every header of a checkpoint on the Hub: the atlas against `huggingface_hub.get_safetensors_metadata`.

    python benchmarks/remote_headers.py [--rounds 7] [--latency 0.05] [--handshake 0] [--redirects]

Both ask the same server on loopback, in a process of its own, which waits before each answer and, with --handshake, before
it reads from a new connection. It serves two checkpoints with the names and shapes of Llama 3.1 8B in 4 shards and 405B in
191; their weights are zeros that nobody should ask for. The atlas reads listing, configuration, index and headers, and
checks them. In each round the two run one after the other, with an empty cache, new connections and imports done; given are
the median of the rounds' ratios, and requests, bytes of bodies and connections as the server counts them.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.hub.fake_hub import FakeHub, File

LLAMAS = {
    "8b": {"dim": 4096, "ffn_dim": 14336, "layers": 32, "kv": 1024, "shard": 5 * 10**9},
    "405b": {"dim": 16384, "ffn_dim": 53248, "layers": 126, "kv": 1024, "shard": 5 * 10**9},
}


def tensors(dim: int, ffn_dim: int, layers: int, kv: int) -> Iterator[tuple[str, list[int]]]:
    yield "model.embed_tokens.weight", [128256, dim]
    for i in range(layers):
        layer = f"model.layers.{i}"
        yield f"{layer}.input_layernorm.weight", [dim]
        yield f"{layer}.mlp.down_proj.weight", [dim, ffn_dim]
        yield f"{layer}.mlp.gate_proj.weight", [ffn_dim, dim]
        yield f"{layer}.mlp.up_proj.weight", [ffn_dim, dim]
        yield f"{layer}.post_attention_layernorm.weight", [dim]
        yield f"{layer}.self_attn.k_proj.weight", [kv, dim]
        yield f"{layer}.self_attn.o_proj.weight", [dim, dim]
        yield f"{layer}.self_attn.q_proj.weight", [dim, dim]
        yield f"{layer}.self_attn.v_proj.weight", [kv, dim]
    yield "model.norm.weight", [dim]
    yield "lm_head.weight", [128256, dim]


def checkpoint(shard: int, **dims: int) -> dict[str, bytes | File]:
    """The files of a Llama in bfloat16, in shards of at most so many bytes."""
    shards: list[dict[str, object]] = [{}]
    ends = [0]
    for name, shape in tensors(**dims):
        size = 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        if shards[-1] and ends[-1] + size > shard:
            shards.append({})
            ends.append(0)
        shards[-1][name] = {"dtype": "BF16", "shape": shape, "data_offsets": [ends[-1], ends[-1] + size]}
        ends[-1] += size
    files: dict[str, bytes | File] = {"config.json": b'{"model_type": "llama"}'}
    places = {}
    for i, (entries, end) in enumerate(zip(shards, ends, strict=True), 1):
        file = f"model-{i:05}-of-{len(shards):05}.safetensors"
        raw = json.dumps({"__metadata__": {"format": "pt"}, **entries}, separators=(",", ":")).encode()
        raw += b" " * (-len(raw) % 8)
        files[file] = File(struct.pack("<Q", len(raw)) + raw, 8 + len(raw) + end)
        places |= dict.fromkeys(entries, file)
    index = {"metadata": {"total_size": sum(ends)}, "weight_map": places}
    files["model.safetensors.index.json"] = json.dumps(index, indent=2).encode()
    return files


def serve(latency: float, handshake: float, redirects: bool, wire: Connection) -> None:
    with FakeHub(latency=latency, handshake=handshake, redirects=redirects) as hub:
        wire.send(hub.url)
        for name, llama in LLAMAS.items():
            hub.add(f"bench/{name}", checkpoint(**llama))
        while wire.recv():
            wire.send((len(hub.asked), sum(asked.sent for asked in hub.asked), next(hub.connections)))
            hub.asked.clear()


def atlas(repo: str) -> int:
    from atlas.checkpoint.remote import open_repository

    store = open_repository(repo)
    store.text("config.json")
    places = json.loads(store.text("model.safetensors.index.json"))["weight_map"]
    examined = dict(store.examine(set(places.values())))
    assert not any(found.faults for found in examined.values())
    return sum(len(found.header.tensors) for found in examined.values() if found.header)


def huggingface_hub(repo: str) -> int:
    from huggingface_hub import get_safetensors_metadata

    metadata = get_safetensors_metadata(repo)
    return sum(len(file.tensors) for file in metadata.files_metadata.values())


def timed(read: Callable[[str], int], repo: str, wire: Connection) -> tuple[float, int, int, int]:
    """Seconds, requests, bytes and connections of one call, cold."""
    from huggingface_hub import close_session, constants, get_session

    close_session()
    get_session()  # reads the certificates, once in a process
    with tempfile.TemporaryDirectory() as cache:
        constants.HF_HUB_CACHE = cache
        wire.send(True)
        opened = wire.recv()[2]
        start = time.perf_counter()
        read(repo)
        seconds = time.perf_counter() - start
    wire.send(True)
    requests, sent, connections = wire.recv()
    return seconds, requests, sent, connections - opened - 1


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--latency", type=float, default=0.05, metavar="SECONDS")
    parser.add_argument("--handshake", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--redirects", action="store_true", help="files behind redirects, as on the Hub")
    options = parser.parse_args()
    wire, other = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(
        target=serve, args=(options.latency, options.handshake, options.redirects, other), daemon=True
    )
    server.start()
    home = tempfile.mkdtemp()
    os.environ |= {
        "HF_ENDPOINT": wire.recv(),
        "HF_HOME": home,
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_TOKEN": "hf_bench",
    }
    print(f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}, {vars(options)}")
    for name in LLAMAS:
        repo = f"bench/{name}"
        for read in (atlas, huggingface_hub):
            read(repo)
        rounds = [
            (timed(atlas, repo, wire), timed(huggingface_hub, repo, wire)) for _ in range(options.rounds)
        ]
        ratio = statistics.median(theirs[0] / ours[0] for ours, theirs in rounds)
        ours, theirs = (
            tuple(statistics.median(column) for column in zip(*side, strict=True))
            for side in zip(*rounds, strict=True)
        )
        less = f"{ours[2] / theirs[2]:.2f} of the bytes, {ours[1] / theirs[1]:.2f} of the requests"
        print(f"{name:>5}: {ratio:.1f} × faster, {less}")
        for what, (seconds, requests, sent, connections) in (("atlas", ours), ("huggingface_hub", theirs)):
            counts = f"{requests:5.0f} requests {sent:12,.0f} bytes {connections:4.0f} connections"
            print(f"       {what:16} {seconds * 1000:7.0f} ms {counts}")
    wire.send(False)


if __name__ == "__main__":
    main()
