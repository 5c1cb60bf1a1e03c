"""What the Hub refuses and what goes wrong on the way, each told apart, with what to do, and never with a token."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants

from atlas.checkpoint import hub_config as hub_module
from atlas.checkpoint import response_body, retry
from atlas.checkpoint.download import download
from atlas.checkpoint.remote import open_repository
from atlas.errors import HubError
from tests.cli.conftest import run
from tests.hub.checkpoints import CONFIG, ONE, safetensors, shard, sharded
from tests.hub.fake_hub import FakeHub, File

TOKEN = "hf_PlantedTokenThatNobodyMayRead"


@pytest.fixture(autouse=True)
def _in_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "WAITS", (0.01, 0.01, 0.01))


def read(repo: str, revision: str | None = None) -> None:
    """What a check does with a repository."""
    store = open_repository(repo, revision)
    store.text("config.json")
    for _ in store.examine(name for name in store.files() if name.endswith(".safetensors")):
        pass


def refused(repo: str, revision: str | None = None, ask: Callable[..., Any] = read) -> HubError:
    with pytest.raises(HubError) as caught:
        ask(repo, revision)
    said = f"{caught.value.message} {caught.value.hint}"
    assert TOKEN not in said
    assert "signature" not in said
    return caught.value


# ---------------------------------------------------------------- who may read what


def test_gated_without_a_token(hub: FakeHub) -> None:
    hub.add("tiny/gated", ONE, gated=True)
    error = refused("tiny/gated")
    assert error.code == "gated"
    assert error.message == "tiny/gated is gated, and no token with access to it was given"
    assert f"{hub.url}/tiny/gated" in error.hint
    assert "HF_TOKEN" in error.hint


def test_gated_with_a_token_that_has_no_access(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    hub.add("tiny/gated", ONE, gated=True)
    error = refused("tiny/gated")
    assert error.code == "forbidden"
    assert "ask for access" in error.hint
    assert "HF_TOKEN" not in error.hint


@pytest.mark.parametrize("logged_in", [False, True])
def test_not_there(hub: FakeHub, monkeypatch: pytest.MonkeyPatch, logged_in: bool) -> None:
    """Which the Hub answers with 401 to who is not logged in, else with 404."""
    if logged_in:
        monkeypatch.setenv("HF_TOKEN", TOKEN)
    error = refused("tiny/nothere")
    assert error.code == "not_found"
    assert "tiny/nothere: no such repository" in error.message
    assert "gated" not in error.message


def test_private(hub: FakeHub) -> None:
    hub.add("tiny/private", ONE, private=True)
    assert refused("tiny/private").code == "not_found"


def test_no_such_revision(hub: FakeHub) -> None:
    hub.add("tiny/ok", ONE)
    error = refused("tiny/ok", "v9")
    assert (error.code, error.message) == ("not_found", "tiny/ok: no such revision")


def test_a_token_that_the_hub_does_not_know(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    hub.known = {"another"}
    hub.add("tiny/ok", ONE)
    error = refused("tiny/ok")
    assert error.code == "token"
    assert "hf auth login" in error.hint


def test_a_token_that_cannot_be_sent(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN + "ü")
    hub.add("tiny/ok", ONE)
    assert refused("tiny/ok").code == "token"


def test_disabled(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    hub.add("tiny/off", ONE, disabled=True)
    assert refused("tiny/off").code == "forbidden"


@pytest.mark.parametrize("name", ["a//b", "../etc", "a/b/c", "", "tiny/ok?x=1"])
def test_no_repository_is_called_that(hub: FakeHub, name: str) -> None:
    assert refused(name).code == "not_found"
    assert hub.asked == []


def test_a_gated_repository_is_not_asked_for_every_shard(hub: FakeHub) -> None:
    hub.latency = 0.02
    hub.add("tiny/gated", sharded(300), gated=True)
    assert refused("tiny/gated").code == "gated"
    time.sleep(0.1)
    assert len(hub.asked) < 150


# ---------------------------------------------------------------- what passes when asked again


@pytest.mark.parametrize("fault", [429, 500, 502, 503, 504, 408, "reset", "cut", "hang"])
@pytest.mark.parametrize("where", ["api", "model.safetensors", "cdn/model.safetensors", "config.json"])
def test_once_is_forgiven(
    hub: FakeHub, monkeypatch: pytest.MonkeyPatch, fault: str | int, where: str
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 0.2)
    hub.add("tiny/ok", ONE)
    hub.faults[where] = [fault]
    read("tiny/ok")


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (503, "the Hub returned 503 (after 4 attempts)"),
        (429, "the Hub limits the rate of requests (429) (after 4 attempts)"),
        ("reset", "(after 4 attempts)"),
        ("cut", "the connection ended before the response did (after 4 attempts)"),
        ("hang", "no response in time (after 4 attempts)"),
    ],
)
def test_four_times_is_enough(
    hub: FakeHub, monkeypatch: pytest.MonkeyPatch, fault: str | int, said: str
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 0.2)
    hub.add("tiny/ok", ONE)
    hub.faults["cdn/model.safetensors"] = repeat(fault)
    error = refused("tiny/ok")
    assert said in error.message
    assert "tiny/ok/model.safetensors" in error.message
    assert hub.count("/cdn/") == 4


def test_a_server_may_ask_for_a_moment(hub: FakeHub) -> None:
    hub.add("tiny/ok", ONE)
    hub.faults["config.json"] = [429]
    hub.wait = "1"
    begin = time.monotonic()
    read("tiny/ok")
    assert time.monotonic() - begin >= 1


@pytest.mark.parametrize("header", ["Retry-After", "RateLimit"])
@pytest.mark.parametrize("number", ["²", "9" * 5000, "-1", "1.5", ""])
def test_a_moment_that_is_no_number(hub: FakeHub, header: str, number: str) -> None:
    hub.add("tiny/ok", ONE)
    stated = number if header == "Retry-After" else f'"resolvers";r=0;t={number}'
    hub.faults["config.json"] = repeat(429)
    hub.wait = stated
    hub.wait_header = header
    error = refused("tiny/ok")
    assert (error.code, "try again later" in error.hint) == ("rate_limit", True)


@pytest.mark.parametrize("way", ["retry-after", "ratelimit"])
def test_but_not_for_minutes(hub: FakeHub, way: str) -> None:
    hub.add("tiny/ok", ONE)
    hub.faults["config.json"] = repeat(429 if way == "retry-after" else "rate limit")
    hub.wait = "241"
    error = refused("tiny/ok")
    assert error.code == "rate_limit"
    assert "try again in 241 s" in error.hint


@pytest.mark.parametrize("status", [400, 404, 410, 418, 501])
def test_what_does_not_pass_is_not_asked_again(hub: FakeHub, status: int) -> None:
    hub.add("tiny/ok", ONE)
    hub.faults["model.safetensors"] = repeat(status)
    refused("tiny/ok")
    assert hub.count("model.safetensors") == 1


@pytest.mark.parametrize(
    ("status", "code"),
    [(400, "refused"), (404, "not_found"), (410, "not_found"), (418, "refused"), (451, "forbidden")],
)
@pytest.mark.parametrize("where", ["api", "cdn/model.safetensors"])
def test_a_refusal_without_a_reason_does_not_pass_with_time(
    hub: FakeHub, where: str, status: int, code: str
) -> None:
    hub.add("tiny/ok", ONE)
    hub.faults[where] = repeat(status)
    error = refused("tiny/ok")
    assert (error.code, f"({status})" in error.message) == (code, True)
    assert "later" not in error.hint


def test_a_redirect_to_a_host_that_does_not_answer(hub: FakeHub) -> None:
    hub.add("tiny/ok", ONE)
    hub.faults["model.safetensors"] = repeat("dead")
    error = refused("tiny/ok")
    assert error.code == "network"
    assert f"{hub.url} redirects to http://127.0.0.1:9, which could not be reached" in error.message


# ---------------------------------------------------------------- ranges


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("ignore ranges", "the server ignores ranges and would send the whole file, 10,000,000,000 bytes"),
        ("shifted", "bytes 0-39999 were requested, the reply has 'bytes 1-39999/10000000000'"),
        ("unstated", "the reply has no stated range"),
        ("grown", "the listing states 10,000,000,000 bytes, the file server 10,000,000,001"),
        ("gzip", "the server compresses range replies"),
        ("short", "expected 40,000 bytes, received 39,999"),
    ],
)
@pytest.mark.parametrize("redirects", [False, True])
def test_a_wrong_range(hub: FakeHub, fault: str, said: str, redirects: bool) -> None:
    hub.redirects = redirects
    hub.add(
        "tiny/wrong", {"config.json": CONFIG, "model.safetensors": File(ONE["model.safetensors"], 10**10)}
    )
    hub.faults["cdn/" * redirects + "model.safetensors"] = repeat(fault)
    error = refused("tiny/wrong")
    assert error.code == "transfer"
    assert said in error.message
    assert sum(asked.sent for asked in hub.asked) < 10**8


def test_a_size_that_changes_between_two_ranges(hub: FakeHub) -> None:
    hub.add("tiny/grows", {"config.json": CONFIG, "model.safetensors": safetensors(["a"], metadata=100_000)})
    hub.faults["cdn/model.safetensors"] = ["sound", "grown"]
    assert refused("tiny/grows").code == "transfer"


def test_the_whole_of_a_short_file_is_a_range_too(hub: FakeHub) -> None:
    hub.add("tiny/ok", ONE)
    hub.faults["cdn/model.safetensors"] = repeat("ignore ranges")
    read("tiny/ok")


# ---------------------------------------------------------------- what is no Hub


@pytest.mark.parametrize("fault", ["web page", "list"])
def test_another_server_than_a_hub(hub: FakeHub, fault: str) -> None:
    hub.add("tiny/ok", ONE)
    hub.faults["api"] = [fault]
    error = refused("tiny/ok")
    assert error.code == "listing"
    assert "HF_ENDPOINT" in error.hint


LFS = {"sha256": "0" * 64, "size": 21408, "pointerSize": 134}


def listed(**changes: Any) -> bytes:
    """A listing of one file in LFS, its own keys or its file's changed."""
    file = {"rfilename": "model.safetensors", "size": 21408, "lfs": LFS}
    file |= {key: value for key, value in changes.items() if key in file}
    top = {"id": "tiny/ok", "sha": "1" * 40, "siblings": [file]}
    return json.dumps(top | {key: value for key, value in changes.items() if key in top}).encode()


