"""What the Hub says of one revision of a repository: its commit, its files with their sizes, the hashes of those in LFS.

The answer is a stranger's: a mirror, a proxy, a page to sign in. So every value in it is looked at before it is used, and
none is repeated in a message, because a careless server may repeat the token that it was sent.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import quote

from atlas.checkpoint.client import endpoint
from atlas.checkpoint.patience import patiently
from atlas.checkpoint.refusals import Refusals
from atlas.checkpoint.wire import Wire, body
from atlas.errors import HubError

MOST_LISTING_BYTES = 64 * 2**20
"""Of a listing: far beyond any real one."""
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Listing:
    """A revision as the Hub lists it, its own files only: no folder in it is entered.

    Attributes:
        sizes: file -> bytes.
        hashes: file -> its SHA-256, of those that the Hub keeps in LFS.
    """

    commit: str
    sizes: dict[str, int]
    hashes: dict[str, str]


def listing(repo: str, revision: str | None, wire: Wire) -> Listing:
    """The listing of a branch, a tag or a commit, in one request.

    Raises:
        HubError: there is no such repository or revision, access is refused, the Hub cannot be reached, or what answers
            is no Hub.
    """
    from huggingface_hub import constants
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

    with Refusals(repo):
        validate_repo_id(repo)
        at = "" if revision is None else f"/revision/{quote(revision, safe='')}"
        raw = patiently(partial(_asked, f"{constants.ENDPOINT}/api/models/{repo}{at}?blobs=True", repo, wire))
    if len(raw) > MOST_LISTING_BYTES:
        raise _no_listing(repo, f"it is longer than {MOST_LISTING_BYTES:,} bytes")
    try:
        value = json.loads(raw)
    except RecursionError:
        raise _no_listing(repo, "it is nested too deeply") from None
    except ValueError:
        raise _no_listing(repo, "it is not JSON") from None
    try:
        return _listing(value)
    except _Unfit as unfit:
        raise _no_listing(repo, unfit.why) from None


def _asked(url: str, repo: str, wire: Wire) -> bytes:
    with wire.reply(url) as response:
        return body(response.iter_bytes(), MOST_LISTING_BYTES, repo)


class _Unfit(Exception):
    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


def _listing(value: Any) -> Listing:
    if not isinstance(value, dict):
        raise _Unfit("it is not a JSON object")
    commit, siblings = value.get("sha"), value.get("siblings")
    if not _is_text(commit) or not commit:
        raise _Unfit("it has no commit (sha)")
    if not isinstance(siblings, list):
        raise _Unfit("it has no list of files (siblings)")
    sizes: dict[str, int] = {}
    hashes: dict[str, str] = {}
    for file in siblings:
        if not isinstance(file, dict) or not _is_text(file.get("rfilename")):
            raise _Unfit("a file in it has no name (rfilename) that is text")
        name, size, lfs = file["rfilename"], file.get("size"), file.get("lfs")
        if "/" in name:
            continue
        if type(size) is not int or size < 0:
            raise _Unfit("a file in it has no size that is a whole number of bytes")
        if name in sizes:
            raise _Unfit("a file stands twice in it")
        sizes[name] = size
        if lfs:
            hashes[name] = _sha256(lfs)
    return Listing(commit, sizes, hashes)


def _sha256(lfs: object) -> str:
    found = lfs.get("sha256") if isinstance(lfs, dict) else None
    if not isinstance(found, str) or not _SHA256.fullmatch(found.lower()):
        raise _Unfit("the hash of a file in LFS is no SHA-256")
    return found.lower()


def _is_text(value: object) -> bool:
    """Whether it is a string of characters: JSON can spell half a surrogate pair, which is none."""
    try:
        return isinstance(value, str) and value.encode().decode() == value
    except UnicodeEncodeError:
        return False


def _no_listing(repo: str, why: str) -> HubError:
    return HubError(
        f"{repo}: what {endpoint()} answered is no listing with a commit and the files' sizes: {why}",
        hint="check HF_ENDPOINT: it must lead to a Hub, or to a mirror that lists files as the Hub does",
        code="listing",
    )
