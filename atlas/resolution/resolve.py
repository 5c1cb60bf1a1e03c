"""Resolves a MODEL argument: a catalogue id, a descriptor, a Hub id, a Hub URL, or a path."""

from __future__ import annotations

import heapq
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from atlas import spec
from atlas.errors import AtlasError, ConfigError, HubError, UnknownModel
from atlas.files import reason
from atlas.resolution import catalogued, config, file_kinds, quantisation
from atlas.resolution.model import Model
from atlas.resolution.settings import read_json
from atlas.resolution.spelling import ids, nearest, spelled
from atlas.spec.library import Library

if TYPE_CHECKING:
    from atlas.checkpoint.hub_url import HubURL

__all__ = ["catalogue_entry", "from_path", "ids", "nearest", "resolve", "unknown"]

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def resolve(name: str, library: Library) -> Model:
    """The model that a name means. A catalogued name and a path never open a socket.

    A name is tried as a catalogue id, a Hub URL, a path, another spelling of a catalogue id, and a Hub id, in this order.

    Raises:
        UnknownModel: there is no such model, or several; the hint has the nearest names.
        NotDescribed: the model is catalogued but not described yet.
        ConfigError: a configuration cannot be read.
        HubError: the configuration of a Hub id cannot be fetched, or a URL is not that of a model on the Hub.
    """
    found = catalogue_entry(name, library)
    if found is not None:
        return catalogued.describe(*found, library)
    from atlas.checkpoint import hub_url  # a catalogued model needs it not

    url = hub_url.parse(name)
    if url is not None:
        return _from_url(url, library)
    path = _expanded(name)
    if _is_path(name, path):
        return from_path(path, library)
    same = spelled(name, library)
    if len(same) == 1:
        return catalogued.describe(*same[0], library)
    if same:
        raise UnknownModel(
            f"{name[:80]!r} may mean several models",
            hint=f"give one of {', '.join(entry.id for _, entry in same)}",
        )
    if _HUB_ID.fullmatch(name):
        return _from_hub(name, library)
    raise unknown(name, library)


def catalogue_entry(name: str, library: Library) -> tuple[spec.Family, spec.Entry] | None:
    """The catalogue entry with that id, descriptor or Hub id, in any case."""
    wanted = name.strip().lower()
    for family in library.families_naming(wanted):
        for entry in family.models:
            if wanted in ids(entry):
                return family, entry
    return None


def _from_url(url: HubURL, library: Library) -> Model:
    """The model of a Hub URL. A file in the repository means the repository's model."""
    found = catalogue_entry(url.repo, library)
    revision = None if url.revision == "main" else url.revision
    if found is None:
        return _from_hub(url.repo, library, revision)
    model = catalogued.describe(*found, library)
    if revision is None:
        return model
    note = f"This is the catalogue's description of {url.repo}; its revision {revision[:80]} was not read."
    return replace(model, notes=(*model.notes, note))


def from_path(path: Path, library: Library) -> Model:
    """The model of a config.json, a params.json, or a folder that contains one.

    Raises:
        ConfigError: it does not exist, cannot be read, or is another kind of file.
    """
    file = path
    if "\0" in str(path):
        raise ConfigError(f"{str(path)!r} is not a path")
    try:
        if path.is_dir():
            # A FIFO, a device or a broken link counts too: reading it reports the problem.
            both = [path / name for name in ("config.json", "params.json")]
            there = [file for file in both if os.path.lexists(file) and not file.is_dir()]
            there.sort(key=lambda file: not file.is_file())
            if not there:
                raise ConfigError(
                    f"{path} contains neither a config.json nor a params.json", hint=_content(path)
                )
            file = there[0]
        elif not os.path.lexists(path):
            raise ConfigError(f"{path}: no such file or folder")
        elif not path.is_file() and path.exists():
            raise ConfigError(f"{path} is neither a file nor a folder")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {reason(error)}") from None
    file_kinds.refuse_weights(file)
    settings = read_json(file)
    file_kinds.refuse_other_json(file, settings)
    kind = "params.json" if _is_params(file, settings) else "config.json"
    model = config.describe(settings, library, id=str(path), file=kind)
    return _with_neighbours(model, file.parent, library)


def _with_neighbours(model: Model, folder: Path, library: Library) -> Model:
    """The model with what the files next to its configuration show: quantised weights that it does not declare."""
    if any("weights" in gap.affects for gap in model.gaps):
        return model
    found = quantisation.in_folder(folder, library)
    settings = {"quantisation": found[0].reason} if found else {}
    return replace(model, gaps=(*model.gaps, *found), settings={**model.settings, **settings})


def _is_params(file: Path, settings: dict[str, object]) -> bool:
    """Whether it is Meta's own file, by its name or, under another name, by its fields."""
    return file.name == "params.json" or (
        "model_type" not in settings and "dim" in settings and "n_layers" in settings
    )


def _content(folder: Path) -> str:
    if kinds := file_kinds.only_weights(folder):
        return f"it contains {kinds}; give the config.json or the Hub id of the model"
    with os.scandir(folder) as entries:  # a folder may have millions of entries
        names = heapq.nsmallest(5, (entry.name + "/" * entry.is_dir() for entry in entries))
    return f"it contains {', '.join(names)}" if names else "it is empty"


def _expanded(name: str) -> Path:
    try:
        return Path(name).expanduser()
    except (RuntimeError, ValueError):  # ~ of an unknown user, or a null byte
        return Path(name)


def _is_path(name: str, path: Path) -> bool:
    if not name.strip():
        return False
    if name.startswith((".", "/", "~")) or name.endswith((".json", "/")) or name.count("/") > 1:
        return True
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _from_hub(name: str, library: Library, revision: str | None = None) -> Model:
    from atlas.checkpoint import (
        hub_config,  # the Hub client, imported only for a Hub id outside the catalogue
    )

    try:
        path = hub_config.config_file(name, revision)
    except HubError as error:
        near = nearest(name, library)
        hints = [error.hint, "if a path was meant, there is no such folder"]
        hints += [f"did you mean {', '.join(near)}?"] if near else []
        raise HubError(error.message, hint="; ".join(filter(None, hints)), code=error.code) from None
    model = config.describe(read_json(path), library, id=name)
    rests_on = name if revision is None else f"{name} at revision {revision}"
    return _with_neighbours(replace(model, hub_id=name, rests_on=rests_on), path.parent, library)


def unknown(name: str, library: Library) -> AtlasError:
    """The error for an unknown name, with the nearest known ones."""
    candidates = nearest(name, library)
    hint = f"did you mean {', '.join(candidates)}?" if candidates else "`atlas models` lists the catalogue"
    return UnknownModel(f"no model is called {name[:80]!r}", hint=hint)
