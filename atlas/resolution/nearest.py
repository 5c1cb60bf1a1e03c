"""The described architecture that a configuration, or a checkpoint's tensor names, are most like."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from atlas import spec
from atlas.errors import AtlasError
from atlas.grammar.names import Template
from atlas.spec.config_tables import config_table
from atlas.spec.library import Library

MOST_NAMES = 2_000
"""Most tensor names that are compared: those of a few layers show the pattern."""


@dataclass(frozen=True, slots=True)
class Nearest:
    """The most similar architecture.

    Attributes:
        model_type: one that it describes.
        keys, of_keys: how many of the configuration's keys its table uses, and how many there are.
        names, of_names: how many tensor names fit its conventions, and how many were compared.
        unused: how many keys its table uses that the configuration does not state.
    """

    model_type: str
    keys: int
    of_keys: int
    names: int = 0
    of_names: int = 0
    unused: int = 0

    @property
    def clause(self) -> str:
        """What is alike, as a clause."""
        alike = [f"it uses {self.keys:,} of the {self.of_keys:,} keys"] if self.of_keys else []
        if self.of_names:
            alike.append(f"{self.names:,} of {self.of_names:,} tensor names have its form")
        return f"the nearest described model_type is {self.model_type}: {' and '.join(alike)}"


def nearest(config: Mapping[str, Any], library: Library, names: Collection[str] = ()) -> Nearest | None:
    """The architecture that shares the most with a configuration and with stored names; None if none shares anything.

    Names count first: two configurations may share most keys, and their tensors none.
    """
    sample = list(islice(names, MOST_NAMES))
    found: list[Nearest] = []
    for model_type, claims in library.claims.items():
        for claim in claims:
            try:
                architecture = library.architecture(claim.architecture)
                table = config_table(architecture, claim.table)
            except AtlasError:
                continue  # a faulty description is reported where it is needed
            if table.file == "config.json":
                found.append(_compared(model_type, architecture, table, config, sample))
    found = [each for each in found if each.keys or each.names]
    return max(found, key=lambda each: (each.names, each.keys, -each.unused), default=None)


def _compared(
    model_type: str,
    architecture: spec.Architecture,
    table: spec.Config,
    config: Mapping[str, Any],
    names: Collection[str],
) -> Nearest:
    stated = {key for key, value in config.items() if value is not None and key not in table.ignored}
    used = stated.intersection(table.used)
    templates = [
        Template(text) for convention in architecture.conventions.values() for text in convention.tensors
    ]
    fitting = sum(any(template.match(name) is not None for template in templates) for name in names)
    return Nearest(model_type, len(used), len(stated), fitting, len(names), len(table.used) - len(used))
