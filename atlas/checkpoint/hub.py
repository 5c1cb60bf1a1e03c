"""The Hub, through huggingface_hub: single files, and refusals told apart.

Authentication, endpoint, cache and offline mode are that library's; here its errors become sentences that say what to do.
A token is never part of one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from atlas.errors import HubError


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
    from huggingface_hub import hf_hub_download, try_to_load_from_cache

    with refusals(repo, path):
        cached = try_to_load_from_cache(repo, path, revision=revision)
        if isinstance(cached, str):
            return Path(cached)
        return Path(hf_hub_download(repo, path, revision=revision))
    raise AssertionError("refusals() re-raises")


@contextmanager
def refusals(repo: str, path: str = "") -> Iterator[None]:
    """Turn what huggingface_hub raises inside into a HubError.

    A gated repository without a token, one whose token has no access, and one that is not there are three different
    things to do; the Hub's error code tells them apart.
    """
    from huggingface_hub import errors

    what = f"{repo}: {path}" if path else repo
    try:
        yield
    except errors.GatedRepoError as error:
        status = _status(error)
        if status == 403:
            raise HubError(
                f"{repo} is gated, and the token in use has no access to it",
                hint=f"ask for access on the model's page, {_page(repo)}",
                code="forbidden",
            ) from None
        raise HubError(
            f"{repo} is gated, and no token was given",
            hint=f"accept its terms on {_page(repo)}, then set HF_TOKEN or log in with `hf auth login`",
            code="gated",
        ) from None
    except errors.RepositoryNotFoundError:
        raise HubError(
            f"{repo}: no such repository was found on the Hub",
            hint="check the spelling; a private one needs a token (HF_TOKEN)",
            code="not_found",
        ) from None
    except errors.RevisionNotFoundError:
        raise HubError(f"{repo}: no such revision", hint="give a branch, a tag or a commit", code="not_found") from None
    except errors.LocalEntryNotFoundError as error:
        raise _unreachable(what, error) from None
    except errors.EntryNotFoundError:
        raise HubError(f"{what} was not found in the repository", code="not_found") from None
    except errors.OfflineModeIsEnabled as error:
        raise _unreachable(what, error) from None
    except errors.HFValidationError:
        raise HubError(f"{repo!r} is no Hub id; expected owner/name", code="not_found") from None
    except errors.HfHubHTTPError as error:
        raise HubError(f"{what}: the Hub answered {_status(error) or 'with an error'}", code="network") from None
    except OSError as error:
        raise _unreachable(what, error) from None
    except HubError:
        raise
    except Exception as error:
        # The HTTP library under huggingface_hub has changed twice; its own errors are known by their module only.
        if type(error).__module__.partition(".")[0] in {"httpx", "httpx2", "httpcore", "httpcore2", "requests"}:
            raise _unreachable(what, error) from None
        raise


def _unreachable(what: str, error: Exception) -> HubError:
    from huggingface_hub import constants

    if constants.is_offline_mode():
        return HubError(
            f"{what} is not in the local cache, and HF_HUB_OFFLINE is set", hint="unset it to ask the Hub", code="offline"
        )
    return HubError(
        f"{what} is not in the local cache, and the Hub could not be reached ({constants.ENDPOINT})",
        hint="check the network, or HF_ENDPOINT",
        code="network",
    )


def _status(error: Exception) -> int | None:
    response = getattr(error, "response", None)
    status: int | None = getattr(response, "status_code", None)
    return status


def _page(repo: str) -> str:
    from huggingface_hub import constants

    return f"{constants.ENDPOINT}/{repo}"
