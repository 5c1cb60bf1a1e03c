"""Names: another model's, with a wrapper's prefix, or in the convention that the configuration beside is not for."""

from __future__ import annotations

from collections.abc import Iterator

from atlas.checkpoint.findings import Finding, listing
from atlas.verification.case import Case

_LEFT_BY = {
    "_orig_mod.": "torch.compile leaves it; save the state_dict of the module that was compiled",
    "module.": "DataParallel leaves it; save the state_dict of model.module",
    "base_model.model.": "PEFT leaves it; merge the adapter and save the model it was made for",
    "model.language_model.": "this is the language part of a model that also reads images",
    "language_model.": "this is the language part of a model that also reads images",
}
# What GPTQ and AWQ, bitsandbytes, and compressed-tensors store in place of a matrix, or beside it.
_QUANTISED = (
    ".qweight", ".qzeros", ".scales", ".g_idx", ".weight.absmax", ".weight.quant_map", ".weight.quant_state.bitsandbytes__nf4",
    ".weight.quant_state.bitsandbytes__fp4", ".weight.nested_absmax", ".weight.nested_quant_map", ".SCB", ".weight_format",
    ".weight_packed", ".weight_scale", ".weight_zero_point", ".weight_shape", ".weight_g_idx", ".input_scale", ".weight_scale_inv",
)  # fmt: skip
_CONFIGURATION = {"hf": "config.json", "meta": "params.json"}


def of_another_model(case: Case) -> Iterator[Finding]:
    """Few of the expected names are there, if any, and most that are there are unexpected."""
    missing, strange = list(case.missing), list(case.unexpected)
    there = len(case.needed) - len(missing)
    if (
        not missing
        or case.inventory.absent
        or there * 4 > len(case.needed)
        or len(strange) * 2 < len(case.found)
    ):
        return
    what = (
        f"expected names such as {missing[0]}, found such as {strange[0]}; this is another model, or its names follow a "
        "convention that is not described"
        if strange
        else "the files hold no tensors at all"
    )
    yield Finding(
        code="missing",
        tensor=missing[0],
        expected=len(case.needed),
        found=there,
        count=len(missing),
        message=f"{there:,} of {len(case.needed):,} expected tensors are there: {what}",
    )
    case.explained([*missing, *strange])


def prefixed(case: Case) -> Iterator[Finding]:
    """What stands before the names, or inside them: said once, and the rest is judged without it."""
    renaming = case.naming.renaming
    if renaming is None:
        return
    stored = case.inventory.tensors
    carriers = [name for name in stored if name in case.renamed]
    who = f"{len(carriers):,} of {len(stored):,} names"
    if len(carriers) == len(stored):
        who = f"all {len(stored):,} names"
    elif len(carriers) < 3:
        who += f" ({listing(carriers)})"
    part, instead = renaming.part, renaming.instead
    if not part:
        what = f"lack the prefix `{instead}`; with it"
    elif renaming.inside:
        what = f"have `{part}` inside them; without it"
    else:
        what = f"begin with `{part}`; " + (f"with `{instead}` instead" if instead else "without it")
    matching = sum(name in case.found for name in case.needed)
    why = _LEFT_BY.get(part, "rename the tensors")
    yield Finding(
        code="unexpected",
        tensor=carriers[0] if carriers else None,
        expected=case.renamed[carriers[0]] if carriers else None,
        found=part or None,
        count=len(carriers),
        message=f"{who} {what} {matching:,} of {len(case.needed):,} match; {why}",
    )


def quantised(case: Case) -> Iterator[Finding]:
    """Matrices are missing, and in their place are the parts of quantised ones."""
    parts = [name for name in case.unexpected if name.endswith(_QUANTISED)]
    modules = {name.removesuffix(suffix) for name in parts for suffix in _QUANTISED if name.endswith(suffix)}
    whole = [name for name in case.missing if name.rpartition(".")[0] in modules]
    if not parts or not (whole or any(name.rpartition(".")[0] in modules for name in case.mismatched)):
        return
    odd = [name for name in case.mismatched if name.rpartition(".")[0] in modules]
    strange = [name for name in case.unexpected if name.rpartition(".")[0] in modules or name in parts]
    yield Finding(
        code="config",
        tensor=parts[0],
        file=case.inventory.file_of(case.unexpected[parts[0]]),
        count=len(strange) + len(odd),
        message=f"the weights are stored quantised, in tensors such as {listing(parts[:2])}, and {case.description.who} does not "
        "say so: its quantization_config is missing; what quantised weights should be is not described",
    )
    case.explained([*whole, *odd, *strange])


def of_the_other_convention(case: Case) -> Iterator[Finding]:
    """Meta's names beside a config.json, or the Hub's beside a params.json."""
    own = _CONFIGURATION.get(case.naming.table.convention)
    beside = [file for file in _CONFIGURATION.values() if file in case.inventory.sizes]
    if own is None or not beside or own in beside:
        return
    titles = {name: convention.title for name, convention in case.graph.architecture.conventions.items()}
    name = next((name for name in case.needed if name in case.found), None)
    yield Finding(
        code="config",
        tensor=name,
        file=beside[0],
        expected=own,
        found=beside[0],
        message=f"{case.inventory.store.location}: the names, such as {name}, are those of "
        f"{titles[case.naming.table.convention]}, and {beside[0]} is not for these; put their {own} there, or convert the weights",
    )
