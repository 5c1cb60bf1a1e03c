"""`atlas verify`: compare a checkpoint with what the description declares."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from atlas.checkpoint.hub_url import HubURL, repository
from atlas.cli.options import Json, Specs, library_of
from atlas.errors import UsageError
from atlas.report import console

if TYPE_CHECKING:
    from atlas.verification import OnProgress
    from atlas.verification.result import Verification


FORMATS = ("text", "github", "junit")


def register(app: typer.Typer) -> None:
    app.command("verify")(verify)


def _path(text: str) -> Path:
    """A path; an empty one, as an unset shell variable gives, would mean the current folder.

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
            "--repo", metavar="ID", help="A repository on the Hub; only the headers are read. Repeatable."
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
            help="The model to compare with; by default the one that its config.json or params.json describes.",
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
            help="Leave out findings with these codes, such as dtype,tied. Unreadable files are always reported.",
        ),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Report warnings as errors.")] = False,
    release: Annotated[
        bool,
        typer.Option(
            "--release", help="Require what a release needs: a tokenizer and settings that fit the model."
        ),
    ] = False,
    format: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="text|github|junit",
            help="How to print findings: as text, as GitHub annotations, or as JUnit XML.",
        ),
    ] = "text",
    receipt: Annotated[
        Path | None,
        typer.Option("--receipt", metavar="FILE", help="Write a receipt: the result as JSON, with hashes."),
    ] = None,
    json: Json = False,
    specs: Specs = None,
) -> None:
    """Check the name, shape and dtype of every tensor of a checkpoint. Only headers are read, unless --deep is given.

    Exit code 0: all is as declared; 1: something differs; 2: something cannot be read, or the model is not described.

    Example: atlas verify --repo meta-llama/Llama-3.1-8B

    Example: atlas verify my-model --deep --release --strict --format github
    """
    from atlas.api.checkpoint import finding_codes, open_store
    from atlas.report import verify as show
    from atlas.report.progress import bars_are_seen, progress
    from atlas.verification import receipt as receipts
    from atlas.verification import verify as verified
    from atlas.verification.batch import AT_ONCE, outcomes, read_repository_list
    from atlas.verification.result import Batch

    asked = [*(repo or []), *(read_repository_list(repos_from) if repos_from else [])]
    addresses = {str(address): address for address in map(repository, asked)}
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
            "PATH is on disk: it cannot be combined with --repo, --repos-from, --revision or --download"
        )
    if format not in FORMATS:
        raise UsageError(f"--format is {format!r}, expected {', '.join(FORMATS)}")
    form = cast("Literal['text', 'github', 'junit']", format)
    if json and form != "text":
        raise UsageError("--json and --format cannot be combined: give one of them")
    if receipt is not None and len(repos) > 1:
        raise UsageError("--receipt takes one checkpoint, but several are given")
    if receipt is not None:
        receipts.require_place(receipt)
    if deep:
        from atlas.verification.deep import require_extra

        require_extra()
    codes = finding_codes(ignore or [])
    library = library_of(specs)

    def checked(given: Path | str, on_progress: OnProgress | None = None) -> Verification:
        where = addresses[given] if isinstance(given, str) else given
        store, only = open_store(where, revision, download=download, deep=deep, progress=bars_are_seen())
        return verified(
            store,
            library,
            only=only,
            model=model,
            repo=where.repo if isinstance(where, HubURL) else None,
            ignore=codes,
            strict=strict,
            deep=deep,
            release=release,
            hash_all=receipt is not None,
            on_progress=on_progress,
        )

    if len(repos) < 2:
        with progress(unit="bytes") as on_progress:
            result = checked(path or repos[0], on_progress)
        if json:
            console.json(result)
        elif form != "text":
            show.show_as(form, [result])
        else:
            show.show(result)
        written = receipt is None or _write_receipt(result, receipt)
        raise typer.Exit(result.exit_code if written else 2)
    found = {}
    for at, outcome in outcomes(repos, checked, at_once=1 if deep else AT_ONCE):
        found[at] = outcome
        if not json and form == "text":
            show.line(outcome)
    batch = Batch(tuple(found[at] for at in sorted(found)))
    if json:
        console.json(batch)
    elif form != "text":
        show.show_as(form, batch.checkpoints)
    raise typer.Exit(batch.exit_code)


def _write_receipt(result: Verification, path: Path) -> bool:
    """Write the receipt; False, with a message on stderr, if it cannot be written."""
    from atlas.files import write_whole
    from atlas.report.plain import dumps
    from atlas.verification.receipt import receipt

    try:
        write_whole(path, dumps(receipt(result)) + "\n")
    except UsageError as error:
        console.error(f"--receipt {error.message}", error.hint)
        return False
    return True
