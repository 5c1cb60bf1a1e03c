"""A Hub that is hostile: nothing it sends is written where it says, waited for as long as it says, or kept without a bound."""

from __future__ import annotations

import gzip
import hashlib
import json
import logging
import os
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterator, Mapping
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants

from atlas.checkpoint import deadline, hub_config, response_body
from atlas.checkpoint import hub_listing as listing_module
from atlas.checkpoint.download import download
from atlas.checkpoint.remote import open_repository
from atlas.checkpoint.settings import ready
from atlas.errors import HubError
from atlas.spec.library import Library
from atlas.verification import verify
from tests.cli.conftest import run
from tests.hub.checkpoints import CONFIG, ONE
from tests.hub.raw_hub import COMMIT, RawHub, honest, listing, reply

TOKEN = "hf_PlantedTokenThatNobodyMayRead"
ESCAPE = "\x1b]0;pwned\x07"


def refused(ask: Callable[[str], Any], repo: str = "evil/repo") -> HubError:
    with pytest.raises(HubError) as caught:
        ask(repo)
    said = f"{caught.value.message} {caught.value.hint}"
    assert "SIGNED" not in said
    assert TOKEN not in said
    return caught.value


def configured(answer: Callable[[Mapping[str, str]], list[bytes]]) -> Any:
    """A Hub that has one configuration, and answers so where it is asked for it."""

    def chosen(path: str, headers: Mapping[str, str]) -> list[bytes]:
        if path.startswith("/api/"):
            return [reply(200, listing({"config.json": len(CONFIG)}))]
        return answer(headers)

    return chosen


# ---------------------------------------------------------------- paths


def test_an_etag_chooses_no_path(raw: RawHub, tmp_path: Path, cache: Path) -> None:
    """The file is called by the hash of its bytes, as git takes it of a file."""
    stated = {
        "X-Repo-Commit": COMMIT,
        "ETag": f'"{tmp_path}/evil.sh"',
        "X-Linked-ETag": f'"{tmp_path}/evil.sh"',
    }
    raw.answer = configured(lambda _: [reply(200, CONFIG, stated)])
    for path in (hub_config.config_file("evil/repo"), download("evil/other") / "config.json"):
        blob = hashlib.sha1(b"blob %d\0" % len(CONFIG) + CONFIG).hexdigest()
        assert path.read_bytes() == CONFIG
        assert path.resolve() == (path.parents[2] / "blobs" / blob).resolve()
    assert not list(tmp_path.rglob("evil*"))


@pytest.mark.parametrize(
    "commit", ["main", "../..", "A" * 40, "a" * 39, "a" * 41, "a" * 40 + "\n", "²" * 40, ""]
)
def test_a_commit_is_forty_digits(raw: RawHub, tmp_path: Path, commit: str) -> None:
    raw.answer = lambda path, headers: (
        [reply(200, listing({"config.json": 23}, commit))]
        if path.startswith("/api/")
        else [reply(200, CONFIG, {"X-Repo-Commit": commit.strip("\n²")})]
    )
    for ask in (open_repository, download):
        assert refused(ask).code == "listing"
    if "\n" not in commit:
        assert refused(hub_config.config_file).code == "transfer"
        assert not list(tmp_path.rglob("config.json"))


def test_another_commit_than_the_one_asked_for(raw: RawHub) -> None:
    raw.answer = honest(ONE)
    assert "another commit" in refused(lambda repo: open_repository(repo, "c" * 40)).message


@pytest.mark.parametrize(
    "name", ["../x.json", "a/../../x.json", "/x.json", "a//x.json", "./x.json", "x\0.json", "", "..", "a/"]
)
def test_names_that_git_cannot_hold(raw: RawHub, tmp_path: Path, name: str) -> None:
    raw.answer = lambda path, headers: [reply(200, listing({name: 0, "config.json": 0}))]
    for ask in (open_repository, download):
        assert refused(ask).code == "listing"
    assert not list(tmp_path.rglob("*.json"))


