"""Finds the architecture and the table of keys that a configuration is read with, by its `model_type`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from atlas import spec
from atlas.errors import ConfigError, SpecError, UndescribedConfigError, shown
from atlas.resolution.nearest import nearest
from atlas.spec.config_tables import config_table
from atlas.spec.library import Library
from atlas.spec.registry import Claim

MOST_NAMED = 5
"""Most described model types that a message names."""


def table(
    config: Mapping[str, Any], library: Library, id: str, file: str
) -> tuple[spec.Architecture, spec.Config]:
    """The architecture and the merged table of keys.

    Raises:
        ConfigError: `model_type` is missing.
        UndescribedConfigError: it is not described.
        SpecError: several tables claim it, or its description is faulty.
    """
    name = "meta" if file == "params.json" else config.get("model_type")
    if name is None:
        raise ConfigError(
            f"{id}: model_type is missing, so the architecture is unknown",
            hint="add the model_type that the model's code has",
        )
    found = [] if not isinstance(name, str) else claimed(name, config, library, file)
    if not found:
        stated = repr(name)[:80] if isinstance(name, str) else shown(name)
        what = library.kind_of(name) if isinstance(name, str) else None
        if what:
            raise UndescribedConfigError(
                f"{id}: model_type {stated} is {what}; only decoder-only language models are described"
            )
        near = nearest(config, library) if file == "config.json" else None
        raise UndescribedConfigError(
            f"{id}: model_type {stated} is not described yet; {_count(described(library, file))}",
            hint=near.clause if near else "",
        )
    return found[0]


def _count(known: list[str]) -> str:
    """`described are a and b`, or how many there are."""
    if len(known) <= MOST_NAMED:
        return f"described are {' and '.join(known)}"
    return f"{len(known):,} are described"


def claimed(
    name: str, config: Mapping[str, Any], library: Library, file: str
) -> list[tuple[spec.Architecture, spec.Config]]:
    """The one table for a `model_type` that fits the configuration; empty if there is none.

    A table whose `where` fits comes before one without.

    Raises:
        SpecError: several tables fit equally.
    """
    fitting: list[tuple[bool, Claim, spec.Architecture, spec.Config]] = []
    for claim in library.claims.get(name, []):
        architecture = library.architecture(claim.architecture)
        keys = config_table(architecture, claim.table)
        if keys.file == file and all(_states(config, key, value) for key, value in keys.where.items()):
            fitting.append((bool(keys.where), claim, architecture, keys))
    best = [each for each in fitting if each[0]] or fitting
    if len(best) > 1:
        places = " and ".join(
            f"architectures/{claim.architecture}.toml configs.{claim.table}" for _, claim, _, _ in best
        )
        raise SpecError(f"model_type {name!r} is described twice, in {places}; `where` can tell them apart")
    return [(architecture, keys) for _, _, architecture, keys in best]


def _states(config: Mapping[str, Any], key: str, value: bool | int | float | str) -> bool:
    """Whether a configuration states the value; true is not 1."""
    stated = config.get(key)
    return stated == value and isinstance(stated, bool) == isinstance(value, bool)


def described(library: Library, file: str = "config.json") -> list[str]:
    """Every `model_type` that some description has, sorted; no file is parsed for it."""
    return sorted(
        name for name, claims in library.claims.items() if any(claim.file == file for claim in claims)
    )
