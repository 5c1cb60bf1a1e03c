"""What a MODEL on the command line means: a catalogue id, a descriptor, a Hub id, or a path."""

from __future__ import annotations

import heapq
import os
import re
from dataclasses import replace
from pathlib import Path

from atlas import spec
from atlas.errors import AtlasError, ConfigError, HubError, UnknownModel
from atlas.files import reason
from atlas.resolution import catalogued, config
from atlas.resolution.model import Model
from atlas.resolution.settings import read_json
from atlas.spec.library import Library

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def resolve(name: str, library: Library) -> Model:
    """The model a word means. A catalogued name and a path never open a socket.

    Raises:
        UnknownModel: nothing is called that; with the nearest names.
        NotDescribed: it is catalogued but not described yet.
        ConfigError: a configuration that cannot be understood.
        HubError: a Hub id outside the catalogue whose configuration cannot be had.
    """
    found = catalogue_entry(name, library)
    if found is not None:
        return catalogued.describe(*found, library)
    path = _expanded(name)
    if _is_path(name, path):
        return from_path(path, library)
    if _HUB_ID.fullmatch(name):
        return _from_hub(name, library)
    raise unknown(name, library)


def catalogue_entry(name: str, library: Library) -> tuple[spec.Family, spec.Entry] | None:
    """The catalogue entry that goes by that id, descriptor or Hub id, whatever its case."""
    wanted = name.strip().lower()
    for family in library.families(_likely_family(wanted)):
        for entry in family.models:
            if wanted in ids(entry):
                return family, entry
    return None


def ids(entry: spec.Entry) -> set[str]:
    """Every name an entry goes by, in lower case."""
    names = [
        entry.id,
        *filter(None, [entry.catalogue]),
        *([entry.hub_id] if entry.hub_id else []),
        *entry.aliases,
    ]
    return {name.lower() for name in names}


def _likely_family(name: str) -> str:
    """The form in which a family's id begins a model's: so that the right file is opened first."""
    plain = name.rpartition("/")[2].removeprefix("meta-")
    return re.sub(r"^llama-(?=\d)", "llama", plain)


def from_path(path: Path, library: Library) -> Model:
    """The model of a config.json, a params.json, or a folder that holds one.

    Raises:
        ConfigError: it is not there, or cannot be understood.
    """
    file = path
    if "\0" in str(path):
        raise ConfigError(f"{str(path)!r} is not a path")
    try:
        if path.is_dir():
            # A FIFO, a device or a broken link counts too: reading it says what is wrong with it.
            both = [path / name for name in ("config.json", "params.json")]
            there = [file for file in both if os.path.lexists(file) and not file.is_dir()]
            there.sort(key=lambda file: not file.is_file())
            if not there:
                raise ConfigError(
                    f"{path} holds neither a config.json nor a params.json", hint=_what_is_there(path)
                )
            file = there[0]
        elif not os.path.lexists(path):
            raise ConfigError(f"{path}: no such file or folder")
        elif not path.is_file() and path.exists():
            raise ConfigError(f"{path} is neither a file nor a folder")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {reason(error)}") from None
    settings = read_json(file)
    kind = "params.json" if _is_params(file, settings) else "config.json"
    return config.describe(settings, library, id=str(path), file=kind)


def _is_params(file: Path, settings: dict[str, object]) -> bool:
    """Meta's own file, by its name or, under another name, by its fields."""
    return file.name == "params.json" or (
        "model_type" not in settings and "dim" in settings and "n_layers" in settings
    )


def _what_is_there(folder: Path) -> str:
    with os.scandir(folder) as entries:  # a folder may hold millions
        names = heapq.nsmallest(5, (entry.name + "/" * entry.is_dir() for entry in entries))
    return f"it holds {', '.join(names)}" if names else "it is empty"


def _expanded(name: str) -> Path:
    try:
        return Path(name).expanduser()
    except (RuntimeError, ValueError):  # the home of nobody there is, or of a name with a null byte
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


def _from_hub(name: str, library: Library) -> Model:
    from atlas.checkpoint import (
        hub_config,  # the Hub client is imported only for a Hub id outside the catalogue
    )

    try:
        path = hub_config.config_file(name)
    except HubError as error:
        near = nearest(name, library)
        hints = [error.hint, "if a path was meant: there is no such folder here"]
        hints += [f"did you mean {', '.join(near)}?"] if near else []
        raise HubError(error.message, hint="; ".join(filter(None, hints)), code=error.code) from None
    model = config.describe(read_json(path), library, id=name)
    return replace(model, hub_id=name)


def unknown(name: str, library: Library) -> AtlasError:
    """The error for a name nothing goes by, with the nearest that something does."""
    candidates = nearest(name, library)
    hint = f"did you mean {', '.join(candidates)}?" if candidates else "`atlas models` lists what there is"
    return UnknownModel(f"no model is called {name[:80]!r}", hint=hint)


def nearest(name: str, library: Library) -> list[str]:
    """The catalogue's ids with a name most like this one, at most three."""
    import difflib

    names = {
        alias.lower(): entry.id
        for family in library.families()
        for entry in family.models
        for alias in ids(entry)
    }
    matches = difflib.get_close_matches(name[:200].lower(), names, n=6, cutoff=0.5)
    return list(dict.fromkeys(names[match] for match in matches))[:3]
