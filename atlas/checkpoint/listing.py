"""What the Hub says of one revision of a repository: its commit, its files with their sizes, the hashes of those in LFS.

The answer is a stranger's: a mirror, a proxy, a page to sign in. So every value in it is looked at before it is used, and
none is repeated in a message, because a careless server may repeat the token that it was sent.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from atlas.checkpoint.client import endpoint
from atlas.checkpoint.patience import patiently
from atlas.checkpoint.refusals import Refusals
from atlas.checkpoint.wire import Wire
from atlas.errors import HubError
from atlas.version import __version__

_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Listing:
    """A revision as the Hub lists it, files in folders among them.

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
    from huggingface_hub import HfApi, constants

    api = HfApi(library_name="open-model-atlas", library_version=__version__)
    ask = partial(
        api.model_info,
        repo,
        revision=revision,
        files_metadata=True,
        timeout=constants.HF_HUB_DOWNLOAD_TIMEOUT,
    )
    try:
        with Refusals(repo):
            return _listing(patiently(partial(_counted, wire, ask)))
    except _Unfit as unfit:
        raise _no_listing(repo, unfit.why) from None
    except RecursionError:
        raise _no_listing(repo, "it is nested too deeply") from None
    except (ValueError, LookupError, TypeError, AttributeError):  # of huggingface_hub, which expects a Hub
        raise _no_listing(repo, "it is not JSON, or not of a model") from None


def _counted(wire: Wire, ask: Callable[[], Any]) -> Any:
    wire.count()
    return ask()


class _Unfit(Exception):
    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


def _listing(info: Any) -> Listing:
    """What huggingface_hub made of the answer, without looking at it."""
    if not _is_text(info.sha) or not info.sha:
        raise _Unfit("it has no commit (sha)")
    if not isinstance(info.siblings, list):
        raise _Unfit("it has no list of files (siblings)")
    sizes: dict[str, int] = {}
    hashes: dict[str, str] = {}
    for file in info.siblings:
        name, size = file.rfilename, file.size
        if not _is_text(name):
            raise _Unfit("a file in it has no name (rfilename) that is text")
        if type(size) is not int or size < 0:
            raise _Unfit("a file in it has no size that is a whole number of bytes")
        if name in sizes:
            raise _Unfit("a file stands twice in it")
        sizes[name] = size
        if file.lfs:
            hashes[name] = _sha256(file.lfs.sha256)
    return Listing(info.sha, sizes, hashes)


def _sha256(found: object) -> str:
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
