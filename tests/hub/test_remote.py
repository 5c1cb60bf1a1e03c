"""A repository on the Hub read where it is: the same answers as a folder, pinned to one commit, in few requests."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from math import prod
from pathlib import Path
from queue import SimpleQueue

import pytest

from atlas.checkpoint import retry, workers
from atlas.checkpoint.inventory import take
from atlas.checkpoint.remote import Repository, open_repository
from atlas.checkpoint.store import Folder, Store
from atlas.errors import CheckpointError
from tests.hub.checkpoints import CONFIG, ONE, safetensors, shard, sharded
from tests.hub.fake_hub import FakeHub, File

TOKEN = "hf_PlantedTokenThatNobodyMayRead"
INDEX = "model.safetensors.index.json"


def examined(store: Store, *names: str) -> dict[str, str]:
    """What a store says of its files, without where it found them and what to do about them."""
    plain = {
        name: replace(found, faults=tuple(replace(fault, hint="") for fault in found.faults))
        for name, found in store.examine(names)
    }
    return {name: repr(found).replace(f"{store.location}/", "") for name, found in plain.items()}


ODD = {
    "cut.safetensors": safetensors(["a", "b", "c"])[:-20],
    "empty.safetensors": b"",
    "long.safetensors": safetensors([f"layer.{i}" for i in range(2000)]),
    "longer.safetensors": safetensors(["a"], metadata=3_000_000),
    "page.safetensors": b"<!DOCTYPE html><title>Sign in</title>",
    "pointer.safetensors": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 4976698672\n",
    "promises.safetensors": (2**40).to_bytes(8, "little") + b"{}",
    "no_object.safetensors": (90_000).to_bytes(8, "little") + b"[" + bytes(100_000),
    "sound.safetensors": safetensors(["a", "b"]),
    "three.safetensors": b"abc",
    "trailing.safetensors": safetensors(["a"]) + b"and more",
}


def test_the_hub_gives_what_a_folder_gives(hub: FakeHub, tmp_path: Path) -> None:
    for name, data in {**ODD, "config.json": CONFIG}.items():
        (tmp_path / name).write_bytes(data)
    hub.add("tiny/odd", {**ODD, "config.json": CONFIG, "original/params.json": b"{}"})
    here, there = Folder(tmp_path), open_repository("tiny/odd")
    assert there.files() == here.files()
    assert there.text("config.json") == here.text("config.json")
    assert examined(there, *ODD) == examined(here, *ODD)
    ((_, cut),) = open_repository("tiny/odd").examine(["cut.safetensors"])
    assert cut.faults[0].hint == "the file on the Hub has this fault; its publisher must replace it"


def test_what_the_first_bytes_show_to_be_no_header_is_not_fetched(hub: FakeHub) -> None:
    """Whatever length stands before it."""
    no_header = File((90_000_000).to_bytes(8, "little") + b"[" + bytes(50_000), 10**9)
    hub.add("tiny/odd", {"config.json": CONFIG, "model.safetensors": no_header})
    ((_, found),) = open_repository("tiny/odd").examine(["model.safetensors"])
    assert "the header is not a JSON object" in found.faults[0].message
    assert sum(asked.sent for asked in hub.asked) < 100_000


def test_kind_commit_and_hashes(hub: FakeHub) -> None:
    commit = hub.add("tiny/ok", ONE)
    store = open_repository("tiny/ok")
    assert (store.kind, store.location, store.revision) == ("hub", "tiny/ok", commit)
    assert store.hashes() == {"model.safetensors": File(ONE["model.safetensors"]).sha256}


def test_what_is_not_there(hub: FakeHub) -> None:
    hub.add("tiny/ok", ONE)
    store = open_repository("tiny/ok")
    with pytest.raises(CheckpointError, match=r"tiny/ok/params\.json.*not in the repository"):
        store.text("params.json")
    (found,) = dict(store.examine(["other.safetensors"])).values()
    assert found.header is None
    assert [fault.code for fault in found.faults] == ["header"]


def test_a_text_of_absurd_length_is_not_read(hub: FakeHub) -> None:
    hub.add("tiny/long", {"config.json": File(b"{", 10**9)})
    with pytest.raises(CheckpointError, match="1,000,000,000 bytes long; the limit"):
        open_repository("tiny/long").text("config.json")
    assert hub.count("config.json") == 0


# ---------------------------------------------------------------- the commit


def test_a_branch_that_moves_is_read_where_it_was(hub: FakeHub) -> None:
    before = hub.add("tiny/moves", sharded(3))
    store = Repository("tiny/moves")
    hub.add("tiny/moves", {"config.json": b"another"})
    store.prefetch()
    assert store.text("config.json") == CONFIG
    assert len(examined(store, *(shard(i, 3) for i in (1, 2, 3)))) == 3
    assert all(before in asked.path for asked in hub.asked[1:])


@pytest.mark.parametrize("how", ["branch", "commit"])
def test_another_revision(hub: FakeHub, how: str) -> None:
    commit = hub.add("tiny/ok", {"config.json": b"other"}, branch="refs/pr/1")
    hub.add("tiny/ok", ONE)
    store = open_repository("tiny/ok", "refs/pr/1" if how == "branch" else commit)
    assert store.revision == commit
    assert store.text("config.json") == b"other"


# ---------------------------------------------------------------- few requests, few bytes


def test_a_range_for_each_shard_and_no_more_than_was_asked_for(hub: FakeHub) -> None:
    hub.redirects = False
    files = {name: File(f, 10**10) if name.startswith("model-") else f for name, f in sharded(7).items()}
    hub.add("tiny/sharded", files)
    store = open_repository("tiny/sharded")
    shards = set(json.loads(store.text(INDEX))["weight_map"].values())
    assert len(examined(store, *shards)) == 7
    store.text("config.json")
    # The listing, configuration, index, and seven ranges.
    assert store.requests == len(hub.asked) == 10
    ranges = [asked for asked in hub.asked if "range" in asked.headers]
    assert len(ranges) == 7
    assert all(asked.sent == 4096 for asked in ranges)
    assert store.bytes_read == sum(asked.sent for asked in hub.asked[1:])


def test_a_listing_asked_for_again_counts_again(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "WAITS", (0.01, 0.01, 0.01))
    hub.add("tiny/ok", ONE)
    hub.faults["api"] = [503, 503]
    store = open_repository("tiny/ok")
    store.text("config.json")
    examined(store, "model.safetensors")
    # Three for the listing, two each for the files.
    assert store.requests == len(hub.asked) == 7
    assert store.bytes_read == len(CONFIG) + len(ONE["model.safetensors"])


def test_a_header_longer_than_foreseen_takes_a_second_range(hub: FakeHub) -> None:
    hub.redirects = False
    data = safetensors(["a"], metadata=100_000)
    hub.add("tiny/long", {"model.safetensors": File(data, 10**10)})
    store = open_repository("tiny/long")
    examined(store, "model.safetensors")
    ranges = [asked.headers["range"] for asked in hub.asked if "range" in asked.headers]
    assert ranges == ["bytes=0-39999", f"bytes=40000-{len(data) - 17}"]


@pytest.mark.parametrize(
    "name",
    [
        "gemma-2b@27b76a6",
        "granite-3b-code-128k",
        "llama-2-13b-elyza",
        "llama-2-70b-lzlv",
        "llama-3.1-8b-modelstock",
        "llama-3.2-3b",
        "llama-7b",
        "mixtral-8x7b",
        "qwen2-cogito-14b",
        "yi-1.5-6b-slerp",
    ],
)
def test_published_checkpoints_take_one_range_for_each_shard(shared: Path, name: str, hub: FakeHub) -> None:
    """Their names and shapes in bfloat16: not one header is longer than what is asked for first."""
    folder = shared / "real" / name
    index = (folder / "index.json").read_bytes()
    shapes = json.loads((folder / "expected_shapes.json").read_bytes())
    headers: dict[str, dict[str, object]] = {}
    sizes: dict[str, int] = {}
    for tensor, file in json.loads(index)["weight_map"].items():
        shape = shapes.get(tensor, [64])  # old rotary buffers have none there
        span = [sizes.get(file, 0), sizes.get(file, 0) + 2 * prod(shape)]
        headers.setdefault(file, {})[tensor] = {"dtype": "BF16", "shape": shape, "data_offsets": span}
        sizes[file] = span[1]
    files: dict[str, bytes | File] = {INDEX: index}
    for file, header in headers.items():
        raw = json.dumps({"__metadata__": {"format": "pt"}, **header}, separators=(",", ":")).encode()
        files[file] = File(len(raw).to_bytes(8, "little") + raw, 8 + len(raw) + sizes[file])
    hub.redirects = False
    hub.add("real/one", files)
    store = open_repository("real/one")
    assert not any(found.faults for _, found in store.examine(headers))
    assert sum("range" in asked.headers for asked in hub.asked) == len(headers)


def test_a_second_copy_is_not_asked_for(hub: FakeHub) -> None:
    hub.add("tiny/both", {**sharded(2), "consolidated.safetensors": safetensors(["a"])})
    store = open_repository("tiny/both")
    examined(store, shard(1, 2), shard(2, 2))
    assert hub.count("consolidated") == 0


def test_connections_are_kept(hub: FakeHub) -> None:
    names = [f"{i}.json" for i in range(20)]
    hub.add("tiny/texts", dict.fromkeys(names, b"{}"))
    store = open_repository("tiny/texts")
    for name in names:
        store.text(name)
    assert store.requests == 41
    assert next(hub.connections) <= 2


def test_requests_in_flight_are_bounded(hub: FakeHub) -> None:
    hub.latency = 0.05
    hub.add("tiny/many", sharded(150))
    store = open_repository("tiny/many")
    assert len(examined(store, *(shard(i, 150) for i in range(1, 151)))) == 150
    assert 8 < hub.most_at_once <= workers.MOST_WORKERS


def test_several_repositories_at_once(hub: FakeHub) -> None:
    for i in range(8):
        hub.add(f"tiny/no{i}", {**sharded(5, tensors=i + 1), "config.json": b"%d" % i})

    def read(i: int) -> tuple[bytes, int]:
        store = open_repository(f"tiny/no{i}")
        headers = [found.header for _, found in store.examine(shard(n, 5) for n in range(1, 6))]
        return store.text("config.json"), sum(len(header.tensors) for header in headers if header)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(read, range(8))) == [(b"%d" % i, 5 * (i + 1)) for i in range(8)]


# ---------------------------------------------------------------- the token


def test_the_token_goes_to_the_hub_and_not_to_the_cdn(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    hub.add("tiny/gated", ONE, gated=True, allowed=(TOKEN,))
    store = open_repository("tiny/gated")
    assert store.text("config.json") == CONFIG
    examined(store, "model.safetensors")
    for asked in hub.asked:
        assert asked.headers.get("authorization") == (f"Bearer {TOKEN}" if asked.host == "hub" else None)
    assert {asked.host for asked in hub.asked} == {"hub", "cdn"}


def test_files_in_folders_that_an_index_names(hub: FakeHub) -> None:
    """Others in folders are nobody's: a repository of Meta's has its own files below."""
    data = safetensors(["a"])
    index = json.dumps({"weight_map": {"a": "sub/model-00001-of-00001.safetensors"}}).encode()
    below: dict[str, bytes | File] = {
        "sub/model-00001-of-00001.safetensors": data,
        "original/consolidated.00.safetensors": b"",
        INDEX: index,
    }
    hub.add("tiny/below", below)
    store = open_repository("tiny/below")
    found = take(store)
    assert (list(found.headers), list(found.tensors), found.absent) == (
        ["sub/model-00001-of-00001.safetensors"],
        ["a"],
        {},
    )
    assert "original/consolidated.00.safetensors" not in found.sizes


@pytest.mark.parametrize("allowed", [0, 1])
def test_a_system_that_allows_few_threads(
    hub: FakeHub, monkeypatch: pytest.MonkeyPatch, allowed: int
) -> None:
    """What a limit on processes or on memory makes of it: one thread is enough, none is an error of its own."""
    hub.add("tiny/ok", ONE)
    start, left = threading.Thread.start, [allowed]

    def limited(thread: threading.Thread) -> None:
        if thread.name == "atlas-hub":
            if not left[0]:
                raise RuntimeError("can't start new thread")
            left[0] -= 1
        start(thread)

    monkeypatch.setattr(workers, "_threads", [])
    monkeypatch.setattr(workers, "_jobs", SimpleQueue())
    monkeypatch.setattr(threading.Thread, "start", limited)
    if allowed:
        assert examined(open_repository("tiny/ok"), "model.safetensors")
    else:
        with pytest.raises(MemoryError):
            open_repository("tiny/ok")
