"""Fetches the config.json of a repository on the Hub, or takes it from the local cache."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import BinaryIO

from atlas.checkpoint import cache
from atlas.checkpoint.http_session import HttpSession
from atlas.checkpoint.hub_errors import HubErrors
from atlas.checkpoint.paths import COMMIT
from atlas.checkpoint.response_body import COMPRESSED, TEXT_WITHIN, body, decoded
from atlas.checkpoint.retry import with_retries
from atlas.checkpoint.settings import ready
from atlas.errors import HubError

MOST_CONFIG_BYTES = 16 * 2**20
_NAME = "config.json"


def config_file(repo: str, revision: str | None = None) -> Path:
    """The path of a repository's config.json in the local cache; fetched first if absent, no other file is.

    Raises:
        HubError: there is no such repository or file, access is refused, or the Hub cannot be reached.
    """
    ready()
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

    where = f"{repo}/{_NAME}"
    with HubErrors(repo, _NAME):
        validate_repo_id(repo)
        folder = cache.snapshot(repo, revision)
        if folder is not None and os.path.isfile(folder / _NAME):
            return folder / _NAME
        data, commit = with_retries(partial(_fetched, repo, revision, where))
        if len(data) > MOST_CONFIG_BYTES:
            raise HubError(
                f"{where}: larger than the limit of {MOST_CONFIG_BYTES:,} bytes",
                code="transfer",
            )
        if commit is None or not COMMIT.fullmatch(commit):
            raise HubError(
                f"{where}: the response has no commit header (X-Repo-Commit) of 40 hexadecimal digits, which a Hub sends",
                hint="a proxy or a mirror in between may be at fault: check HF_ENDPOINT",
                code="transfer",
            )
        path = cache.store(repo, commit, _NAME, len(data), None, partial(_written, data))
        cache.point(repo, revision, commit)
    return path


def _fetched(repo: str, revision: str | None, where: str) -> tuple[bytes, str | None]:
    """The file, or what shows it to be too long, and the commit that the server states."""
    from huggingface_hub import hf_hub_url

    with HttpSession().reply(hf_hub_url(repo, _NAME, revision=revision), where, COMPRESSED) as reply:
        return body(
            decoded(reply.response, where), MOST_CONFIG_BYTES, where, within=TEXT_WITHIN
        ), reply.first("x-repo-commit")


def _written(data: bytes, file: BinaryIO) -> None:
    file.write(data)