@pytest.mark.parametrize(
    "name",
    [
        "..\\x.json",
        "C:x.json",
        "c:/x.json",
        f"{ESCAPE}.json",
        "x\r\n.json",
        "a\x9b.json",
        "x" * 300 + ".json",
        "d/" * 600 + "x",
    ],
)
def test_names_that_not_every_system_takes_are_left_out(raw: RawHub, name: str) -> None:
    files = {name: b"{}", **ONE}
    raw.answer = lambda path, headers: (
        [reply(200, listing({name: len(data) for name, data in files.items()}))]
        if path.startswith("/api/")
        else honest(ONE)(path, headers)
    )
    assert set(open_repository("evil/repo").files()) == set(ONE)
    assert {path.name for path in download("evil/repo").iterdir()} == set(ONE)


# ---------------------------------------------------------------- the terminal


def test_a_content_range_that_repeats_the_token(raw: RawHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    inner = honest(ONE)

    def answer(path: str, headers: Mapping[str, str]) -> list[bytes]:
        if "range" not in headers:
            return inner(path, headers)
        return [reply(206, b"", {"Content-Range": headers["authorization"]})]

    raw.answer = answer
    said = refused(lambda repo: list(open_repository(repo).examine(["model.safetensors"]))).message
    assert "no range that can be read" in said
    assert TOKEN not in said


def test_nothing_of_a_server_is_printed(raw: RawHub, capfd: pytest.CaptureFixture[str]) -> None:
    stated = {
        "X-HF-Warning": f"topic; {ESCAPE}",
        "X-Error-Message": ESCAPE,
        "Content-Disposition": f'attachment; filename="{ESCAPE}";',
        "X-Xet-Hash": "a" * 64,
        "Link": f'<{raw.url}/xet-auth>; rel="xet-auth"',
    }
    inner = honest(ONE)

    def answer(path: str, headers: Mapping[str, str]) -> list[bytes]:
        head = "".join(f"{name}: {value}\r\n" for name, value in stated.items()).encode()
        return [piece.replace(b"X\r\n", b"X\r\n" + head, 1) for piece in inner(path, headers)]

    raw.answer = answer
    hub_config.config_file("evil/repo")
    download("evil/repo", progress=True)
    raw.answer = lambda path, headers: [reply(503, b"", stated)]
    refused(open_repository, "evil/other")
    out, err = capfd.readouterr()
    assert out == ""
    assert not {"\x1b", "\x07"}.intersection(err)
    assert "pwned" not in err
    assert not any("xet" in path for path, _ in raw.asked)


def test_the_log_of_huggingface_hub_stays_off_the_terminal(
    cache: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = logging.getLogger("huggingface_hub")
    log.addHandler(logging.StreamHandler())  # as it does on import, and with HF_DEBUG
    ready()
    logging.getLogger("huggingface_hub.utils._http").warning(ESCAPE)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("setting", ["HF_DEBUG=1", "HF_HUB_VERBOSITY=debug"])
def test_the_log_of_huggingface_hub_stays_off_the_terminal_from_the_first_request(
    raw: RawHub, tmp_path: Path, setting: str
) -> None:
    """The log is set up as huggingface_hub is imported: a process of its own, with the address of each request in it."""
    raw.answer = honest(ONE)
    name, _, value = setting.partition("=")
    ran = run("verify", "--repo", "evil/repo", HF_ENDPOINT=raw.url, HF_HOME=str(tmp_path), **{name: value})
    assert ran.err == ""
    assert raw.asked


def test_no_request_is_huggingface_hubs_own(raw: RawHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its version 2 asks for a list of programs as it makes headers, whatever the length of the answer."""
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_TELEMETRY", False)
    raw.answer = honest(ONE)
    download("evil/repo")
    assert {path.split("/")[1] for path, _ in raw.asked} == {"api", "evil"}
    assert not any("agent" in path for path, _ in raw.asked)


# ---------------------------------------------------------------- waits


@pytest.mark.parametrize("header", [("Retry-After", "999999999"), ("RateLimit", '"api";r=0;t=999999999')])
@pytest.mark.parametrize("ask", [hub_config.config_file, download, open_repository])
@pytest.mark.parametrize("status", [429, 503])
def test_no_server_is_waited_for_as_long_as_it_says(
    raw: RawHub, ask: Callable[[str], Any], header: tuple[str, str], status: int
) -> None:
    raw.answer = lambda path, headers: [reply(status, b"", dict([header]))]
    begin = time.monotonic()
    assert refused(ask).code in ("rate_limit", "network")
    assert time.monotonic() - begin < 10


@pytest.mark.parametrize("ask", [hub_config.config_file, download, open_repository])
def test_a_head_that_drips_is_given_up(
    raw: RawHub, monkeypatch: pytest.MonkeyPatch, ask: Callable[[str], Any]
) -> None:
    """Each byte comes soon after the one before, for 100 s."""
    monkeypatch.setattr(deadline, "HEAD_WITHIN", 0.5)

    def drip() -> Iterator[bytes]:
        yield b"HTTP/1.1 200 X\r\nX-Long: "
        for _ in range(1000):
            time.sleep(0.1)
            yield b"a"

    raw.answer = lambda path, headers: drip()
    begin = time.monotonic()
    assert "too slowly" in refused(ask).message
    assert time.monotonic() - begin < 10


def test_a_listing_that_drips_is_given_up(raw: RawHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(response_body, "GRACE", 0.3)

    def drip() -> Iterator[bytes]:
        yield reply(200, b"", {"Content-Length": "1000000"})
        for _ in range(1000):
            time.sleep(0.05)
            yield b" "

    raw.answer = lambda path, headers: drip()
    begin = time.monotonic()
    assert "sends too slowly" in refused(open_repository).message
    assert time.monotonic() - begin < 10


# ---------------------------------------------------------------- bounds


def endless(head: Mapping[str, str]) -> Iterator[bytes]:
    """A body without an end, in chunks."""
    yield reply(200, b"", {"Transfer-Encoding": "chunked", **head}).replace(b"Content-Length: 0\r\n", b"")
    yield from repeat(b"100000\r\n" + b" " * 2**20 + b"\r\n")


@pytest.mark.parametrize(
    ("ask", "code"),
    [(hub_config.config_file, "transfer"), (open_repository, "listing"), (download, "listing")],
)
def test_a_body_without_end(raw: RawHub, ask: Callable[[str], Any], code: str) -> None:
    raw.answer = lambda path, headers: endless({"X-Repo-Commit": COMMIT})
    error = refused(ask)
    assert (error.code, "16,777,216 bytes" in error.message) == (code, True)
    assert raw.sent < 40 * 2**20


@pytest.mark.parametrize("status", [302, 404, 429, 500])
def test_the_body_of_a_refusal_is_not_read(raw: RawHub, status: int) -> None:
    where = {"Location": raw.url + "/elsewhere", "Retry-After": "99"}
    raw.answer = lambda path, headers: (
        piece.replace(b"200", b"%d" % status, 1) if i == 0 else piece
        for i, piece in enumerate(endless(where))
    )
    refused(open_repository)
    assert raw.sent < 100 * 2**20


BOMB = gzip.compress(bytes(200 * 2**20), 1)


@pytest.mark.parametrize("ask", [hub_config.config_file, open_repository])
def test_what_unpacks_to_more_than_is_read(raw: RawHub, ask: Callable[[str], Any]) -> None:
    raw.answer = lambda path, headers: [
        reply(200, BOMB, {"Content-Encoding": "gzip", "X-Repo-Commit": COMMIT})
    ]
    tracemalloc.start()
    try:
        refused(ask)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 60 * 2**20


@pytest.mark.parametrize("encoding", ["br", "zstd", "deflate", "gzip, gzip", "compress"])
@pytest.mark.parametrize("ask", [hub_config.config_file, open_repository])
def test_no_other_compression(raw: RawHub, ask: Callable[[str], Any], encoding: str) -> None:
    packed = zlib.compress(CONFIG)
    raw.answer = lambda path, headers: [reply(200, packed, {"Content-Encoding": encoding})]
    assert "uses a compression that was not requested" in refused(ask).message


def test_gzip_is_unpacked(raw: RawHub) -> None:
    def answer(path: str, headers: Mapping[str, str]) -> list[bytes]:
        assert headers["accept-encoding"] == "gzip"
        text = listing({"config.json": len(CONFIG)}) if path.startswith("/api/") else CONFIG
        return [reply(200, gzip.compress(text), {"Content-Encoding": "gzip", "X-Repo-Commit": COMMIT})]

    raw.answer = answer
    assert open_repository("evil/repo").text("config.json") == CONFIG
    assert hub_config.config_file("evil/repo").read_bytes() == CONFIG


def test_more_weight_files_than_are_asked_for(raw: RawHub) -> None:
    names = {f"model-{i:05}-of-20000.safetensors": 100 for i in range(1, 20_001)}
    raw.answer = lambda path, headers: [reply(200, listing(names))]
    assert "20,000 weight files are listed" in refused(open_repository).message
    assert len(raw.asked) == 1


@pytest.mark.parametrize("ask", ["verify", "download"])
def test_more_weight_files_in_a_folder_than_are_asked_for(raw: RawHub, library: Library, ask: str) -> None:
    """The listing's own are counted before; those in folders become weights only through the index."""
    names = [f"s/{i}.safetensors" for i in range(10_001)]
    index = json.dumps({"weight_map": {name: name for name in names}}).encode()
    texts = {"config.json": CONFIG, "model.safetensors.index.json": index}
    listed = listing({**dict.fromkeys(names, 100), **{name: len(text) for name, text in texts.items()}})

    def answer(path: str, headers: Mapping[str, str]) -> list[bytes]:
        return [reply(200, listed if path.startswith("/api/") else texts[path.rpartition("/")[2]])]

    raw.answer = answer
    asked = download if ask == "download" else lambda repo: verify(open_repository(repo), library)
    assert "10,001 weight files are named by its index" in refused(asked).message
    assert len(raw.asked) <= 3


@pytest.mark.parametrize("size", [-1, 1.5, 1e400, True, None, 10**30, "1"])
def test_sizes_that_are_none(size: Any) -> None:
    answer = {"sha": COMMIT, "siblings": [{"rfilename": "config.json", "size": size}]}
    with pytest.raises(ValueError, match="no size that is a whole number"):
        listing_module.parse(answer)


# ---------------------------------------------------------------- addresses


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.2:99999/",
        "http://" + "a" * 90_000,
        "http://" + "a" * 300 + "/",
        "ftp://127.0.0.1/x",
        "file:///etc/passwd",
        "http://xn--\x80/",
        "http://[::1",
        "javascript:alert(1)",
        "\x01",
    ],
)
@pytest.mark.parametrize("ask", [hub_config.config_file, open_repository])
def test_a_redirect_to_an_address_that_is_none(raw: RawHub, ask: Callable[[str], Any], location: str) -> None:
    raw.answer = lambda path, headers: [reply(302, b"", {"Location": location})]
    error = refused(ask)
    assert (error.code, len(error.message) < 400) == ("transfer", True)


def test_redirects_without_end(raw: RawHub) -> None:
    raw.answer = lambda path, headers: [reply(302, b"", {"Location": f"/api/{len(raw.asked)}"})]
    assert "too many redirects" in refused(open_repository).message
    assert len(raw.asked) == 11


def test_a_signed_address_and_a_token_are_not_told(raw: RawHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """The token stays with the Hub where a redirect leads to another port."""
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with RawHub() as other:
        other.answer = lambda path, headers: [reply(429, b"", {"Retry-After": "0"})]
        raw.answer = lambda path, headers: [
            reply(302, b"", {"Location": f"{other.url}/x?X-Amz-Signature=SIGNED", "X-Repo-Commit": COMMIT})
        ]
        for ask in (hub_config.config_file, open_repository, download):
            assert refused(ask).code == "rate_limit"
        assert not any("authorization" in headers for _, headers in other.asked)
    assert all(headers["authorization"] == f"Bearer {TOKEN}" for _, headers in raw.asked)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("ALL_PROXY", "socks5://user:s3cret@127.0.0.1:9"),
        ("ALL_PROXY", "ftp://user:s3cret@127.0.0.1:9"),
        ("ALL_PROXY", "http://user:s3cret@127.0.0.1:99999999"),
        ("HTTP_PROXY", "http://[::1"),
    ],
)
def test_a_proxy_that_cannot_be_used(tmp_path: Path, setting: str, value: str) -> None:
    """The settings are read once in a process."""
    ran = run(
        "verify",
        "--repo",
        "a/b",
        "--json",
        HF_HOME=str(tmp_path),
        HF_ENDPOINT="http://127.0.0.1:9",
        **{setting: value},
    )
    assert (ran.code, ran.err) == (2, "")
    assert ran.json["error"]["code"] in ("settings", "network")
    assert "s3cret" not in ran.out