@pytest.mark.parametrize(
    ("listing", "said"),
    [
        (listed(size="21408"), "no size that is a whole number"),
        (listed(size=21408.0), "no size that is a whole number"),
        (listed(size=True), "no size that is a whole number"),
        (listed(size=-1), "no size that is a whole number"),
        (listed(size=None), "no size that is a whole number"),
        (listed(sha=5), "no commit"),
        (listed(sha=None), "no commit"),
        (listed(lfs=LFS | {"sha256": 5}), "no SHA-256"),
        (listed(lfs=LFS | {"sha256": "aa"}), "no SHA-256"),
        (listed(lfs=[1]), "not of a model"),
        (listed(rfilename=5), "no name"),
        (listed(rfilename="half \ud800.safetensors"), "no name"),
        (listed(siblings=None), "no list of files"),
        (listed(siblings=[5]), "not of a model"),
        (listed(siblings=json.loads(listed())["siblings"] * 2), "twice"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"sha": ' + b"1" * 5000 + b"}", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"", "not JSON"),
    ],
)
def test_a_listing_that_is_none(hub: FakeHub, listing: bytes, said: str) -> None:
    hub.add("tiny/ok", ONE)
    hub.listing = listing
    for ask in (read, lambda repo, _: download(repo)):
        error = refused("tiny/ok", ask=ask)
        assert error.code == "listing"
        assert said in error.message
        assert "--download" not in error.hint


def test_a_revision_that_is_no_text(hub: FakeHub) -> None:
    hub.add("tiny/ok", ONE)
    assert refused("tiny/ok", "half \udcff").code == "not_found"


@pytest.mark.parametrize("where", ["config.json", "cdn/model.safetensors"])
def test_a_server_that_drips_is_given_up(hub: FakeHub, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """It sends on for 20 s; the time allowed is made short here."""
    monkeypatch.setattr(response_body, "GRACE", 0.3)
    hub.redirects = where.startswith("cdn/")
    config = File(b"{" + b" " * 999)
    hub.add("tiny/ok", {"config.json": config, "model.safetensors": File(b"", 1000)})
    hub.faults[where] = repeat("drip")
    begin = time.monotonic()
    error = refused("tiny/ok")
    assert time.monotonic() - begin < 5
    assert error.code == "network"
    assert "sends too slowly" in error.message


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("HF_ENDPOINT", "http://[::1", 'HF_ENDPOINT is "http://[::1": its host or its port cannot be read'),
        ("HF_ENDPOINT", "http://127.0.0.1:99999", "its host or its port cannot be read"),
        ("HF_ENDPOINT", "http://me:secret/word@example.org", 'HF_ENDPOINT is "example.org": its host or'),
        ("HF_ENDPOINT", "huggingface.co", "it does not begin with https://"),
        ("HF_ENDPOINT", "https://", "it names no host"),
        ("HF_ENDPOINT", "", "it does not begin with https://"),
        ("HF_ENDPOINT", "http://é..example.org", "its host name cannot be looked up"),
        ("HF_ENDPOINT", f"http://{'a' * 64}.org", "its host name cannot be looked up"),
        ("HF_HUB_CACHE", "~nobody-of-this-name/hub", "there is no home folder of that user"),
        ("HF_HUB_DOWNLOAD_TIMEOUT", "-1", "HF_HUB_DOWNLOAD_TIMEOUT is -1; expected seconds"),
        ("HF_HUB_DOWNLOAD_TIMEOUT", "9" * 20, "; expected seconds, 1 to 1,000,000"),
        ("SSL_CERT_FILE", "/nowhere/ca.pem", "a certificate file named in the environment does not exist"),
        ("HF_HUB_DOWNLOAD_TIMEOUT", "soon", "a setting of huggingface_hub in the environment cannot be read"),
    ],
)
@pytest.mark.parametrize("more", [["--repo", "c/d"], ["--download"]])
def test_settings_that_cannot_be_read(
    tmp_path: Path, setting: str, value: str, said: str, more: list[str]
) -> None:
    """huggingface_hub reads them as it is imported: a process for each."""
    settings = {setting: value, "HF_HOME": str(tmp_path)}
    ran = run("verify", "--repo", "a/b", *more, "--json", **settings)
    assert (ran.code, ran.err) == (2, "")
    error = ran.json["checkpoints"][0]["error"] if "c/d" in more else ran.json["error"]
    assert error["code"] == "settings"
    assert said in error["message"]
    assert "secret" not in ran.out


