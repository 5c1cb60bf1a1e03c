"""`atlas verify`: a checkpoint held against what the description declares."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atlas.checkpoint.hub_address import HubAddress, parse_hub_address
from atlas.cli.options import Json, Specs, library_of
from atlas.errors import UsageError
from atlas.report import console

if TYPE_CHECKING:
    from atlas.checkpoint.store import Store
    from atlas.report.progress import Told
    from atlas.verification.result import Verification


def register(app: typer.Typer) -> None:
    app.command("verify")(verify)


def _path(text: str) -> Path:
    """A path; not the nothing that a variable without a value leaves, which would be the folder one is in.

    Raises:
        UsageError: it is empty.
    """
    if not text:
        raise UsageError("PATH is empty; expected a folder or a file")
    return Path(text)


def verify(
    ctx: typer.Context,
    path: Annotated[
        Path | None,
        typer.Argument(
            metavar="PATH", help="A checkpoint's folder, its index, or a weight file.", parser=_path
        ),
    ] = None,
    repo: Annotated[
        list[str] | None,
        typer.Option(
            "--repo", metavar="ID", help="A repository on the Hub, by its headers alone. Repeatable."
        ),
    ] = None,
    repos_from: Annotated[
        Path | None,
        typer.Option("--repos-from", metavar="FILE", help="Repositories from a file, one a line."),
    ] = None,
    revision: Annotated[
        str | None,
        typer.Option("--revision", metavar="R", help="A branch, a tag or a commit; main by default."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="MODEL",
            help="What it should be; by default what the configuration beside says.",
        ),
    ] = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="Read the data too: non-finite values, zeros, tied copies, hashes.")
    ] = False,
    download: Annotated[
        bool, typer.Option("--download", help="Fetch the repository first, then verify what was fetched.")
    ] = False,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            "--ignore",
            metavar="CODES",
            help="Leave out findings of these codes (dtype,tied). What cannot be read stays.",
        ),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings are errors.")] = False,
    receipt: Annotated[
        Path | None, typer.Option("--receipt", metavar="FILE", help="Write what was verified as JSON.")
    ] = None,
    json: Json = False,
    specs: Specs = None,
) -> None:
    """Check the name, shape and dtype of every tensor of a checkpoint; without --deep no weight is read.

    Exit 0 where all of it is as declared, 1 where something differs, 2 where something cannot be read.

    Example: atlas verify --repo meta-llama/Llama-3.1-8B
    """
    from atlas.report import verify as show
    from atlas.report.progress import progress
    from atlas.verification import receipt as receipts
    from atlas.verification import verify as verified
    from atlas.verification.result import Several
    from atlas.verification.several import AT_ONCE, listed, outcomes

    asked = [*(repo or []), *(listed(repos_from) if repos_from else [])]
    addresses = {str(address): address for address in map(parse_hub_address, asked)}
    repos = list(addresses)
    if revision is not None and (
        named := [at for at in addresses.values() if at.revision not in (None, revision)]
    ):
        raise UsageError(
            f"--revision {revision}: the URL of {named[0].repo} names another, {named[0].revision}"
        )
    if path is None and not repos:
        usage = " ".join(ctx.get_usage().split())
        raise UsageError("there is nothing to verify: give a PATH or --repo", hint=usage)
    if path is not None and (repos or revision or download):
        raise UsageError(
            "PATH is on disk: it does not go with --repo, --repos-from, --revision or --download"
        )
    if receipt is not None and len(repos) > 1:
        raise UsageError("--receipt is of one checkpoint, and several are given")
    if receipt is not None:
        receipts.require_place(receipt)
    if deep:
        from atlas.verification.deep import require_extra

        require_extra()
    codes = _codes(ignore or [])
    library = library_of(specs)

    def checked(given: Path | str, told: Told | None = None) -> Verification:
        where = addresses[given] if isinstance(given, str) else given
        store, only = _store(where, revision, download=download, deep=deep)
        return verified(
            store,
            library,
            only=only,
            model=model,
            repo=where.repo if isinstance(where, HubAddress) else None,
            ignore=codes,
            strict=strict,
            deep=deep,
            hash_all=receipt is not None,
            told=told,
        )

    if len(repos) < 2:
        with progress(unit="bytes") as told:
            result = checked(path or repos[0], told)
        if json:
            console.json(result)
        else:
            show.show(result)
        kept = receipt is None or _keep(result, receipt)
        raise typer.Exit(result.exit_code if kept else 2)
    found = {}
    for at, outcome in outcomes(repos, checked, at_once=1 if deep else AT_ONCE):
        found[at] = outcome
        if not json:
            show.line(outcome)
    several = Several(tuple(found[at] for at in sorted(found)))
    if json:
        console.json(several)
    raise typer.Exit(several.exit_code)


def _keep(result: Verification, path: Path) -> bool:
    """Write the receipt of what has been shown; whether it could be written, which is told on stderr if not."""
    from atlas.files import write_whole
    from atlas.report.plain import dumps
    from atlas.verification.receipt import receipt

    try:
        write_whole(path, dumps(receipt(result)) + "\n")
    except UsageError as error:
        console.error(f"--receipt {error.message}", error.hint)
        return False
    return True


def _store(
    where: Path | HubAddress, revision: str | None, *, download: bool, deep: bool
) -> tuple[Store, str | None]:
    """Where a checkpoint lies, and the one file of it that was asked for.

    Raises:
        UsageError: `deep`, and the data is not on disk.
    """
    if isinstance(where, Path):
        from atlas.checkpoint import local

        return local.at(where)
    revision, only = revision or where.revision, _weight_file(where.file)
    if download:
        from atlas.checkpoint.download import download as fetch
        from atlas.checkpoint.snapshot import Snapshot
        from atlas.report.progress import bars_are_seen

        return Snapshot(fetch(where.repo, revision, progress=bars_are_seen())), only
    if deep:
        from atlas.checkpoint.snapshot import complete

        if snapshot := complete(where.repo, revision):
            return snapshot, only
        raise UsageError(
            f"{where.repo}: --deep reads the data, which is on the Hub and not, or not whole, in the local cache",
            hint="fetch it, with --download",
        )
    from atlas.checkpoint.remote import open_repository

    return open_repository(where.repo, revision), only


def _weight_file(file: str | None) -> str | None:
    """The one file of a URL, where it is weights or an index; another file's URL names its repository."""
    return file if file is not None and file.endswith((".safetensors", ".safetensors.index.json")) else None


def _codes(words: list[str]) -> frozenset[str]:
    """The codes in `dtype,tied`.

    Raises:
        UsageError: there is no such code.
    """
    from atlas.checkpoint.findings import CODES

    codes = frozenset(code.strip().lower() for word in words for code in word.split(",") if code.strip())
    if unknown := sorted(codes.difference(CODES)):
        raise UsageError(
            f"--ignore: no finding has the code {', '.join(unknown)}", hint=f"there are {', '.join(CODES)}"
        )
    return codes
