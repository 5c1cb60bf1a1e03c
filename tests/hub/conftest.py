"""A fake Hub that huggingface_hub takes for the real one, with an empty cache and nobody logged in."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants

from atlas.checkpoint import retry, workers
from tests.hub.fake_hub import FakeHub
from tests.hub.raw_hub import RawHub


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the local Hub cache, still empty."""
    folder = tmp_path / "hf" / "hub"
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(folder))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "hf" / "token"))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_TELEMETRY", True)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def hub(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with FakeHub() as fake:
        monkeypatch.setattr(constants, "ENDPOINT", fake.url)
        template = fake.url + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        yield fake
        _let_everybody_finish()


def _let_everybody_finish() -> None:
    """Until no thread has a request of this test left, which would go to the server of the next."""
    many = len(workers._threads)
    everybody = threading.Barrier(many + 1)
    for _ in range(many):
        workers.submit(everybody.wait)
    everybody.wait(10)


@pytest.fixture
def raw(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RawHub]:
    """A server whose every byte a test chooses, taken for the Hub."""
    with RawHub() as hub:
        monkeypatch.setattr(constants, "ENDPOINT", hub.url)
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", hub.url + "/{repo_id}/resolve/{revision}/{filename}"
        )
        monkeypatch.setattr(retry, "WAITS", (0.01, 0.01, 0.01))
        yield hub
        _let_everybody_finish()
