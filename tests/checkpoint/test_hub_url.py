"""URLs of the Hub: what each names, and which are refused."""

from __future__ import annotations

import pytest

from atlas.checkpoint.hub_url import HubURL, parse, repository
from atlas.errors import HubError

HUB = "https://huggingface.co"
WHOLE = "model.safetensors"

URLS = [
    (f"{HUB}/owner/name", HubURL("owner/name")),
    (f"{HUB}/gpt2", HubURL("gpt2")),
    ("huggingface.co/owner/name/", HubURL("owner/name")),
    ("hf://owner/name", HubURL("owner/name")),
    ("https://hf.co/owner/name?library=x#y", HubURL("owner/name")),
    (f"{HUB}/models/owner/name", HubURL("owner/name")),
    (f"{HUB}/owner/name/tree/main", HubURL("owner/name", "main")),
    (f"{HUB}/owner/name/tree/v1.0", HubURL("owner/name", "v1.0")),
    (f"{HUB}/owner/name/tree/refs%2Fpr%2F1", HubURL("owner/name", "refs/pr/1")),
    (f"{HUB}/owner/name/commit/abc123", HubURL("owner/name", "abc123")),
    (f"{HUB}/owner/name/blob/main/{WHOLE}", HubURL("owner/name", "main", WHOLE)),
    (
        f"{HUB}/owner/name/blob/refs%2Fpr%2F1/x/config.json",
        HubURL("owner/name", "refs/pr/1", "x/config.json"),
    ),
    (f"{HUB}/owner/name/resolve/v1/{WHOLE}?download=true", HubURL("owner/name", "v1", WHOLE)),
]


@pytest.mark.parametrize(("text", "parts"), URLS)
def test_the_parts_of_a_hub_url(text: str, parts: HubURL) -> None:
    assert parse(text) == repository(text) == parts


@pytest.mark.parametrize("text", ["owner/name", "./huggingface.co/a/b", "gpt2", ""])
def test_any_other_text_is_an_id(text: str) -> None:
    assert parse(text) is None
    assert repository(text) == HubURL(text)


def test_a_folder_is_a_part_of_its_repository_but_not_a_repository() -> None:
    url = f"{HUB}/owner/name/tree/main/original"
    assert parse(url) == HubURL("owner/name", "main", "original", is_folder=True)
    with pytest.raises(HubError, match="only its top folder is read") as error:
        repository(url)
    assert error.value.code == "not_found"


@pytest.mark.parametrize(
    "text",
    [
        f"{HUB}/datasets/owner/name",
        f"{HUB}/owner%2Fname",
        f"{HUB}/owner/näme",
        f"{HUB}/owner/{'a' * 97}",
        "https:///owner/name",
        "https://u:secret@evil.example/owner/name",
        "https://evil.example/owner/name?signature=secret",
        "https://u:secret@huggingface.co/",
        "https://huggingface.co:secret/owner/name",
        "https://[secret/",
    ],
)
def test_urls_of_no_model(text: str) -> None:
    with pytest.raises(HubError) as error:
        repository(text)
    assert error.value.code == "not_found"
    assert "secret" not in error.value.message


def test_the_host_of_the_endpoint_is_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://mirror.example:8080")
    assert parse("http://mirror.example:8080/owner/name") == HubURL("owner/name")
    monkeypatch.setenv("HF_ENDPOINT", "http://[")
    assert parse(f"{HUB}/owner/name") == HubURL("owner/name")
    with pytest.raises(HubError, match="is not a URL of the Hugging Face Hub"):
        parse("http://mirror.example:8080/owner/name")


def test_as_text() -> None:
    assert str(HubURL("owner/name")) == "owner/name"
    assert str(HubURL("owner/name", "v1", WHOLE)) == f"owner/name@v1/{WHOLE}"
