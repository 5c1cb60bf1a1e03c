"""Reads Meta's model catalogue from a `llama_models` folder without executing it.

An entry keeps the catalogue's values even where they are wrong. `specs/models/` records where a released checkpoint
differs. Every entry also records the source lines it was read from and their hash, so that a changed catalogue is
noticed.
"""

from __future__ import annotations

import ast
import hashlib
import json
import math
import os
import re
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from types import NoneType
from typing import Any

from atlas.errors import ConfigError
from atlas.files import read_regular
from atlas.resolution.catalogue_import.syntax import HINT, Evaluator, Instance, Member

SOURCE = "llama-models/sku_list"
"""The bibliography's id of the file that contains the lines."""

# Meta's two files are 42 KB together, and the repr of their entries is 28,000 characters. Some Python versions parse an f-string
# in time quadratic in its length.
MOST_BYTES = 1 << 17
MOST_CHARACTERS = 1 << 22


@dataclass(frozen=True, slots=True)
class Named:
    """The lines of a constant or a shared function that entries take values from."""

    lines: list[list[int]]
    sha256: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One model of the catalogue with every value resolved. The TOML file has the fields in this order."""

    descriptor: str
    core_model_id: str
    variant: str
    family: str
    description: str
    huggingface_repo: str | None
    quantization_format: str
    pth_file_count: int
    max_seq_length: int
    lines: list[list[int]]
    sha256: str
    uses: list[str]
    arch_args: dict[str, Any]
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All entries in Meta's order, and the named constants they use.

    Attributes:
        version: of the package, if known.
        source: the bibliography's id of the file that contains all the lines.
    """

    version: str | None
    names: dict[str, Named]
    entries: list[Entry]
    source: str = SOURCE


def read_catalogue(folder: Path) -> Catalogue:
    """The catalogue in a `llama_models` package, the folder it is installed in, or a clone of its repository.

    Raises:
        ConfigError: there is no catalogue, or one of its files cannot be read, is not Python, or uses Python that this
            reader does not evaluate. The message names the file and the line.
    """
    package = _package(folder)
    path, types = package / "sku_list.py", package / "sku_types.py"
    text, tree = _parse(path)
    evaluator = Evaluator({path: tree, types: _parse(types)[1]})
    models = evaluator.call("all_registered_models")
    if not isinstance(models, list) or not all(isinstance(model, Instance) for model in models):
        raise ConfigError(f"{path} has no all_registered_models() that returns a list of models", hint=HINT)
    reader = _Reader(evaluator, path, text)
    entries = [reader.entry(model) for model in models]
    return Catalogue(_version(package), dict(sorted(reader.names.items())), entries)


def to_toml(catalogue: Catalogue) -> dict[str, str]:
    """The text of each file of specs/catalogue/, one for each family, keyed by file name without `.toml`."""
    families: dict[str, list[Entry]] = {}
    for entry in catalogue.entries:
        # Meta's code calls the family of guards `safety`.
        stem = "llama-guard" if entry.family == "safety" else entry.family.replace("_", ".")
        families.setdefault(stem, []).append(entry)
    version = f" {catalogue.version}" if catalogue.version else ""
    head = (
        f"# Meta's catalogue, values unchanged: llama_models/sku_list.py of llama-models{version}."
        f" Written by `atlas specs import`; do not edit.\nsource = {_toml(SOURCE)}\n"
    )
    return {stem: head + _tables(catalogue, entries) for stem, entries in families.items()}


def _package(folder: Path) -> Path:
    for package in (folder, folder / "llama_models", folder / "models"):
        if all(os.path.isfile(package / name) for name in ("sku_list.py", "sku_types.py")):
            return package
    raise ConfigError(
        f"{folder} is not a llama_models folder: neither it nor its subfolders "
        "llama_models and models contain sku_list.py and sku_types.py",
        hint="give the folder of an installed or unpacked llama-models 0.3.0, or of a clone of its repository",
    )


def _version(package: Path) -> str | None:
    found = [
        match[1]
        for path in package.absolute().parent.glob("llama_models-*.dist-info")
        if (match := re.fullmatch(r"llama_models-([0-9][0-9A-Za-z.+!]*)\.dist-info", path.name))
    ]
    return found[0] if package.absolute().name == "llama_models" and len(found) == 1 else None


def _parse(path: Path) -> tuple[str, ast.Module]:
    try:
        data = read_regular(path, most=MOST_BYTES, error=ConfigError)
    except ConfigError as error:
        raise ConfigError(error.message, hint=HINT) from None
    try:
        # The parser counts only these line endings.
        text = data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning would print the file's text
            return text, ast.parse(text, path.name)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text, from byte {error.start} on", hint=HINT) from None
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        why = str(error)[:200] or "too deeply nested"
        raise ConfigError(f"{path} cannot be parsed as Python: {why}", hint=HINT) from None


