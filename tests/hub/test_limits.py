"""Limits on time and length of responses, a disabled repository, and an empty cache setting."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from huggingface_hub import constants

from atlas.checkpoint import deadline, response_body
from atlas.checkpoint.remote import open_repository
from atlas.errors import HubError
from tests.hub.checkpoints import ONE
from tests.hub.fake_hub import FakeHub
from tests.hub.raw_hub import RawHub, listing, reply


def refused() -> HubError:
    with pytest.raises(HubError) as error:
        open_repository("evil/repo")
    return error.value


def test_a_listing_in_small_chunks_has_a_deadline(raw: RawHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fast enough for the minimum rate, and without an end."""
    monkeypatch.setattr(response_body, "TEXT_WITHIN", 0.5)
    for module in ("hub_listing",):
        monkeypatch.setattr(f"atlas.checkpoint.{module}.TEXT_WITHIN", 0.5)

    def chunks() -> Iterator[bytes]:
        yield reply(200, b"", {"Transfer-Encoding": "chunked"}).replace(b"Content-Length: 0\r\n", b"")
        for _ in range(200):
            time.sleep(0.05)
            yield b"1\r\n \r\n"

    raw.answer = lambda path, headers: chunks()
    begin = time.monotonic()
    error = refused()
    assert error.code == "network"
    assert "too slowly" in error.message
    assert time.monotonic() - begin < 8  # all the chunks take 10 s


def test_interim_responses_without_end(raw: RawHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "HEAD_WITHIN", 0.5)

    def interim() -> Iterator[bytes]:
        for _ in range(200):
            time.sleep(0.05)
            yield b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"

    raw.answer = lambda path, headers: interim()
    begin = time.monotonic()
    assert "too slowly" in refused().message
    assert time.monotonic() - begin < 8


def test_two_statements_of_length(raw: RawHub) -> None:
    text = listing({"config.json": 2})
    chunked = b"%x\r\n%b\r\n0\r\n\r\n" % (len(text), text)
    raw.answer = lambda path, headers: [reply(200, chunked, {"Transfer-Encoding": "chunked"})]
    assert "Content-Length and a Transfer-Encoding" in refused().message


def test_a_disabled_repository(hub: FakeHub) -> None:
    hub.add("tiny/off", ONE, disabled=True)
    with pytest.raises(HubError, match="tiny/off is disabled on the Hub"):
        open_repository("tiny/off")


def test_an_empty_cache_setting(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", "")
    with pytest.raises(HubError, match="HF_HUB_CACHE is empty"):
        open_repository("tiny/ok")
