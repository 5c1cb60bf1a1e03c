"""`atlas verify` of several repositories, receipts, and the catalogue beside a configuration, over HTTP on loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from atlas.verification import batch
from atlas.verification.result import Failed
from tests.hub.fake_hub import FakeHub, File
from tests.verify.checkpoints import CONFIG, dump, hub, save

from .conftest import Ran, run
from .readme_checkpoints import LLAMA_3_2_1B


def files(folder: Path) -> dict[str, File]:
    """A small checkpoint's files as a repository holds them."""
    return {path.name: File(path.read_bytes()) for path in folder.iterdir()}


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[FakeHub]:
    with FakeHub() as made:
        made.add("tiny/good", files(save(tmp_path / "good", hub())))
        broken = hub()
        del broken["lm_head.weight"]
        made.add("tiny/broken", files(save(tmp_path / "broken", broken)))
        yield made


def verify(fake: FakeHub, home: Path, *arguments: str) -> Ran:
    return run("verify", *arguments, HF_ENDPOINT=fake.url, HF_HOME=str(home / "hf"))


def test_many_are_told_one_line_each_and_the_highest_exit_code_wins(fake: FakeHub, tmp_path: Path) -> None:
    listed = tmp_path / "repos.txt"
    listed.write_text("# what we ship\ntiny/broken\n\ntiny/nowhere\n")
    ran = verify(fake, tmp_path, "--repo", "tiny/good", "--repos-from", str(listed))
    assert ran.code == 2
    lines = {line.partition(":")[0] + line.partition("tiny/")[2][:4]: line for line in ran.out.splitlines()}
    assert set(lines) == {"verified (headers)good", "differsbrok", "unreadablenowh"}
    assert "1 tied" in lines["differsbrok"]
    found = verify(fake, tmp_path, "--repo", "tiny/good", "--repos-from", str(listed), "--json").json[
        "checkpoints"
    ]
    assert [each["source"]["location"] for each in found] == ["tiny/good", "tiny/broken", "tiny/nowhere"]
    assert found[2]["error"]["code"] == "not_found"
    assert verify(fake, tmp_path, "--repo", "tiny/good", "--repo", "tiny/broken").code == 1


def test_the_commit_is_resolved_and_shown(fake: FakeHub, tmp_path: Path) -> None:
    ran = verify(fake, tmp_path, "--repo", "tiny/good", "--json")
    assert ran.code == 0
    assert ran.json["source"]["kind"] == "hub"
    commit = ran.json["source"]["revision"]
    assert commit[:12] in verify(fake, tmp_path, "--repo", "tiny/good").out
    assert verify(fake, tmp_path, "--repo", "tiny/good", "--revision", commit).code == 0
    assert verify(fake, tmp_path, "--repo", "tiny/good", "--revision", "no-such-branch").code == 2


def test_download_fetches_then_verifies_and_the_cache_serves_offline(fake: FakeHub, tmp_path: Path) -> None:
    assert (
        verify(fake, tmp_path, "--repo", "tiny/good", "--download", "--json").json["source"]["kind"]
        == "cache"
    )
    offline = run("verify", "--repo", "tiny/good", "--json", HF_HOME=str(tmp_path / "hf"), HF_HUB_OFFLINE="1")
    assert (offline.code, offline.json["source"]["kind"]) == (0, "cache")
    assert run("verify", "--repo", "tiny/broken", HF_HOME=str(tmp_path / "hf"), HF_HUB_OFFLINE="1").code == 2


def test_deep_takes_data_on_disk_and_asks_the_hub_for_nothing(fake: FakeHub, tmp_path: Path) -> None:
    pytest.importorskip("numpy", reason="--deep reads with NumPy")
    ran = verify(fake, tmp_path, "--repo", "tiny/good", "--deep")
    assert (ran.code, fake.asked) == (2, [])
    assert "download it with --download" in ran.err
    assert verify(fake, tmp_path, "--repo", "tiny/good", "--download").code == 0
    fake.asked.clear()
    ran = verify(fake, tmp_path, "--repo", "tiny/good", "--deep", "--json")
    assert (ran.json["source"]["kind"], ran.json["deep"], fake.asked) == ("cache", True, [])