def test_a_page_in_place_of_weights(hub: FakeHub) -> None:
    hub.add("tiny/ok", ONE)
    hub.faults["model.safetensors"] = ["web page"]
    assert refused("tiny/ok").code == "transfer"


def test_redirects_in_a_circle(hub: FakeHub) -> None:
    hub.add("tiny/ok", ONE)
    hub.faults["model.safetensors"] = repeat("circle")
    assert "too many redirects" in refused("tiny/ok").message


def test_nobody_answers(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", "http://user:password@127.0.0.1:9")
    error = refused("tiny/ok")
    assert error.code == "network"
    assert "(http://127.0.0.1:9)" in error.message
    assert "password" not in error.message


def test_a_shard_that_fails_ends_the_reading(hub: FakeHub) -> None:
    hub.add("tiny/one_bad", sharded(4))
    hub.faults["cdn/" + shard(3, 4)] = repeat(503)
    assert shard(3, 4) in refused("tiny/one_bad").message


# ---------------------------------------------------------------- single files and downloads


@pytest.mark.parametrize(
    ("ask", "code"),
    [
        (lambda repo, _: hub_module.config_file(repo), "gated"),
        (lambda repo, _: download(repo), "gated"),
    ],
)
def test_other_ways_in_are_refused_alike(hub: FakeHub, ask: Callable[..., Any], code: str) -> None:
    hub.add("tiny/gated", ONE, gated=True)
    assert refused("tiny/gated", ask=ask).code == code


def test_a_file_that_is_not_there(hub: FakeHub) -> None:
    hub.add("tiny/bare", {"README.md": b"#"})
    error = refused("tiny/bare", ask=lambda repo, _: hub_module.config_file(repo))
    assert (error.code, error.message) == (
        "not_found",
        "tiny/bare/config.json was not found in the repository",
    )


@pytest.mark.parametrize("down", [True, False])
def test_a_file_of_a_hub_that_is_down(hub: FakeHub, monkeypatch: pytest.MonkeyPatch, down: bool) -> None:
    if down:
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", "http://127.0.0.1:9/{repo_id}/{revision}/{filename}"
        )
    hub.faults["config.json"] = repeat(503)
    error = refused("tiny/ok", ask=lambda repo, _: hub_module.config_file(repo))
    assert error.code == "network"
    assert ("could not be reached" if down else "returned 503") in error.message