def test_certificates_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    ran = run(
        "verify", "--repo", "a/b", "--json", HF_HOME=str(tmp_path), SSL_CERT_FILE=str(tmp_path / "ca.pem")
    )
    assert (ran.code, json.loads(ran.out)["error"]["code"]) == (2, "settings")


def test_a_cookie_is_not_kept(raw: RawHub) -> None:
    """One that cannot be sent back would make every later request fail."""
    good = honest(ONE)
    raw.answer = lambda path, headers: [
        piece.replace(b"X\r\n", b"X\r\nSet-Cookie: \xff\r\nSet-Cookie: a=b\r\n", 1)
        for piece in good(path, headers)
    ]
    for i in range(2):
        assert open_repository(f"evil/repo{i}").text("config.json") == CONFIG
    assert not any("cookie" in headers for _, headers in raw.asked)


# ---------------------------------------------------------------- the local cache


def planted(cache: Path, ref: bytes | None) -> Path:
    """The folder of a repository whose snapshot is complete."""
    folder = cache / "models--evil--repo"
    snapshot = folder / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    for name, data in ONE.items():
        (snapshot / name).write_bytes(data)
    (folder / "refs").mkdir()
    if ref is not None:
        (folder / "refs" / "main").write_bytes(ref)
    return folder


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n", b"  \n"])
def test_a_ref_with_the_end_of_a_line(raw: RawHub, cache: Path, end: bytes) -> None:
    planted(cache, COMMIT.encode() + end)
    assert open_repository("evil/repo").revision == COMMIT
    assert raw.asked == []