def test_a_receipt_holds_what_was_verified_and_a_page_rests_on_it(fake: FakeHub, tmp_path: Path) -> None:
    receipt = tmp_path / "receipt.json"
    assert verify(fake, tmp_path, "--repo", "tiny/good", "--receipt", str(receipt)).code == 0
    written = json.loads(receipt.read_text())
    (file,) = written["checkpoint"]["files"]
    good = tmp_path / "good" / "model.safetensors"
    assert (file["name"], file["bytes"]) == ("model.safetensors", good.stat().st_size)
    assert written["checkpoint"]["source"]["revision"]
    page = run("explain", str(tmp_path / "good"), "output", "--receipt", str(receipt))
    assert "Counted in a checkpoint" in page.out
    assert "no checkpoint" not in page.out
    other = run("explain", "llama3.1-8b", "--receipt", str(receipt))
    assert (other.code, "8,030,261,248" in other.err) == (2, True)
    receipt.write_text('{"version": "0"}')
    assert run("explain", "llama3.1-8b", "--receipt", str(receipt)).code == 2


def test_a_receipt_may_be_written_over_an_empty_file_and_over_a_receipt(tmp_path: Path) -> None:
    folder, receipt = save(tmp_path / "c", hub(), config=CONFIG), tmp_path / "made by mktemp"
    receipt.touch()
    for _ in range(2):
        assert run("verify", str(folder), "--receipt", str(receipt)).code == 0
        assert json.loads(receipt.read_text())["checkpoint"]["verdict"] == "verified"
    receipt.write_text("{}")
    ran = run("verify", str(folder), "--receipt", str(receipt))
    assert (ran.code, receipt.read_text()) == (2, "{}")
    assert "exists and is not a receipt, so it is not replaced; give another name" in ran.err


def test_no_page_rests_on_a_checkpoint_that_could_not_be_read(tmp_path: Path) -> None:
    folder, receipt = save(tmp_path / "c", hub(), config=CONFIG), tmp_path / "receipt.json"
    (folder / "model.safetensors").write_text("<!doctype html>")
    assert run("verify", str(folder), "--receipt", str(receipt)).code == 2
    ran = run("explain", str(folder), "--receipt", str(receipt))
    assert (ran.code, ran.out) == (2, "")
    assert f"{folder} could not be read, so it supports no figure" in ran.err


def test_a_deep_receipt_has_the_hash_of_every_file(tmp_path: Path) -> None:
    pytest.importorskip("numpy", reason="--deep reads with NumPy")
    import hashlib

    folder = save(tmp_path / "c", hub())
    receipt = tmp_path / "receipt.json"
    assert run("verify", str(folder), "--deep", "--receipt", str(receipt)).code == 0  # zeros are a warning
    expected = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    assert json.loads(receipt.read_text())["checkpoint"]["files"][0]["sha256"] == expected


def stale(**changes: Any) -> dict[str, Any]:
    return LLAMA_3_2_1B | {"rope_scaling": SCALED} | changes


SCALED = {
    "rope_type": "llama3",
    "factor": 32.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}


@pytest.mark.parametrize(
    ("config", "severity", "words"),
    [
        (stale(), None, ""),
        (
            stale(rope_scaling=SCALED | {"factor": 8.0}),
            "warning",
            "rope_scaling.factor is 8.0, in the catalogue 32.0",
        ),
        (stale(num_hidden_layers=15), "error", "num_hidden_layers is 15, in the catalogue 16"),
    ],
)
def test_a_catalogued_repository_is_held_against_the_catalogue_as_well(
    config: dict[str, Any], severity: str | None, words: str, tmp_path: Path
) -> None:
    tensors = hub(config)
    with FakeHub() as fake:
        from tests.verify.checkpoints import write

        dump(tmp_path / "config.json", config)
        write(tmp_path / "model.safetensors", tensors)
        with (tmp_path / "model.safetensors").open("rb") as weights:
            head = weights.read(100_000)
        size = (tmp_path / "model.safetensors").stat().st_size
        length = 8 + int.from_bytes(head[:8], "little")
        held = {
            "config.json": File((tmp_path / "config.json").read_bytes()),
            "model.safetensors": File(head[:length], size),
        }
        fake.add("meta-llama/Llama-3.2-1B", held)
        ran = verify(fake, tmp_path, "--repo", "meta-llama/Llama-3.2-1B", "--json")
    found = [f for f in ran.json["findings"] if f["code"] == "config"]
    if severity is None:
        assert (ran.code, found) == (0, [])
    else:
        assert found[0]["severity"] == severity
        assert words in found[0]["message"]
        assert ran.code == (1 if severity == "error" else 0)


