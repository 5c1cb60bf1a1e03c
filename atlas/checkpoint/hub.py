"""Single files of the Hub, through huggingface_hub: from its local cache, else fetched into it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from atlas.checkpoint.client import ready
from atlas.checkpoint.patience import patiently
from atlas.checkpoint.refusals import Refusals, not_taken


def config_file(repo: str) -> Path:
    """A repository's config.json: from the local cache if it is there, else fetched, that one file alone.

    Raises:
        HubError: there is no such repository or file, access is refused, or the Hub cannot be reached.
    """
    return file(repo, "config.json")


def file(repo: str, path: str, *, revision: str | None = None) -> Path:
    """One file of a repository, from the local cache if it is there, else fetched.

    Raises:
        HubError: as `config_file`.
    """
    ready()
    from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url, try_to_load_from_cache

    try:
        with Refusals(repo, path):
            found = try_to_load_from_cache(repo, path, revision=revision)
            if not isinstance(found, str):
                # Where the Hub is down, hf_hub_download says so after half a minute and five warnings.
                patiently(partial(get_hf_file_metadata, hf_hub_url(repo, path, revision=revision)))
                found = hf_hub_download(repo, path, revision=revision)
    except ValueError as error:
        raise not_taken(f"{repo}/{path}", error) from None
    return Path(found)