def test_no_room_in_the_cache(hub: FakeHub, cache: Any) -> None:
    cache.parent.mkdir(parents=True)
    cache.write_text("a file where a folder should be")
    hub.add("tiny/ok", ONE)
    assert refused("tiny/ok", ask=lambda repo, _: download(repo)).code == "cache"


def test_a_download_from_a_server_that_states_no_commit(hub: FakeHub) -> None:
    hub.add("tiny/ok", ONE)
    hub.bare = True
    error = refused("tiny/ok", ask=lambda repo, _: hub_module.config_file(repo))
    assert (error.code, "has no commit header" in error.message) == ("transfer", True)
    assert "disk" not in error.hint
    # The listing states the commit, and the hash of the weights.
    assert (download("tiny/ok") / "config.json").read_bytes() == CONFIG


@pytest.mark.parametrize(
    ("fault", "code", "said"),
    [
        ("web page", "transfer", "tiny/ok/model.safetensors: expected 1,000 bytes, received 37"),
        ("reset", "network", "where the request failed: the connection was reset"),
    ],
)
def test_a_download_that_breaks_off(
    hub: FakeHub, caplog: pytest.LogCaptureFixture, cache: Path, fault: str | int, code: str, said: str
) -> None:
    hub.add("tiny/ok", {"config.json": CONFIG, "model.safetensors": File(ONE["model.safetensors"], 1000)})
    hub.faults["cdn/model.safetensors"] = repeat(fault)
    error = refused("tiny/ok", ask=lambda repo, _: download(repo))
    assert (error.code, said in error.message) == (code, True)
    assert "signature" not in caplog.text
    assert not list(cache.rglob("*.incomplete"))


