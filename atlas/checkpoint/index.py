"""The index of a sharded checkpoint: which file holds each tensor.

    {"metadata": {"total_size": 16060522496}, "weight_map": {"lm_head.weight": "model-00004-of-00004.safetensors", …}}

It defines which files are the model. Loaders join its file names to the folder unchecked, so a name that leads out of the
folder is refused here.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from atlas.checkpoint.faults import AGAIN, show
from atlas.errors import CheckpointError
from atlas.text import KeyTwice, beyond_limits, no_key_twice


@dataclass(frozen=True, slots=True)
class Index:
    """An index that can be used.

    Attributes:
        places: tensor -> the name of its file.
        total_size: the stated bytes of all tensors together; any JSON value, or None where it is not stated.
    """

    name: str
    places: Mapping[str, str]
    total_size: Any

    def files(self) -> tuple[str, ...]:
        """The files it names, each once, in order."""
        return tuple(sorted(set(self.places.values())))


def parse(data: bytes, name: str, where: str) -> Index:
    """The index in these bytes.

    Args:
        name: the file's name in its folder.
        where: its path or address, for the messages.

    Raises:
        CheckpointError: with the code `index`, if it cannot be used.
    """
    table = _decoded(data, where)
    if not isinstance(table, dict):
        raise _wrong(f"{where}: the index is {show(table)}; expected an object with a weight_map")
    places = table.get("weight_map")
    if not isinstance(places, dict) or not places:
        found = "it is absent" if places is None else f"found {show(places)}"
        raise _wrong(f"{where}: the index needs a weight_map of tensors and their files; {found}", AGAIN)
    odd = [file for file in places.values() if not isinstance(file, str)]
    files = odd or set(places.values())
    for file in files:
        if odd or not _stays_inside(file):
            raise _wrong(f"{where}: the index names the file {show(file)}; expected a name inside its folder")
    if any("/" in file for file in files):  # `./model.safetensors`
        places = {name: posixpath.normpath(file) for name, file in places.items()}
    metadata = table.get("metadata")
    return Index(name, places, metadata.get("total_size") if isinstance(metadata, dict) else None)


def _wrong(message: str, hint: str = "") -> CheckpointError:
    return CheckpointError(message, hint=hint, code="index")


MOST_VALUES = 2_000_000
"""In an index, by its commas: a hundred times what the largest has. More would take gigabytes to decode."""

_DECODER = json.JSONDecoder(object_pairs_hook=no_key_twice)


def _decoded(data: bytes, where: str) -> Any:
    if data.startswith(b"version https://git-lfs"):
        raise _wrong(
            f"{where} is a Git LFS pointer, not the index itself",
            "run `git lfs pull` in its folder, or download it again",
        )
    if data.count(b",") > MOST_VALUES:
        raise _wrong(f"{where}: the index has more than {MOST_VALUES:,} values; no real index is that large")
    if not data.strip():
        raise _wrong(f"{where}: the index is empty", AGAIN)
    try:
        text = data.decode("utf-8-sig")
        table, end = _DECODER.raw_decode(text.lstrip())
        if "\\" in text:  # half a surrogate pair is no character, and so in no name
            json.dumps(table, ensure_ascii=False).encode("utf-8")
        rest = text.lstrip()[end:].strip()
        if rest:
            what = "two JSON documents in a row" if "{" in rest else "text after the JSON"
            raise _wrong(f"{where}: the index has {what}: after the first comes {show(rest)}", AGAIN)
    except UnicodeDecodeError as error:
        raise _wrong(f"{where}: the index is not JSON: byte {error.start:,} is not UTF-8", AGAIN) from None
    except UnicodeEncodeError:
        raise _wrong(f"{where}: the index has half of a surrogate pair in a name") from None
    except KeyTwice as error:
        raise _wrong(f"{where}: the index has the name {show(error.key)} twice in one object") from None
    except json.JSONDecodeError as error:
        raise _wrong(
            f"{where}: the index is not JSON: {error.msg} at line {error.lineno}, column {error.colno}", AGAIN
        ) from None
    except (ValueError, RecursionError) as error:
        raise _wrong(
            f"{where}: the index is not JSON that can be read: {beyond_limits(error)}", AGAIN
        ) from None
    return table


_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def _stays_inside(file: str) -> bool:
    """Whether a name joined to a folder stays in it, on any system."""
    if _PLAIN.fullmatch(file):
        return True
    parts = re.split(r"[/\\]", file)
    return bool(file) and ".." not in parts and parts[0] != "" and ":" not in parts[0] and "\0" not in file
