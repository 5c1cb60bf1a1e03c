"""Ctrl-C ends at once, however long the Hub takes to answer."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.hub.checkpoints import CONFIG, safetensors, sharded
from tests.hub.fake_hub import FakeHub, File

READ = """
import sys
from atlas.checkpoint.remote import open_repository
try:
    store = open_repository("tiny/slow")
    list(store.examine([name for name in store.files() if name.endswith("safetensors")]))
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.parametrize("where", ["api", "model-00001-of-00060.safetensors"])
def test_ctrl_c_ends_at_once(tmp_path: Path, where: str) -> None:
    with FakeHub() as hub:
        hub.add("tiny/slow", sharded(60))
        names = ["api"] if where == "api" else [name for name in sharded(60) if name.endswith("safetensors")]
        hub.faults = {name: ["stall"] for name in names}
        env = {
            **os.environ,
            "HF_ENDPOINT": hub.url,
            "HF_HOME": str(tmp_path),
            "HF_HUB_DISABLE_TELEMETRY": "1",
        }
        reader = subprocess.Popen([sys.executable, "-c", READ], env=env, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 20
        while not any(where in asked.path for asked in hub.asked) and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.1)
        reader.send_signal(signal.SIGINT)
        begin = time.monotonic()
        _, errors = reader.communicate(timeout=20)
        assert time.monotonic() - begin < 1
        assert (reader.returncode, errors) == (130, "")


SEVERAL = ["verify", "--repo", "tiny/one", "--repo", "tiny/two", "--json"]


def atlas(hub: FakeHub, home: Path, *arguments: str) -> subprocess.Popen[str]:
    """The command line as a process of its own, which talks to this Hub."""
    env = {**os.environ, "HF_ENDPOINT": hub.url, "HF_HOME": str(home), "HF_HUB_DISABLE_TELEMETRY": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "atlas", *arguments],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ends_within_a_second(reader: subprocess.Popen[str], hub: FakeHub, where: str, many: int = 1) -> None:
    """Ctrl-C, once the Hub has been asked for it so often: exit 130 and not a word."""
    deadline = time.monotonic() + 20
    while hub.count(where) < many and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.3)
    reader.send_signal(signal.SIGINT)
    begin = time.monotonic()
    try:
        out, errors = reader.communicate(timeout=20)
    finally:
        reader.kill()
    assert time.monotonic() - begin < 1
    assert (reader.returncode, out) == (130, "")
    assert "error" not in errors.lower()
    assert "Traceback" not in errors


@pytest.mark.parametrize("fault", ["stall", 503])
def test_ctrl_c_ends_several_repositories_at_once(tmp_path: Path, fault: str | int) -> None:
    """Whether they wait for an answer, or for the moment that a server asked for."""
    with FakeHub() as hub:
        hub.wait = "20"
        hub.add("tiny/one", sharded(2))
        hub.add("tiny/two", sharded(2))
        hub.faults["api"] = [fault] * 8
        ends_within_a_second(atlas(hub, tmp_path, *SEVERAL), hub, "/api/models/tiny", 2)


@pytest.mark.parametrize("many", [1, 2])
def test_ctrl_c_ends_a_download_at_once_and_another_goes_on(tmp_path: Path, many: int) -> None:
    """At 6 MB/s a file of 50 MB would go on for 6 s."""
    head, size = safetensors(["a"]), 50 * 10**6
    repos = ["tiny/one", "tiny/two"][:many]
    with FakeHub() as hub:
        for repo in repos:
            hub.add(repo, {"config.json": CONFIG, "model.safetensors": File(head, size)})
        hub.faults["cdn/model.safetensors"] = ["slow"] * 4
        asked = [word for repo in repos for word in ("--repo", repo)]
        atlas_downloads = atlas(hub, tmp_path, "verify", *asked, "--download", "--json")
        deadline = time.monotonic() + 20
        while _sent(hub) < 12 * 10**6 and time.monotonic() < deadline:
            time.sleep(0.02)
        ends_within_a_second(atlas_downloads, hub, "/cdn/", many)
        assert _sent(hub) < size
        if sys.platform == "linux":
            unique = "*.[0-9a-f]" + 7 * "[0-9a-f]" + ".incomplete"
            assert list(tmp_path.rglob("config.json"))
            assert not list(tmp_path.rglob(unique))
        hub.faults.clear()
        again = atlas(hub, tmp_path, "verify", "--repo", repos[0], "--download", "--json")
        out, _ = again.communicate(timeout=60)
        assert json.loads(out)["source"]["kind"] == "cache"


def _sent(hub: FakeHub) -> int:
    """Of the one file of which most has been sent."""
    return max((asked.sent for asked in hub.asked if "/cdn/" in asked.path), default=0)
