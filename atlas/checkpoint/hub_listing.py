"""The Hub's listing of one revision: the commit, the files with their sizes, and the hashes of files in LFS.

The response is untrusted: it may come from a mirror, a proxy or a login page. Every value is checked before it is used, and
none is repeated in a message, because a careless server may echo the token.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import quote

from atlas.checkpoint.http_session import HttpSession
from atlas.checkpoint.hub_errors import HubErrors
from atlas.checkpoint.paths import COMMIT, SHA256, portable, possible
from atlas.checkpoint.response_body import COMPRESSED, TEXT_WITHIN, body, decoded
from atlas.checkpoint.retry import with_retries
from atlas.checkpoint.settings import endpoint
from atlas.errors import HubError

MOST_BYTES = 16 * 2**20
"""Of a listing: some 60,000 files, where a model has a few hundred."""
_MOST_FILE_BYTES = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Listing:
    """A revision as the Hub lists it, files in folders among them.

    Files whose names could not be written on every system are left out: with a backslash, a control character, a drive
    letter, or longer than a file system takes.

    Attributes:
        commit: 40 hexadecimal digits.
        sizes: file -> bytes.
        hashes: file -> its SHA-256, of those that the Hub keeps in LFS.
    """

    commit: str
    sizes: dict[str, int]
    hashes: dict[str, str]


def fetch_listing(repo: str, revision: str | None, session: HttpSession) -> Listing:
    """The listing of a branch, a tag or a commit, in one request.

    Raises:
        HubError: there is no such repository or revision, access is refused, the Hub cannot be reached, or the server
            is not a Hub.
    """
    from huggingface_hub import constants
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

    with HubErrors(repo):
        validate_repo_id(repo)
        at = f"/revision/{quote(revision, safe='')}" if revision is not None else ""
        text = with_retries(
            partial(_text, session, f"{constants.ENDPOINT}/api/models/{repo}{at}?blobs=true", repo)
        )
    try:
        if len(text) > MOST_BYTES:
            raise _Unfit(f"it is longer than {MOST_BYTES:,} bytes")
        found = parse(json.loads(text))
    except _Unfit as unfit:
        raise _no_listing(repo, unfit.why) from None
    except RecursionError:
        raise _no_listing(repo, "it is nested too deeply") from None
    except ValueError:
        raise _no_listing(repo, "it is not JSON") from None
    if revision is not None and COMMIT.fullmatch(revision) and found.commit != revision:
        raise _no_listing(repo, "it is of another commit than was requested")
    return found


def _text(session: HttpSession, url: str, repo: str) -> bytes:
    with session.reply(url, repo, COMPRESSED, counted=False) as reply:
        return body(decoded(reply.response, repo), MOST_BYTES, repo, within=TEXT_WITHIN)


class _Unfit(ValueError):
    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


def parse(answer: Any) -> Listing:
    """The listing in the parsed JSON.

    Raises:
        ValueError: it is not the listing of a model.
    """
    if not isinstance(answer, dict):
        raise _Unfit("it is not of a model")
    commit, files = answer.get("sha"), answer.get("siblings")
    if not isinstance(commit, str) or not COMMIT.fullmatch(commit):
        raise _Unfit("it has no commit (sha) of 40 hexadecimal digits")
    if not isinstance(files, list):
        raise _Unfit("it has no list of files (siblings)")
    seen: set[str] = set()
    sizes: dict[str, int] = {}
    hashes: dict[str, str] = {}
    for file in files:
        if not isinstance(file, dict):
            raise _Unfit("it is not of a model")
        name, size = file.get("rfilename"), file.get("size")
        if not isinstance(name, str) or not possible(name):
            raise _Unfit("a file in it has no name (rfilename) that a path could have")
        if type(size) is not int or not 0 <= size <= _MOST_FILE_BYTES:
            raise _Unfit("a file in it has no size that is a whole number of bytes")
        if name in seen:
            raise _Unfit("a file is listed twice")
        seen.add(name)
        lfs = file.get("lfs")
        digest = _sha256(lfs) if lfs else None
        if portable(name):
            sizes[name] = size
            if digest is not None:
                hashes[name] = digest
    return Listing(commit, sizes, hashes)


def _sha256(lfs: object) -> str:
    if not isinstance(lfs, dict):
        raise _Unfit("it is not of a model")
    found = lfs.get("sha256")
    if not isinstance(found, str) or not SHA256.fullmatch(found.lower()):
        raise _Unfit("the hash of a file in LFS is no SHA-256")
    return found.lower()


def _no_listing(repo: str, why: str) -> HubError:
    return HubError(
        f"{repo}: the response of {endpoint()} is not a listing with a commit and the files' sizes: {why}",
        hint="check HF_ENDPOINT: it must be the URL of a Hub, or of a mirror that lists files as the Hub does",
        code="listing",
    )
