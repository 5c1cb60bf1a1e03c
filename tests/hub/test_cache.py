"""The local Hub cache: a complete snapshot is used without a request, an incomplete one is not, and downloads fill it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
from huggingface_hub import constants

from atlas.checkpoint import retry
from atlas.checkpoint.download import download
from atlas.checkpoint.remote import open_repository
from atlas.checkpoint.snapshot import cached
from atlas.errors import HubError
from tests.hub.checkpoints import CONFIG, ONE, safetensors, shard, sharded
from tests.hub.fake_hub import FakeHub

INDEX = "model.safetensors.index.json"


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Call it, and no request may be sent from then on."""
    return lambda: monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)


def test_a_complete_snapshot_takes_no_request(hub: FakeHub, offline: Callable[[], None]) -> None:
    commit = hub.add("tiny/sharded", sharded(2))
    folder = download("tiny/sharded")
    hub.asked.clear()
    for _ in ("online", "offline"):
        store = open_repository("tiny/sharded")
        assert (store.kind, store.location, store.revision) == ("cache", str(folder), commit)
        assert store.text("config.json") == CONFIG
        assert not any(found.faults for _, found in store.examine([shard(1, 2), shard(2, 2)]))
        assert (store.requests, store.bytes_read) == (0, 0)
        offline()
    assert hub.asked == []


def test_hashes_are_those_of_the_files(hub: FakeHub) -> None:
    hub.add("tiny/ok", ONE)
    there = open_repository("tiny/ok").hashes()
    folder = download("tiny/ok")
    here = open_repository("tiny/ok").hashes()
    assert (
        here
        == there
        == {"model.safetensors": hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()}
    )


@pytest.mark.parametrize(
    ("gone", "lacking"),
    [
        (["config.json"], ("config.json",)),
        ([shard(2, 3)], (shard(2, 3),)),
        ([shard(1, 3), shard(3, 3)], (shard(1, 3), shard(3, 3))),
        ([INDEX, shard(2, 3)], (shard(2, 3),)),
        ([INDEX, *(shard(i, 3) for i in (1, 2, 3))], ("model.safetensors",)),
    ],
)
def test_an_incomplete_snapshot(
    hub: FakeHub, offline: Callable[[], None], gone: list[str], lacking: tuple[str, ...]
) -> None:
    hub.add("tiny/sharded", sharded(3))
    folder = download("tiny/sharded")
    for name in gone:
        (folder / name).unlink()
    snapshot = cached("tiny/sharded")
    assert snapshot is not None
    assert snapshot.lacking() == lacking
    assert open_repository("tiny/sharded").kind == "hub"
    offline()
    with pytest.raises(HubError) as caught:
        open_repository("tiny/sharded")
    assert caught.value.code == "offline"
    assert f"tiny/sharded is in the local cache without {lacking[0]}" in caught.value.message


def test_a_link_that_leads_nowhere_is_lacking(hub: FakeHub) -> None:
    hub.add("tiny/ok", ONE)
    (download("tiny/ok") / "model.safetensors").resolve().unlink()
    snapshot = cached("tiny/ok")
    assert snapshot is not None
    assert snapshot.lacking() == ("model.safetensors",)


def test_an_index_that_cannot_be_read_is_for_the_verifier(hub: FakeHub) -> None:
    hub.add("tiny/odd", {"config.json": CONFIG, INDEX: b"{}{}", "model.safetensors": safetensors(["a"])})
    download("tiny/odd")
    assert open_repository("tiny/odd").kind == "cache"


def test_a_download_that_is_there_already_and_offline(hub: FakeHub, offline: Callable[[], None]) -> None:
    hub.add("tiny/ok", ONE)
    folder = download("tiny/ok")
    offline()
    assert download("tiny/ok") == folder


def test_nothing_there_and_offline(hub: FakeHub, offline: Callable[[], None]) -> None:
    offline()
    with pytest.raises(HubError, match="tiny/ok is not in the local cache, and HF_HUB_OFFLINE is set"):
        open_repository("tiny/ok")
    assert hub.asked == []


def test_another_revision_than_the_one_in_the_cache(hub: FakeHub, offline: Callable[[], None]) -> None:
    first = hub.add("tiny/ok", ONE)
    download("tiny/ok")
    second = hub.add("tiny/ok", ONE, branch="v2")
    assert open_repository("tiny/ok", "v2").revision == second
    offline()
    assert open_repository("tiny/ok", first).revision == first
    with pytest.raises(HubError):
        open_repository("tiny/ok", "v2")


# ---------------------------------------------------------------- downloads


def test_a_download_takes_the_model_once(hub: FakeHub) -> None:
    """Not the second copy, not what lies in folders, not the pickles."""
    more = [
        "consolidated.safetensors",
        "pytorch_model.bin",
        "README.md",
        "original/params.json",
        "onnx/model.onnx",
    ]
    hub.add("tiny/both", {**sharded(2), **dict.fromkeys(more, b"more"), "tokenizer.json": b"{}"})
    folder = download("tiny/both")
    there = sorted(path.name for path in folder.iterdir())
    assert there == ["config.json", shard(1, 2), shard(2, 2), INDEX, "tokenizer.json"]


def test_a_download_is_taken_up_where_it_broke_off(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "WAITS", (0.01, 0.01, 0.01))
    data = safetensors([f"layer.{i}" for i in range(20_000)])
    hub.add("tiny/long", {"config.json": CONFIG, "model.safetensors": data})
    hub.faults["cdn/model.safetensors"] = ["cut"]
    assert (download("tiny/long") / "model.safetensors").read_bytes() == data
    ranges = [
        asked.headers["range"] for asked in hub.asked if "range" in asked.headers and asked.host == "cdn"
    ]
    assert len(ranges) == 1
    assert int(ranges[0].removeprefix("bytes=").partition("-")[0]) > len(data) // 3


def test_a_download_without_progress_is_silent(hub: FakeHub, capfd: pytest.CaptureFixture[str]) -> None:
    hub.add("tiny/sharded", sharded(3))
    download("tiny/sharded", progress=False)
    assert capfd.readouterr() == ("", "")


def test_a_downloaded_repository_that_another_process_reads(hub: FakeHub, cache: Path) -> None:
    """By branch, so that a later call without a revision, or offline, finds it."""
    hub.add("tiny/ok", ONE)
    download("tiny/ok")
    assert (cache / "models--tiny--ok" / "refs" / "main").is_file()
