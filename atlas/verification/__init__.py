"""A checkpoint held against its description: the names, shapes and dtypes of every tensor, and of nothing more.

    PATH or repository ── Store ── Inventory ─┐
                                              ├─ Case ── causes ── Verification
    --model or config.json ── Description ────┘

What a checkpoint must hold is declared (`specs/`), what it does hold is read from its headers, and here the two meet. Many
differences may have one cause, a missing file, a wrapper's prefix, a stale number: each cause is one finding.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from atlas.checkpoint.findings import judged
from atlas.checkpoint.inventory import Inventory, take
from atlas.checkpoint.store import BLOB, Store
from atlas.graph.tensors import published
from atlas.spec.library import Library
from atlas.verification import causes
from atlas.verification.beside import Description, description
from atlas.verification.case import case
from atlas.verification.catalogued import against_catalogue
from atlas.verification.causes import files
from atlas.verification.declared import declared
from atlas.verification.naming import Naming, recognise
from atlas.verification.result import File, Source, Verification
from atlas.verification.totals import totals, undescribed

__all__ = ["Verification", "verify"]

Told = Callable[[str, int, int], None]
"""Of what is under way, how many bytes are done, and of how many."""


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
    hash_all: bool = False,
    told: Told | None = None,
) -> Verification:
    """Check a checkpoint.

    Args:
        store: where its files lie.
        only: the one weight file, or the index, that was asked for.
        model: what it should be; None for what the configuration beside the weights says.
        ignore: codes of findings to leave out; what cannot be read stays.
        repo: the Hub id it goes by; one of the catalogue is held against the catalogue as well.
        strict: warnings are errors.
        deep: read the data too.
        hash_all: with `deep`, compute the hash of weight files also where none is recorded.
        told: of the progress where the data is read.

    Raises:
        CheckpointError: there are no weights that can be read.
        UnknownModel, ConfigError, NotDescribed: the named model cannot be had.
    """
    started = time.perf_counter()
    inventory = take(store, only)
    findings = list(inventory.findings)
    described = None if _is_adapter(inventory) else description(inventory, library, model, repo)
    convention = held = None
    if isinstance(described, Description):
        naming = recognise(described.graph, inventory.known_names())
        convention = naming.table.convention if naming else None
        held = case(described, naming or Naming(declared(described.graph, _usual(described))), inventory)
        sums = totals(held)
        findings += [*described.warnings(), *causes.findings(held)]
        findings += against_catalogue(described, repo, library) if repo else []
    else:
        sums = undescribed(inventory)
        findings += [described, *files.absent_anyway(inventory)] if described else []
    read = store.bytes_read or inventory.bytes_read
    hashes, checked = store.hashes(), dict[str, str]()
    origin = dict.fromkeys(hashes, "the Hub" if store.kind == "hub" else BLOB)
    if deep and inventory.headers:
        from atlas.verification.deep.check import check  # numpy is imported for it

        data = check(inventory, held, hash_all=hash_all, told=told)
        findings = data.beside(findings)
        hashes, read = {**hashes, **data.hashes}, read + data.bytes_read
        checked.update(data.checked)
        origin.update(dict.fromkeys(data.hashes, "the data"))
    judgement, ignored = judged(findings, ignore=ignore, strict=strict)
    return Verification(
        model=described.graph.model.id if isinstance(described, Description) else None,
        source=Source(
            store.kind, f"{store.location}/{only}" if only else store.location, store.revision, repo
        ),
        convention=convention,
        verdict=("verified", "differs", "unreadable")[max((f.exit_code for f in judgement), default=0)],
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


def _is_adapter(inventory: Inventory) -> bool:
    return any(finding.code == "adapter" for finding in inventory.findings)


def _usual(described: Description) -> str:
    """The convention to count by where no name tells it."""
    known = described.graph.architecture.conventions
    return "meta" if described.file == "params.json" and "meta" in known else published(described.graph)