class _Reader:
    """Turns evaluated models into entries and collects the named constants they use."""

    def __init__(self, evaluator: Evaluator, path: Path, text: str) -> None:
        self._evaluator, self._path, self._lines = evaluator, path, text.split("\n")
        self._seen: set[str] = set()
        self._hashes: dict[tuple[int, int], str] = {}
        self._characters = 0
        self.names: dict[str, Named] = {}

    def entry(self, model: Instance) -> Entry:
        core, variant = self._value(model, "core_model_id", str), self._value(model, "variant", str)
        family = self._value(model, "model_family", str)
        if not re.fullmatch(r"[a-z0-9_]+", family):
            raise self._evaluator.refusal(model.call, f"the family {family[:80]!r}, which cannot name a file")
        descriptor = f"{core}:{variant}" if variant else core
        if descriptor in self._seen:
            raise self._evaluator.refusal(model.call, f"a second entry {descriptor[:80]!r}")
        self._seen.add(descriptor)
        for name, node in model.uses.items():
            self.names[name] = Named(*self._cite(node))
        lines, sha256 = self._cite(model.call)
        entry = Entry(
            descriptor=descriptor,
            core_model_id=core,
            variant=variant,
            family=family,
            description=self._value(model, "description", str),
            huggingface_repo=self._value(model, "huggingface_repo", str, NoneType),
            quantization_format=self._value(model, "quantization_format", str),
            pth_file_count=self._value(model, "pth_file_count", int),
            max_seq_length=self._value(model, "max_seq_length", int),
            lines=lines,
            sha256=sha256,
            uses=sorted(model.uses),
            arch_args=self._value(model, "arch_args", dict),
            metadata=self._value(model, "metadata", dict),
        )
        # A constant is once in the source, but is written out in every entry that uses it.
        self._characters += len(repr(entry))
        if self._characters > MOST_CHARACTERS:
            raise self._evaluator.refusal(model.call, f"entries of more than {MOST_CHARACTERS:,} characters")
        return entry

    def _value(self, model: Instance, name: str, *kinds: type) -> Any:
        value = self._evaluator.attribute(model, name, model.call)
        if isinstance(value, Member):
            value = value.value
        if type(value) not in kinds or not (value is None or _plain(value)):
            why = f"`{name}` is not a {kinds[0].__name__} that TOML and JSON can represent"
            raise self._evaluator.refusal(model.call, why)
        return value

    def _cite(self, node: ast.expr | ast.stmt) -> tuple[list[list[int]], str]:
        if self._evaluator.home[node] != self._path:
            raise self._evaluator.refusal(node, f"an entry takes values from here, not {self._path.name}")
        first, last = node.lineno, node.end_lineno or node.lineno
        if (first, last) not in self._hashes:
            text = "".join(f"{line}\n" for line in self._lines[first - 1 : last])
            self._hashes[first, last] = hashlib.sha256(text.encode()).hexdigest()
        return [[first, last]], self._hashes[first, last]


def _plain(value: object) -> bool:
    match value:
        case bool():
            return True
        case int():
            return -(2**63) <= value < 2**63
        case float():
            return math.isfinite(value)
        case str():
            return not any("\ud800" <= character <= "\udfff" for character in value)
        case list():
            return all(map(_plain, value))
        case dict():
            return all(_plain(key) and _plain(item) for key, item in value.items())
    return False


def _tables(catalogue: Catalogue, entries: list[Entry]) -> str:
    used = {name for entry in entries for name in entry.uses}
    tables = [(f"[names.{_key(name)}]", asdict(catalogue.names[name])) for name in sorted(used)]
    tables += [("[[entries]]", asdict(entry)) for entry in entries]
    text = ""
    for header, table in tables:
        text += f"\n{header}\n"
        for key, value in table.items():
            if value is not None and (value or key != "metadata"):
                text += f"{key} = {_toml(value)}\n"
    return text


def _toml(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            # TOML uses JSON's escapes, and also requires an escape for DEL.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case list():
            return f"[{', '.join(map(_toml, value))}]"
        case dict():
            inside = ", ".join(f"{_key(key)} = {_toml(item)}" for key, item in value.items())
            return f"{{ {inside} }}" if inside else "{}"
    return repr(value)  # an integer or a float: 1e-05 and 500000.0 stay floats


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml(name)
