"""Names: those of another model, with a wrapper's prefix, or in a convention that the configuration is not for."""

from __future__ import annotations

from collections.abc import Iterator

from atlas.checkpoint.findings import Finding, listing
from atlas.verification.causes.modules import BASE_LAYER
from atlas.verification.comparison import Comparison
from atlas.verification.naming import FormerNames, Renaming

_PREFIX_FROM = {
    "_orig_mod.": "torch.compile adds it; save the state_dict of the module that was compiled",
    "module.": "DataParallel adds it; save the state_dict of model.module",
    "base_model.model.": "PEFT adds it; merge the adapter and save the base model",
    "model.language_model.": "this is the language part of a model that also reads images",
    "language_model.": "this is the language part of a model that also reads images",
}
_CONFIGURATION = {"hf": "config.json", "meta": "params.json"}


def of_another_model(comparison: Comparison) -> Iterator[Finding]:
    """Few of the expected names are stored, if any, and most of the stored names are unexpected."""
    missing, strange = list(comparison.missing), list(comparison.unexpected)
    there = len(comparison.needed) - len(missing)
    if (
        not missing
        or comparison.inventory.absent
        or there * 4 > len(comparison.needed)
        or len(strange) * 2 < len(comparison.found)
    ):
        return
    what = (
        f"expected names such as {missing[0]}, found names such as {strange[0]}; this is another model, or its names follow a "
        "convention that is not described"
        if strange
        else "the files hold no tensors at all"
    )
    yield Finding(
        code="missing",
        tensor=missing[0],
        expected=len(comparison.needed),
        found=there,
        count=len(missing),
        message=f"{there:,} of {len(comparison.needed):,} expected tensors are stored: {what}",
    )
    comparison.explained([*missing, *strange])


def prefixed(comparison: Comparison) -> Iterator[Finding]:
    """A prefix of the names, or a word inside them: reported once, and ignored for all else."""
    renaming = comparison.naming.renaming
    if isinstance(renaming, FormerNames) and renaming.usual:
        return
    if isinstance(renaming, FormerNames):
        yield from _former(comparison, renaming)
    elif renaming is not None and not (comparison.unmerged and renaming.part == BASE_LAYER):
        yield from _prefixed(comparison, renaming)


def _former(comparison: Comparison, renaming: FormerNames) -> Iterator[Finding]:
    names = [name for name in comparison.inventory.tensors if name in comparison.renamed]
    matching = sum(name in comparison.found for name in comparison.needed)
    yield Finding(
        code="unexpected",
        tensor=names[0],
        expected=comparison.renamed[names[0]],
        found=names[0],
        count=len(names),
        message=f"{len(names):,} of {len(comparison.inventory.tensors):,} names, such as {names[0]}, are {renaming.title}: by their "
        f"present names, {matching:,} of {len(comparison.needed):,} match; rename them (this one to "
        f"{comparison.renamed[names[0]]}), or convert the original weights again",
    )


def _prefixed(comparison: Comparison, renaming: Renaming) -> Iterator[Finding]:
    stored = comparison.inventory.tensors
    carriers = [name for name in stored if name in comparison.renamed]
    subject = f"{len(carriers):,} of {len(stored):,} names"
    if len(carriers) == len(stored):
        subject = f"all {len(stored):,} names"
    elif len(carriers) < 3:
        subject += f" ({listing(carriers)})"
    part, replacement = renaming.part, renaming.replacement
    if not part:
        what = f"lack the prefix `{replacement}`; with it"
    elif renaming.anywhere:
        what = f"have `{part}` inside them; without it"
    else:
        what = f"begin with `{part}`; " + (f"with `{replacement}` instead" if replacement else "without it")
    matching = sum(name in comparison.found for name in comparison.needed)
    advice = _PREFIX_FROM.get(part, "rename the tensors")
    yield Finding(
        code="unexpected",
        tensor=carriers[0] if carriers else None,
        expected=comparison.renamed[carriers[0]] if carriers else None,
        found=part or None,
        count=len(carriers),
        message=f"{subject} {what}, {matching:,} of {len(comparison.needed):,} match; {advice}",
    )


def of_the_other_convention(comparison: Comparison) -> Iterator[Finding]:
    """Meta's names with a config.json, or the Hub's names with a params.json."""
    own = _CONFIGURATION.get(comparison.naming.table.convention)
    configurations = [file for file in _CONFIGURATION.values() if file in comparison.inventory.sizes]
    if own is None or not configurations or own in configurations:
        return
    titles = {
        name: convention.title for name, convention in comparison.graph.architecture.conventions.items()
    }
    name = next((name for name in comparison.needed if name in comparison.found), None)
    yield Finding(
        code="config",
        tensor=name,
        file=configurations[0],
        expected=own,
        found=configurations[0],
        message=f"{comparison.inventory.store.location}: the names, such as {name}, are those of "
        f"{titles[comparison.naming.table.convention]}, which need {own}, but only {configurations[0]} is there; add {own}, or "
        "convert the weights",
    )
