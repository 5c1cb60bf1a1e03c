"""Modules that were saved in another form: an adapter that was not merged, several matrices fused into one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from atlas.checkpoint.findings import Finding, listing
from atlas.verification import formatting
from atlas.verification.comparison import Comparison

_ADAPTER = (".lora_A.", ".lora_B.", ".lora_embedding_A", ".lora_embedding_B", ".lora_magnitude_vector")
"""Inside the names of an adapter's tensors, as PEFT saves them."""

BASE_LAYER = "base_layer."
"""What PEFT puts into the name of a matrix that has an adapter."""

MOST_FUSED = 6
"""Matrices of one module among which fused ones are looked for: every subset of them is tried."""


def unmerged_adapter(comparison: Comparison) -> Iterator[Finding]:
    """A full model that was saved while its adapter was still apart."""
    parts = [name for name in comparison.unexpected if any(mark in name for mark in _ADAPTER)]
    if not parts:
        return
    first = comparison.unexpected[parts[0]]
    yield Finding(
        code="unexpected",
        tensor=first.name,
        file=comparison.inventory.file_of(first),
        found=first.shape,
        count=len(parts),
        message=f"{formatting.name_list(parts)} ({formatting.tensor_count(len(parts))}) belong to a LoRA adapter that was not merged "
        "into the model: loaders of the full model ignore or refuse them; merge the adapter (PEFT: merge_and_unload) and save "
        "the model again",
    )
    comparison.explained(parts)
    comparison.unmerged = True


def fused(comparison: Comparison) -> Iterator[Finding]:
    """Undeclared matrices that have the rows of several missing ones of the same module: one finding for all."""
    siblings: dict[tuple[str, str], list[str]] = {}
    for name in comparison.missing:
        siblings.setdefault(_place(name), []).append(name)
    found: dict[str, Sequence[str]] = {}
    for name, tensor in comparison.unexpected.items():
        missing = [each for each in siblings.get(_place(name), ()) if each not in _flat(found)]
        if parts := _parts(tensor.shape, {each: comparison.missing[each].shape for each in missing}):
            found[name] = parts
    if not found:
        return
    pairs = dict.fromkeys(
        f"{formatting.wildcard(name)} holds {listing([each.split('.')[-2] for each in parts], MOST_FUSED)}"
        for name, parts in found.items()
    )
    explained = _flat(found)
    elements = sum(comparison.unexpected[name].elements for name in found)
    first = next(iter(found))
    yield Finding(
        code="unexpected",
        tensor=first,
        file=comparison.inventory.file_of(comparison.unexpected[first]),
        expected=len(explained),
        found=len(found),
        count=len(found) + len(explained),
        message=f"{formatting.tensor_count(len(explained))} are stored fused, several in one matrix: {listing(list(pairs))}; together they "
        f"hold the {elements:,} parameters of the missing ones: split them along the rows",
    )
    comparison.explained([*found, *explained])


def _flat(found: Mapping[str, Sequence[str]]) -> set[str]:
    return {name for parts in found.values() for name in parts}


def _place(name: str) -> tuple[str, str]:
    """The module that holds the tensor's own module, and the tensor's last word: (`…self_attn`, `weight`)."""
    words = name.split(".")
    return ".".join(words[:-2]), words[-1]


def _parts(whole: tuple[int, ...], missing: Mapping[str, tuple[int, ...]]) -> tuple[str, ...]:
    """The missing tensors whose rows the whole has, at least two; empty if none or several combinations fit."""
    names = [name for name in missing if whole and missing[name][1:] == whole[1:]][:MOST_FUSED]
    fitting = [
        parts
        for count in range(2, len(names) + 1)
        for parts in combinations(names, count)
        if sum(missing[name][0] for name in parts) == whole[0]
    ]
    return fitting[0] if len(fitting) == 1 else ()
