"""What of an address may be shown."""

from __future__ import annotations

import pytest

from atlas.urls import public_url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://huggingface.co/a/b", "https://huggingface.co/a/b"),
        ("http://user:pa@ss@127.0.0.1:9/a", "http://127.0.0.1:9/a"),
        ("https://cdn.example/f?X-Amz-Signature=abc#part", "https://cdn.example/f"),
        ("http://user:secret@[::1]:80/x", "http://[::1]:80/x"),
        ("http://user:secret@[::1", "an address that cannot be parsed"),
        ("http://user:12@host:secret/", "an address that cannot be parsed"),
    ],
)
def test_only_what_is_public(url: str, shown: str) -> None:
    assert public_url(url) == shown
