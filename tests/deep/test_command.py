"""`atlas verify --deep` as a user runs it."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import REPOSITORY, run
from tests.deep.files import Stored, ones, words, write
from tests.verify.checkpoints import CONFIG, TOKENIZER, T, hub
from tests.verify.checkpoints import write as sparse


@pytest.fixture
def good(tmp_path: Path) -> Path:
    write(tmp_path / "model.safetensors", ones(hub()))
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    return tmp_path


def test_of_a_good_one_the_verdict_and_what_was_read(good: Path) -> None:
    size = (good / "model.safetensors").stat().st_size
    ran = run("verify", str(good), "--deep")
    assert (ran.code, ran.err) == (0, "")
    verdict, data = ran.out.splitlines()
    assert verdict.startswith("verified (headers, data): ")
    assert data == f"data: {size:,} bytes read; no hash is recorded for any weight file"
    (good / "checklist.chk").write_text(
        hashlib.md5((good / "model.safetensors").read_bytes()).hexdigest() + "  model.safetensors\n"
    )
    assert run("verify", str(good), "--deep").out.endswith(
        "; the hash of the weight file compared with the one recorded in checklist.chk\n"
    )
    [file] = run("verify", str(good), "--deep", "--json").json["files"]
    assert file["checked_against"] == "checklist.chk"


def test_all_that_the_data_shows(good: Path) -> None:
    """A NaN, a matrix of zeros, and a byte that the checklist does not know."""
    name, zero = "model.layers.1.mlp.up_proj.weight", "model.layers.2.mlp.down_proj.weight"
    tensors = ones(hub())
    whole = hashlib.sha256((good / "model.safetensors").read_bytes()).hexdigest()
    (good / "checklist.chk").write_text(f"{whole}  model.safetensors\n")
    tensors[name] = Stored("BF16", (80, 48), words(80 * 48, 2, {50: 0x7FC0}, 0x3F80))
    tensors[zero] = Stored("BF16", (48, 80), bytes(2 * 48 * 80))
    write(good / "model.safetensors", tensors)
    ran = run("verify", str(good), "--deep", "--json")
    assert (ran.code, ran.err) == (1, "")
    found = {finding["code"]: finding for finding in ran.json["findings"]}
    assert found.keys() == {"hash", "nonfinite", "zero"}
    assert (found["nonfinite"]["tensor"], found["nonfinite"]["count"]) == (name, 1)
    assert found["nonfinite"]["found"] == [1, 2]  # element 50 of rows of 48
    assert (found["zero"]["tensor"], found["zero"]["severity"]) == (zero, "warning")
    assert found["hash"]["expected"] == whole
    assert ran.json["verdict"] == "differs"
    ignoring = run("verify", str(good), "--deep", "--ignore", "hash,nonfinite")
    assert ignoring.code == 0
    assert run("verify", str(good), "--deep", "--ignore", "hash,nonfinite", "--strict").code == 1


def test_without_deep_the_data_is_not_read(good: Path) -> None:
    tensors = ones(hub())
    tensors["model.norm.weight"] = Stored("BF16", (48,), words(48, 2, {0: 0x7FC0}))
    write(good / "model.safetensors", tensors)
    assert run("verify", str(good)).code == 0
    assert run("verify", str(good), "--deep").code == 1


def test_repositories_of_the_cache_one_after_the_other(tmp_path: Path) -> None:
    """Their files have their SHA-256 for a name, of which the second one's is not right."""
    for name in ("good", "bad"):
        repository = tmp_path / f"models--tiny--{name}"
        snapshot = repository / "snapshots" / ("c" * 40)
        write(repository / "blobs/weights", ones(hub()))
        digest = hashlib.sha256((repository / "blobs/weights").read_bytes()).hexdigest()
        blob = digest if name == "good" else digest[::-1]
        (repository / "blobs/weights").rename(repository / "blobs" / blob)
        snapshot.mkdir(parents=True)
        (repository / "refs").mkdir()
        (repository / "refs/main").write_text("c" * 40)
        (snapshot / "config.json").write_text(json.dumps(CONFIG))
        (snapshot / "tokenizer.json").write_text(json.dumps(TOKENIZER))
        (snapshot / "model.safetensors").symlink_to(f"../../blobs/{blob}")
    cache = {"HF_HUB_CACHE": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    ran = run("verify", "--repo", "tiny/good", "--repo", "tiny/bad", "--deep", "--json", **cache)
    assert (ran.code, ran.err) == (1, "")
    good, bad = ran.json["checkpoints"]
    assert (good["verdict"], good["findings"]) == ("verified", [])
    assert [finding["code"] for finding in bad["findings"]] == ["hash"]
    assert bad["findings"][0]["expected"] == bad["findings"][0]["found"][::-1]


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_ctrl_c_ends_within_a_second(options: tuple[str, ...], tmp_path: Path) -> None:
    """While eight gibibytes go through a hash, which takes many seconds on any machine."""
    files = [f"model-0000{i}-of-00004.safetensors" for i in range(1, 5)]
    for file in files:
        sparse(tmp_path / file, {f"w{file[9]}": T((2**15, 2**15))})
    (tmp_path / "checklist.chk").write_text("".join(f"{'0' * 64}  {file}\n" for file in files))
    if not Path("/proc/self/task").is_dir():
        pytest.skip("that the threads are at work is read from /proc")
    reader = subprocess.Popen(
        [sys.executable, "-m", "atlas", "verify", str(tmp_path), "--deep", *options],
        # NumPy's library starts threads of its own when it is imported, unless it is told not to.
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "OPENBLAS_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 30
    while len(os.listdir(f"/proc/{reader.pid}/task")) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.3)
    reader.send_signal(signal.SIGINT)
    begin = time.monotonic()
    out, errors = reader.communicate(timeout=20)
    assert time.monotonic() - begin < 1
    assert (reader.returncode, out, errors) == (130, "", "")
