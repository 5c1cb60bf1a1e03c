"""Fuzzing the Hub: whatever a server answers, a checkpoint or an `AtlasError`, in bounded time and memory.

Listings are mutated as parsed JSON; answers are mutated in status, headers and body and sent over loopback. The names,
the commit and the sizes that a listing gives are held against rules written out here. ATLAS_FUZZ_EXAMPLES sets how many
are drawn, and draws anew each time.
"""

from __future__ import annotations

import copy
import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from atlas.checkpoint import deadline, hub_config, response_body, retry
from atlas.checkpoint.download import download
from atlas.checkpoint.hub_listing import Listing, parse
from atlas.checkpoint.remote import open_repository
from atlas.errors import AtlasError
from tests.hub.checkpoints import CONFIG, ONE
from tests.hub.raw_hub import COMMIT, RawHub, honest, listing

EXAMPLES = int(os.environ.get("ATLAS_FUZZ_EXAMPLES", "2000"))
NEW = "ATLAS_FUZZ_EXAMPLES" in os.environ
fuzz = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize=not NEW,
    suppress_health_check=list(HealthCheck),
)
over_http = settings(fuzz, max_examples=max(1, EXAMPLES // 20))


class Choices:
    """Choices read from bytes, so that hypothesis draws once and shrinks towards the first option of each."""

    def __init__(self, raw: bytes) -> None:
        self.raw = iter(raw)

    def below(self, limit: int) -> int:
        return next(self.raw, 0) % limit

    def of(self, options: Sequence[Any]) -> Any:
        return options[self.below(len(options))]


DIGEST = "0123456789abcdef" * 4
GOOD = {
    "id": "evil/repo",
    "sha": COMMIT,
    "siblings": [
        {"rfilename": "config.json", "size": 23, "blobId": "b" * 40},
        {"rfilename": "sub/model.safetensors", "size": 100, "lfs": {"sha256": DIGEST, "size": 100}},
        {"rfilename": "model.safetensors", "size": 10**10, "lfs": {"sha256": DIGEST, "size": 10**10}},
    ],
}
VALUES = [
    None, True, False, 0, -1, 1, 1.5, 1e308, float("inf"), float("nan"), 10**30, 2**63, 2**63 - 1, "", "a", "..", "../x",
    "/x", "a/../x", "a//b", "a\\b", "C:x", "x\0y", "\x1b]0;x\x07", "\ud800", "\u2028", "é", "x" * 300, "d/" * 600 + "x",
    "x" * 10**6, COMMIT, COMMIT.upper(), "main", DIGEST, DIGEST.upper(), DIGEST[:-1], [], {}, [[]], [{}], {"sha256": 5},
]  # fmt: skip


def changed(choices: Choices, value: Any) -> Any:
    """The value with something in it changed."""
    if isinstance(value, dict) and value and choices.below(4):
        key = choices.of(list(value))
        match choices.of(["down", "down", "down", "drop", "rename"]):
            case "down":
                return {**value, key: changed(choices, value[key])}
            case "drop":
                return {name: held for name, held in value.items() if name != key}
            case _:
                return {
                    str(choices.of(VALUES)) if name == key else name: held for name, held in value.items()
                }
    if isinstance(value, list) and value and choices.below(4):
        at = choices.below(len(value))
        match choices.of(["down", "down", "down", "drop", "twice"]):
            case "down":
                return [*value[:at], changed(choices, value[at]), *value[at + 1 :]]
            case "drop":
                return value[:at] + value[at + 1 :]
            case _:
                return [*value, copy.deepcopy(value[at])]
    return choices.of(VALUES)


def hold_to_the_rules(found: Listing) -> None:
    assert re.fullmatch("[0-9a-f]{40}", found.commit)
    assert set(found.hashes) <= set(found.sizes)
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in found.hashes.values())
    for name, size in found.sizes.items():
        assert type(size) is int
        assert 0 <= size < 2**63
        path = Path("/cache") / name
        assert os.path.normpath(path) == str(path)
        assert str(path).startswith("/cache/")
        assert not re.search(r"[\x00-\x1f\x7f-\x9f\\]|^[A-Za-z]:", name)
        assert max(map(len, name.encode().split(b"/"))) <= 255


def test_the_listing_before_its_mutation() -> None:
    hold_to_the_rules(parse(GOOD))
    assert parse(GOOD).hashes.keys() == {"sub/model.safetensors", "model.safetensors"}


@fuzz
@given(st.binary(min_size=24, max_size=24))
def test_any_listing(raw: bytes) -> None:
    choices = Choices(raw)
    tree: Any = GOOD
    for _ in range(choices.of([1, 1, 2, 3])):
        tree = changed(choices, tree)
    try:
        found = parse(tree)
    except ValueError:
        return
    hold_to_the_rules(found)


# ---------------------------------------------------------------- answers

STATUSES = [
    200,
    206,
    100,
    101,
    103,
    204,
    205,
    300,
    301,
    302,
    303,
    304,
    307,
    308,
    400,
    401,
    403,
    404,
    408,
    410,
    416,
    418,
]
STATUSES += [429, 451, 500, 503, 599, 999]
HEADERS = [
    "Content-Length: 0", "Content-Length: -1", "Content-Length: 99999999999999999999", "Content-Length: 5", "Content-Length: x",
    "Transfer-Encoding: chunked", "Transfer-Encoding: gzip", "Content-Encoding: gzip", "Content-Encoding: br",
    "Content-Encoding: gzip, gzip", "Content-Range: bytes 0-1/2", "Content-Range: bytes 9-0/x", "Retry-After: 999999999",
    "Retry-After: -1", "RateLimit: \"api\";r=0;t=999999999", "X-Repo-Commit: ../..", "X-Repo-Commit: " + "c" * 40, "ETag: \"/x\"",
    "Location: http://127.0.0.1:9/x?X-Amz-Signature=SIGNED", "Location: http://[::1", "Location: /api/x", "Location: file:///etc/passwd",
    "Location: http://a:b@127.0.0.1:99999/", "Location: \xff\xfe", "Location:", "X-Error-Code: GatedRepo", "X-Error-Code: \x1b[2J",
    "X-Error-Code: RepoNotFound", "X-Error-Message: Access to this resource is disabled.", "X-HF-Warning: x; \x1b]0;x\x07",
    "Set-Cookie: a=b; Domain=.; Max-Age=x", "Set-Cookie: \xff", "Content-Type: \x00", "X-Long: " + "a" * 70_000, "X-Long: " + "a" * 200_000,
    "no colon", ": no name", "Connection: keep-alive", "Content-Disposition: attachment; filename=\"\x1b\";", "Link: <x>; rel=\"next\"",
]  # fmt: skip
FILES = {"config.json": CONFIG, "model.safetensors": ONE["model.safetensors"]}


def mutated(choices: Choices, answer: bytes) -> bytes:
    """An answer changed in its status, its headers, its body or its bytes."""
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    match choices.of(["header", "header", "header", "status", "body", "flip", "cut", "drop", "replace"]):
        case "header":
            line = choices.of(HEADERS).encode("latin1")
            if choices.below(2):  # in the place of the one of this name
                name = line.partition(b":")[0].lower() + b":"
                lines = [old for old in lines if not old.lower().startswith(name)]
            lines.insert(1, line)
        case "status":
            lines[0] = b"HTTP/1.1 %d X" % choices.of(STATUSES)
        case "body":
            body = choices.of(
                [b"", body[:-1], body + b"x", body * 3, b"\x1f\x8b", b"[" * 100_000, b"null", b"\xff\xfe"]
            )
            if choices.below(2):
                lines = [old for old in lines if not old.startswith(b"Content-Length")]
        case "flip" if body:
            at = choices.below(256) * len(body) // 256
            body = body[:at] + bytes([body[at] ^ (1 << choices.below(8))]) + body[at + 1 :]
        case "cut":
            return answer[: choices.below(256) * len(answer) // 256]
        case "drop":
            del lines[choices.below(len(lines))]
        case _:
            return bytes(
                choices.of(
                    [
                        b"",
                        b"\r\n\r\n",
                        b"HTTP/1.1 200\r\n\r\n",
                        b"HTTP/9.9 200 X\r\n\r\n",
                        b"\xff" * 100,
                        b"SSH-2.0\r\n",
                    ]
                )
            )
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits of the retry policy and of slow servers, short enough for thousands of examples."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 0.3)
    monkeypatch.setattr(response_body, "GRACE", 1.0)
    monkeypatch.setattr(deadline, "HEAD_WITHIN", 2.0)
    monkeypatch.setattr(retry, "LONGEST_WAIT", 0)


def ask(repo: str, way: int) -> None:
    if way == 0:
        hub_config.config_file(repo)
    elif way == 1:
        download(repo, progress=False)
    else:
        store = open_repository(repo)
        store.text("config.json")
        list(store.examine(["model.safetensors"]))


@pytest.mark.usefixtures("impatient")
def test_any_answer(raw: RawHub, cache: Path, capfd: pytest.CaptureFixture[str]) -> None:
    outside = sorted(path.name for path in cache.parents[1].iterdir())
    slowest = 0.0

    @over_http
    @given(st.binary(min_size=64, max_size=64), st.integers(0, 2))
    def run(drawn: bytes, way: int) -> None:
        nonlocal slowest
        choices = Choices(drawn)
        target, often = choices.below(4), 1 + choices.below(2)
        mutants = iter([Choices(bytes([choices.below(256) for _ in range(6)])) for _ in range(often * 4)])
        good = honest(FILES)

        def answer(path: str, headers: Mapping[str, str]) -> list[bytes]:
            pieces = good(path, headers)
            at = 0 if path.startswith("/api/") else 1 if path.endswith("config.json") else 2
            chosen = next(mutants, None) if target in (at, 3) else None
            return [mutated(chosen, pieces[0])] if chosen else pieces

        raw.answer = answer
        begin = time.monotonic()
        try:
            ask(f"evil/r{len(raw.asked)}", way)
        except AtlasError as error:
            said = error
        else:
            said = AtlasError("")
        assert len(said.message) < 1000
        assert "SIGNED" not in said.message + said.hint
        slowest = max(slowest, time.monotonic() - begin)

    run()
    assert slowest < 30
    assert sorted(path.name for path in cache.parents[1].iterdir()) in (outside, sorted({*outside, "hf"}))
    assert capfd.readouterr() == ("", "")
    assert raw.sent < 50_000 * EXAMPLES


def test_the_answers_before_their_mutation(raw: RawHub) -> None:
    raw.answer = honest(FILES)
    assert json.loads(listing({"a": 1}))["sha"] == COMMIT
    for way in range(3):
        ask(f"evil/sound{way}", way)
