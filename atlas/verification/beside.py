"""Which model a checkpoint is held against: the one that was named, else what its own configuration says."""

from __future__ import annotations

from dataclasses import dataclass, replace

from atlas.checkpoint.contents import CONFIGURATIONS
from atlas.checkpoint.findings import Finding, said, unreadable, warning
from atlas.checkpoint.inventory import Inventory
from atlas.errors import CheckpointError, ConfigError, NotDescribed
from atlas.graph.binding import bind
from atlas.graph.graph import Graph
from atlas.resolution import config
from atlas.resolution.model import Model, require_described
from atlas.resolution.resolve import resolve
from atlas.resolution.settings import decode
from atlas.spec.library import Library

MOST_WARNINGS = 5
"""Settings that are not understood and are a finding each."""


@dataclass(frozen=True, slots=True)
class Description:
    """A bound model, and what to call what it says.

    Attributes:
        file: the configuration that says it; None for a model that was named.
    """

    graph: Graph
    file: str | None

    def warnings(self) -> list[Finding]:
        """What its configuration says that is not understood and was not used."""
        texts = self.graph.model.warnings
        if len(texts) > MOST_WARNINGS:
            more = f"{texts[0]}; {len(texts) - 1:,} more settings are not understood either"
            return [warning(code="config", file=self.file, count=len(texts), message=more)]
        return [warning(code="config", file=self.file, message=text) for text in texts]

    @property
    def who(self) -> str:
        return self.file or self.graph.model.id

    def key(self, name: str) -> str:
        """What the configuration calls one of our dims or flags: `num_hidden_layers`."""
        for table in self.graph.architecture.configs.values():
            if table.file == (self.file or "config.json"):
                for key, ours in table.used.items():
                    if ours == name:
                        return key
        return name

    def doubt(self, name: str) -> str:
        """That one of its numbers is probably wrong."""
        model, key = self.graph.model, self.key(name)
        stated = f"{self.graph.dims[name]:,}"
        if self.file is None:
            return f"{model.id} has {key} {stated}, so this is probably another model"
        if name not in model.dims:
            return f"{self.file} states no {key}, which means {stated}; it has to be there"
        return f"{self.file} gives {key} {stated}, which is probably stale"


def description(
    inventory: Inventory, library: Library, model: str | None, repo: str | None = None
) -> Description | Finding:
    """The model to hold the checkpoint against, or why it cannot be had from what lies beside the weights.

    Args:
        model: the one that was named; None for what the checkpoint's own configuration says.
        repo: the Hub id it goes by, which the model is called by too.

    Raises:
        UnknownModel, ConfigError, NotDescribed: the named model cannot be had.
    """
    if model is not None:
        return _bound(resolve(model, library), library, None)
    store = inventory.store
    file = _configuration(inventory)
    if file is None:
        return unreadable(
            code="config",
            message=f"{store.location}: neither a config.json nor a params.json lies beside the weights, so which model "
            "they should be is not known; give it with --model, for example --model llama3.1-8b",
        )
    where = f"{store.location}/{file}"
    try:
        settings = decode(store.text(file), where)
        found = config.describe(settings, library, id=where, file=file)
        return _bound(replace(found, id=repo) if repo else found, library, file)
    except (ConfigError, NotDescribed, CheckpointError) as error:
        return unreadable(code="config", file=file, message=said(error.message, error.hint))


def _configuration(inventory: Inventory) -> str | None:
    """The configuration's file: the Hub's, unless the weights are Meta's files and theirs is there too."""
    there = [file for file in CONFIGURATIONS if file in inventory.sizes]
    weights = (*inventory.headers, *inventory.unread, *inventory.absent)
    metas = bool(weights) and all(file.startswith("consolidated") for file in weights)
    return (there[-1] if metas else there[0]) if there else None


def _bound(model: Model, library: Library, file: str | None) -> Description:
    require_described(model, "verify")
    return Description(bind(model, library), file)
