"""A URL in a message never shows what is secret, whatever the URL is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlas.text import UNPARSABLE, public_url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://huggingface.co/a/b", "https://huggingface.co/a/b"),
        ("http://user:s3cret@host:8080/a/b?X-Amz-Signature=s3cret#s3cret", "http://host:8080/a/b"),
        ("http://s3cret@host", "http://host"),
        ("HTTP://HOST/A", "http://host/A"),
        ("http://[::1]:80/x", "http://[::1]:80/x"),
        ("http://host/a b", "http://host/a%20b"),
        ("http://host/\x1b]0;s\x07", "http://host/%1B%5D0;s%07"),
        ("http://user:s3/cret@host/x", UNPARSABLE),
        ("http://user:12/s3cret@host/x", UNPARSABLE),
        ("http://user:12?s3cret@host/x", UNPARSABLE),
        ("http://user:12#s3cret@host/x", UNPARSABLE),
        ("http://user:p@ss/s3cret@host/x", UNPARSABLE),
        ("user:s3cret@host", UNPARSABLE),
        ("//user:s3cret@host", UNPARSABLE),
        ("http://", UNPARSABLE),
        ("http://host:99999/", UNPARSABLE),
        ("http://[s3cret/", UNPARSABLE),
        ("http://ho\nst:s3cret@", UNPARSABLE),
        ("http://" + "a" * 1000, UNPARSABLE),
        ("", UNPARSABLE),
    ],
)
def test_what_is_shown(url: str, shown: str) -> None:
    assert public_url(url) == shown


def test_a_long_path_is_cut() -> None:
    assert len(public_url("https://host/" + "a" * 10_000)) == 300


@given(
    st.text(min_size=8, max_size=20).map(lambda text: f"q{text}"),
    st.sampled_from(["http://{}@host/x", "http://u:{}@host/x", "http://host/x?{}", "http://host/x#{}"]),
)
def test_no_secret_of_any_characters_is_shown(secret: str, form: str) -> None:
    shown = public_url(form.format(secret))
    assert shown in (UNPARSABLE, "http://host/x")


@given(st.text(max_size=60))
def test_any_text_gives_printable_ascii(text: str) -> None:
    for url in (text, f"http://{text}", f"http://h/{text}"):
        shown = public_url(url)
        assert shown.isascii()
        assert shown.isprintable()