def test_a_download_for_which_the_disk_has_no_room(hub: FakeHub) -> None:
    hub.add("tiny/ok", {"config.json": CONFIG, "model.safetensors": File(ONE["model.safetensors"], 10**18)})
    error = refused("tiny/ok", ask=lambda repo, _: download(repo))
    assert (error.code, "the download needs 1,000,000,000,000,000,023 bytes" in error.message) == (
        "cache",
        True,
    )
    assert hub.count("model.safetensors") == 0


def test_a_download_that_is_not_what_the_listing_states(hub: FakeHub, cache: Path) -> None:
    hub.add("tiny/ok", ONE)
    listed = json.loads(listing_of("model.safetensors", len(ONE["model.safetensors"]), "0" * 64))
    listed["sha"] = hub.repos["tiny/ok"].branches["main"]
    hub.listing = json.dumps(listed).encode()
    error = refused("tiny/ok", ask=lambda repo, _: download(repo))
    assert (error.code, f"expected the SHA-256 {'0' * 64}" in error.message) == ("transfer", True)
    assert not [path for path in cache.rglob("*") if path.is_file()]


def listing_of(name: str, size: int, sha256: str) -> str:
    lfs = {"sha256": sha256, "size": size, "pointerSize": 134}
    return json.dumps(
        {"id": "tiny/ok", "sha": "1" * 40, "siblings": [{"rfilename": name, "size": size, "lfs": lfs}]}
    )


def test_a_rate_limit_whose_number_is_none(hub: FakeHub) -> None:
    hub.add("tiny/ok", ONE)
    hub.wait_header, hub.wait = "RateLimit", '"resolvers";r=0;t=' + "9" * 5000
    hub.faults["config.json"] = repeat(429)
    for ask in (hub_module.config_file, download):
        error = refused("tiny/ok", ask=lambda repo, _, ask=ask: ask(repo))
        assert (error.code, error.message.startswith("tiny/ok/config.json")) == ("rate_limit", True)