def test_every_document_validates(fake: FakeHub, tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="the schema check needs jsonschema")
    schema = run("schema", "verify").json
    for repos in (
        ["tiny/good"],
        ["tiny/broken"],
        ["tiny/nowhere"],
        ["tiny/good", "tiny/broken", "tiny/nowhere"],
    ):
        asked = [word for repo in repos for word in ("--repo", repo)]
        jsonschema.validate(verify(fake, tmp_path, *asked, "--json").json, schema)
    receipt = tmp_path / "receipt.json"
    assert verify(fake, tmp_path, "--repo", "tiny/good", "--receipt", str(receipt)).code == 0
    jsonschema.validate(json.loads(receipt.read_text()), run("schema", "receipt").json)


def test_a_repository_named_twice_is_checked_once(fake: FakeHub, tmp_path: Path) -> None:
    asked = ["--repo", "tiny/good", "--repo", "tiny/broken", "--repo", "tiny/good"]
    checkpoints = verify(fake, tmp_path, *asked, "--json").json["checkpoints"]
    assert [each["source"]["location"] for each in checkpoints] == ["tiny/good", "tiny/broken"]


def test_misuse_of_verify_is_refused(tmp_path: Path) -> None:
    folder = str(save(tmp_path / "c", hub(), config=CONFIG))
    for arguments in (
        [],
        [folder, "--repo", "a/b"],
        [folder, "--revision", "main"],
        [folder, "--ignore", "bogus"],
        ["--repo", "a/b", "--repo", "c/d", "--receipt", "r.json"],
        ["--repos-from", "no-such-file"],
        [str(tmp_path / "nothing")],
    ):
        ran = run("verify", *arguments)
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1), arguments


def test_a_receipt_never_takes_the_place_of_anything_else(tmp_path: Path) -> None:
    folder = save(tmp_path / "c", hub())
    for file in ("model.safetensors", "config.json"):
        before = (folder / file).read_bytes()
        ran = run("verify", str(folder), "--receipt", str(folder / file))
        assert (ran.code, ran.out) == (2, "")
        assert (folder / file).read_bytes() == before
    receipt = folder / "receipt.json"
    assert [run("verify", str(folder), "--receipt", str(receipt)).code for _ in range(2)] == [0, 0]


def test_texts_that_never_end_are_refused(tmp_path: Path) -> None:
    if not Path("/dev/zero").exists():
        pytest.skip("there is no /dev/zero here")
    ran = run("verify", "--repos-from", "/dev/zero")
    assert (ran.code, "the limit for such a text" in ran.err) == (2, True)


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path) -> None:
    (tmp_path / "repos.txt").write_text("tiny/good\ntiny/broken\n", encoding="utf-8-sig")
    assert batch.read_repository_list(tmp_path / "repos.txt") == ["tiny/good", "tiny/broken"]


@pytest.mark.parametrize("at_once", [1, 4])
def test_a_fault_of_ours_in_one_repository_leaves_the_others_their_results(at_once: int) -> None:
    def check(repo: str) -> Any:
        if repo == "b":
            raise ValueError("unheard of")
        return repo

    found = dict(batch.outcomes(["a", "b", "c"], check, at_once=at_once))
    assert (found[0], found[2]) == ("a", "c")
    failed = found[1]
    assert isinstance(failed, Failed)
    assert (failed.error.code, failed.error.message, failed.exit_code) == (
        "internal",
        "ValueError: unheard of",
        2,
    )


@pytest.mark.parametrize("at_once", [1, 4])
def test_ctrl_c_is_nobodys_failure(at_once: int) -> None:
    def check(repo: str) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(batch.outcomes(["a", "b"], check, at_once=at_once))
