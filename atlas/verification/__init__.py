"""`atlas verify`: compare the tensors that a checkpoint stores with those that its model declares.

    PATH or repository ── Store ── Inventory ─┐
                                              ├─ Comparison ── causes ── Verification
    --model or config.json ── Description ────┘

The model's description (`specs/`) declares names, shapes and dtypes; the files' headers show what is stored. One cause, such as a
missing file, a wrapper's prefix or a stale number, may make many tensors differ: each cause is reported as one finding.

Only `atlas.cli`, `atlas.report` and `atlas.api` may import this package. NumPy is imported in `deep` only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence

from atlas.checkpoint.findings import Finding, judged
from atlas.checkpoint.inventory import Inventory, take
from atlas.checkpoint.store import BLOB, Store
from atlas.graph.tensors import published
from atlas.spec.library import Library
from atlas.verification import causes
from atlas.verification.catalogue import compare_with_catalogue
from atlas.verification.causes import files
from atlas.verification.comparison import Comparison, compare
from atlas.verification.description import Description, NoDescription, configuration, find_description
from atlas.verification.naming import Naming, declared_names, recognise
from atlas.verification.release import check as check_release
from atlas.verification.result import Checked, File, Source, Verdict, Verification
from atlas.verification.totals import by_dtype, totals, undescribed

__all__ = ["Verification", "verify"]

OnProgress = Callable[[str, int, int], None]
"""A callback: what is being done, the bytes done so far, and the bytes to do."""


def verify(
    store: Store,
    library: Library,
    *,
    only: str | None = None,
    model: str | None = None,
    repo: str | None = None,
    ignore: Collection[str] = (),
    strict: bool = False,
    deep: bool = False,
    release: bool | None = False,
    hash_all: bool = False,
    on_progress: OnProgress | None = None,
) -> Verification:
    """Check a checkpoint.

    Args:
        store: the folder or repository with its files.
        only: the name of the one weight file or index to check; None for the whole checkpoint.
        model: the model to compare with; None for the one that the configuration next to the weights describes.
        ignore: codes of findings to leave out. A finding that something cannot be read is never left out.
        repo: the checkpoint's Hub id. If the catalogue has it, the configuration is compared with the catalogue too.
        strict: report warnings as errors.
        deep: read the tensors' data too.
        release: whether what a release needs besides weights must be there: findings are errors if True, notes if False; None
            for no such check. One file of several is never a release.
        hash_all: with `deep`, also hash weight files for which no hash is recorded.
        on_progress: called while the data is read.

    Raises:
        CheckpointError: there are no weights that can be read.
        UnknownModel, ConfigError, NotDescribed: the named model cannot be resolved.
    """
    started = time.perf_counter()
    inventory = take(store, only)
    findings = list(inventory.findings)
    described: Description | None = None
    unknown: NoDescription | None = None
    if not _is_adapter(inventory):
        found = find_description(inventory, library, model, repo)
        described, unknown = (found, None) if isinstance(found, Description) else (None, found)
    convention = comparison = None
    if described is not None:
        naming = recognise(described.graph, inventory.known_names())
        convention = naming.table.convention if naming else None
        naming = naming or Naming(declared_names(described.graph, _usual_convention(described)))
        comparison = compare(described, naming, inventory)
        sums = totals(comparison)
        caused = list(causes.findings(comparison))
        findings = [found for found in findings if found.code not in comparison.explained_codes]
        findings += [*described.findings(), *caused]
        findings += compare_with_catalogue(described, repo, library) if repo else []
    else:
        sums = undescribed(inventory)
        findings += [unknown.finding, *files.absent_without_description(inventory)] if unknown else []
    if release is not None and only is None and inventory.headers:
        rows = _embedding_rows(comparison) if comparison else None
        findings += check_release(inventory, rows, required=release, configuration=configuration(inventory))
    read = store.bytes_read or inventory.bytes_read
    hashes, checked = store.hashes(), dict[str, str]()
    origin = dict.fromkeys(hashes, "the Hub" if store.kind == "hub" else BLOB)
    if deep and inventory.headers:
        from atlas.verification.deep.check import check  # numpy is imported for it

        data = check(inventory, comparison, hash_all=hash_all, on_progress=on_progress)
        findings = data.merged_with(findings)
        hashes, read = {**hashes, **data.hashes}, read + data.bytes_read
        checked.update(data.checked)
        origin.update(dict.fromkeys(data.hashes, "the data"))
    judgement, ignored = judged(findings, ignore=ignore, strict=strict)
    return Verification(
        model=described.graph.model.id if described else None,
        source=Source(
            store.kind, f"{store.location}/{only}" if only else store.location, store.revision, repo
        ),
        convention=convention,
        verdict=_verdict(judgement, unknown),
        checked=_checked(inventory, deep=deep, release=bool(release) and only is None, hashed=checked),
        indexed=bool(inventory.places),
        dtypes=by_dtype(inventory),
        tensors=sums.tensors,
        parameters=sums.parameters,
        bytes=sums.bytes,
        components=sums.components,
        findings=judgement,
        ignored=ignored,
        files=tuple(
            File(name, inventory.sizes.get(name), hashes.get(name), checked.get(name), origin.get(name))
            for name in (*inventory.headers, *inventory.unread)
        ),
        deep=deep,
        requests=store.requests,
        bytes_read=read,
        seconds=time.perf_counter() - started,
    )


def _verdict(findings: Sequence[Finding], unknown: NoDescription | None) -> Verdict:
    """`not described` if nothing but the description is missing; else what the gravest finding means."""

    def is_unknown(found: Finding) -> bool:
        expected = unknown.finding if unknown else None
        return expected is not None and (found.code, found.file, found.exit_code) == (
            expected.code, expected.file, expected.exit_code,
        )  # fmt: skip

    others = [found for found in findings if not is_unknown(found)]
    worst = max((found.exit_code for found in others), default=0)
    if unknown is not None and worst < 2:
        return "not described" if unknown.readable else "unreadable"
    return ("verified", "differs", "unreadable")[worst]


def _checked(
    inventory: Inventory, *, deep: bool, release: bool, hashed: Mapping[str, str]
) -> tuple[Checked, ...]:
    """What was looked at. Hashes count if that of every weight file was compared with a recorded one."""
    if not inventory.headers:
        return ()
    whole = deep and not inventory.unread
    every_hash = whole and all(file in hashed for file in inventory.headers)
    found: list[tuple[Checked, bool]] = [
        ("headers", True), ("data", whole), ("hashes", every_hash), ("release", release),
    ]  # fmt: skip
    return tuple(name for name, was_checked in found if was_checked)


def _embedding_rows(comparison: Comparison) -> int | None:
    """The rows of the token embedding: of the stored matrix, else as declared."""
    for name, row in comparison.needed.items():
        weight = row.weights[0]
        if weight.shape and weight.shape[0] == ("vocab_size",) and row.tied_to is None:
            tensor = comparison.found.get(name)
            return tensor.shape[0] if tensor is not None and tensor.shape else row.shape[0]
    return comparison.graph.dims.get("vocab_size")


def _is_adapter(inventory: Inventory) -> bool:
    return any(finding.code == "adapter" for finding in inventory.findings)


def _usual_convention(described: Description) -> str:
    """The convention to count by if no tensor's name shows which one the checkpoint follows."""
    known = described.graph.architecture.conventions
    return "meta" if described.file == "params.json" and "meta" in known else published(described.graph)