@pytest.mark.parametrize("ref", [b"\xff", b"../..", b"", b"main", b"a" * 5_000_000, COMMIT.encode() * 2])
def test_a_ref_that_is_no_commit(raw: RawHub, cache: Path, ref: bytes) -> None:
    planted(cache, ref)
    for ask in (open_repository, download, hub_config.config_file):
        error = refused(ask)
        assert (error.code, "refs/main" in error.message, len(error.message) < 400) == ("cache", True, True)


@pytest.mark.parametrize("kind", ["FIFO", "folder", "loop"])
def test_a_ref_that_is_no_file(raw: RawHub, cache: Path, kind: str) -> None:
    ref = planted(cache, None) / "refs" / "main"
    {"FIFO": os.mkfifo, "folder": os.mkdir, "loop": lambda path: os.symlink("main", path)}[kind](ref)
    assert (refused(open_repository).code, raw.asked) == ("cache", [])


def test_links_in_a_circle(raw: RawHub, cache: Path) -> None:
    folder = planted(cache, COMMIT.encode())
    os.symlink("x.json", folder / "snapshots" / COMMIT / "x.json")
    store = open_repository("evil/repo")
    assert (store.kind, store.hashes()) == ("cache", {})


@pytest.mark.parametrize("revision", ["../../../outside", "/etc/hostname", "a\0b", "x" * 5000])
def test_a_revision_is_no_path(raw: RawHub, cache: Path, revision: str) -> None:
    planted(cache, COMMIT.encode())
    (cache.parent / "outside").write_text(COMMIT)
    raw.answer = lambda path, headers: [reply(404, b"", {"X-Error-Code": "RevisionNotFound"})]
    assert refused(lambda repo: open_repository(repo, revision)).code in ("not_found", "transfer")


def test_a_cache_that_is_a_file(raw: RawHub, cache: Path) -> None:
    raw.answer = honest(ONE)
    cache.parent.mkdir()
    cache.write_text("")
    for ask in (download, hub_config.config_file):
        assert refused(ask).code == "cache"
    assert open_repository("evil/repo").kind == "hub"
