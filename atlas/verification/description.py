"""Which model a checkpoint is compared with: the one named by the user, else the one that its own configuration describes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from atlas.checkpoint.contents import CONFIGURATIONS
from atlas.checkpoint.findings import Finding, note, said, unreadable, warning
from atlas.checkpoint.inventory import Inventory
from atlas.errors import AtlasError, CheckpointError, ConfigError, NotDescribed, UndescribedConfigError
from atlas.graph.binding import bind
from atlas.graph.graph import Graph
from atlas.resolution import config, quantisation
from atlas.resolution.model import Model, require_described
from atlas.resolution.nearest import nearest
from atlas.resolution.resolve import resolve
from atlas.resolution.settings import decode
from atlas.spec.config_tables import config_table
from atlas.spec.library import Library

MOST_WARNINGS = 5
"""Unknown settings that get a finding each; more are reported together."""


@dataclass(frozen=True, slots=True)
class Quantised:
    """What only quantised checkpoints store, from `specs/quantisations/`.

    Attributes:
        tensors: ends of names: `.qweight`.
        dtypes: dtypes of matrices.
    """

    tensors: tuple[str, ...] = ()
    dtypes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class NoDescription:
    """Why a checkpoint's own configuration gives no model to compare with.

    Attributes:
        readable: the configuration can be read, or there is none; the model is just not described.
    """

    finding: Finding
    readable: bool


@dataclass(frozen=True, slots=True)
class Description:
    """The model to compare with, and how messages refer to it.

    Attributes:
        file: the configuration file it was read from; None for a model that was named.
        quantised: how stored tensors show that they are quantised.
    """

    graph: Graph
    file: str | None
    quantised: Quantised

    def findings(self) -> list[Finding]:
        """A warning for each setting that is probably wrong, and a note for each unknown key.

        No check depends on an unknown key: if it adds tensors or changes shapes, the stored tensors show that.
        """
        model = self.graph.model
        return [
            *self._grouped(warning, model.warnings),
            *self._grouped(note, [each.message for each in model.unknown]),
        ]

    def _grouped(self, kind: Callable[..., Finding], texts: Sequence[str]) -> list[Finding]:
        if len(texts) > MOST_WARNINGS:
            more = f"{texts[0]}; and {len(texts) - 1:,} more settings like it"
            return [kind(code="config", file=self.file, count=len(texts), message=more)]
        return [kind(code="config", file=self.file, message=text) for text in texts]

    @property
    def source(self) -> str:
        """What states its settings, for messages: `config.json`, or the model's id."""
        return self.file or self.graph.model.id

    def key(self, name: str) -> str:
        """The configuration's key for one of our dims or flags: `num_hidden_layers`."""
        architecture = self.graph.architecture
        for table in (config_table(architecture, each) for each in architecture.configs):
            if table.file == (self.file or "config.json"):
                for key, ours in table.used.items():
                    if name in (ours if isinstance(ours, list) else [ours]):
                        return key
        return name

    def doubt(self, name: str) -> str:
        """A clause for messages: one of its numbers is probably wrong."""
        model, key = self.graph.model, self.key(name)
        stated = f"{self.graph.dims[name]:,}"
        if self.file is None:
            return f"{model.id} has {key} {stated}, so this is probably another model"
        if name not in model.dims:
            return f"{self.file} does not state {key}, which then means {stated}; add the key"
        return f"{self.file} states {key} {stated}, which is probably stale"


def find_description(
    inventory: Inventory, library: Library, model: str | None, repo: str | None = None
) -> Description | NoDescription:
    """The model to compare the checkpoint with, or a finding that says why its configuration gives none.

    Args:
        model: the model named by the user; None for the one that the checkpoint's own configuration describes.
        repo: the checkpoint's Hub id, which becomes the model's id.

    Raises:
        UnknownModel, ConfigError, NotDescribed: the named model cannot be resolved.
    """
    if model is not None:
        return _bound(resolve(model, library), library, None)
    store = inventory.store
    file = configuration(inventory)
    if file is None:
        message = f"{store.location}: there is no config.json or params.json next to the weights, so the model is unknown; "
        message += "name it with --model, for example --model llama3.1-8b"
        return NoDescription(unreadable(code="config", message=message), readable=True)
    where = f"{store.location}/{file}"
    code, readable = "config", False
    refused: AtlasError
    try:
        settings = decode(store.text(file), where)
        found = config.describe(settings, library, id=where, file=file)
        if quantised := quantisation.declared_by_files(inventory.sizes, library):
            found = replace(found, gaps=(*found.gaps, *quantised))
        if quantised or quantisation.declared(settings, library):
            code = "quantisation"
        return _bound(replace(found, id=repo) if repo else found, library, file)
    except (NotDescribed, UndescribedConfigError) as error:
        near = nearest(settings, library, inventory.known_names())
        message = error.message + (f"; {near.clause}" if near else f"; {error.hint}" if error.hint else "")
        return NoDescription(unreadable(code=code, file=file, message=message), readable=True)
    except (ConfigError, CheckpointError) as error:
        refused = error
    finding = unreadable(code=code, file=file, message=said(refused.message, refused.hint))
    return NoDescription(finding, readable)


def configuration(inventory: Inventory) -> str | None:
    """The configuration file to read: config.json, or params.json if the weights are Meta's consolidated files."""
    found = [file for file in CONFIGURATIONS if file in inventory.sizes]
    weights = (*inventory.headers, *inventory.unread, *inventory.absent)
    are_metas = bool(weights) and all(file.startswith("consolidated") for file in weights)
    return (found[-1] if are_metas else found[0]) if found else None


def _bound(model: Model, library: Library, file: str | None) -> Description:
    require_described(model, "verify")
    quantisations = library.quantisations()
    quantised = Quantised(
        tuple(dict.fromkeys(end for each in quantisations for end in each.tensors)),
        frozenset(dtype for each in quantisations for dtype in each.dtypes),
    )
    return Description(bind(model, library), file, quantised)
