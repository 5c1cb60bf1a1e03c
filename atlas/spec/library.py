"""Loads the description files lazily, with errors that name the file.

The built-in files are in `specs/`. Further folders (`--specs DIR`) add files, and replace files and tables of the same
name. Nothing in them is executed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from atlas import spec
from atlas.errors import SpecError
from atlas.spec import inheritance, registry
from atlas.spec.axes import check_products
from atlas.spec.bibliography_index import files_of_ids
from atlas.spec.toml_files import is_there, may_contain, toml_files
from atlas.spec.toml_files import read_toml as read_toml

T = TypeVar("T", bound=spec.Spec)

PARTS = (
    "axes.toml",
    "undescribed.toml",
    "bibliography",
    "components",
    "architectures",
    "quantisations",
    "topics",
    "catalogue",
    "models",
)
"""What a folder of description files may contain."""

MOST_BYTES = 8 * 2**20
"""Most bytes of description files that one command reads. The built-in files have about 100,000."""

MOST_FAULTS = 20
"""Most faults that are reported for one table."""

ABSENT = "absent"
"""In a sample: a key that the inherited or the first sample states and this one does not (TOML has no null)."""

NULL = "null"
"""In a sample: the value null."""


def builtin_folder() -> Path:
    """The built-in specs: inside the installed package, or next to it in a working tree."""
    inside = Path(__file__).parents[1] / "specs"
    return inside if inside.is_dir() else Path(__file__).parents[2] / "specs"


def validate(kind: type[T], table: object, where: str | inheritance.Merged) -> T:
    """Validate a table.

    Args:
        where: its file, for messages; or its files, if it inherits from others.

    Raises:
        SpecError: one clause for each wrong field, with its address in the file.
    """
    try:
        return kind.model_validate(table)
    except ValidationError as error:
        by_file: dict[str, list[str]] = {}
        for fault in error.errors(include_url=False, include_context=False)[:MOST_FAULTS]:
            file = where if isinstance(where, str) else str(where.file_of(fault["loc"]))
            by_file.setdefault(file, []).append(
                f"{'.'.join(map(str, fault['loc'])) or 'the table'}: {fault['msg'][:1].lower()}{fault['msg'][1:]}"
                + (f", found {repr(fault['input'])[:60]}" if fault["type"] != "missing" else "")
            )
        text = "; ".join(f"{file}: {'; '.join(faults)}" for file, faults in by_file.items())
        more = error.error_count() - MOST_FAULTS
        raise SpecError(text + (f"; and {more:,} more" if more > 0 else "")) from None


class Library:
    """All descriptions: the built-in ones, and those of further folders, which take precedence."""

    def __init__(self, *overlays: Path) -> None:
        self.folders = (builtin_folder(), *overlays)
        self._loaded: dict[tuple[str, str], spec.Spec] = {}
        self._paths: dict[str, dict[str, Path]] = {}
        self._raw: dict[str, tuple[Path, dict[str, Any]]] = {}
        self._bytes = 0
        self.bound: dict[str, Any] = {}
        """Id of a catalogued model -> its graph: a cache of `atlas.graph.binding` for runs that check many checkpoints."""

    # ---- axes.toml of every folder, merged

    @cached_property
    def axes(self) -> Mapping[str, spec.Axis]:
        found: dict[str, spec.Axis] = {}
        for folder in self.folders:
            path = folder / "axes.toml"
            if is_there(path):
                found |= {
                    name: validate(spec.Axis, table, f"{path}: {name}")
                    for name, table in self._read(path).items()
                }
        return found

    @cached_property
    def parts(self) -> Mapping[str, tuple[str, ...]]:
        """For each axis that is a product, the axes it is made of.

        Raises:
            SpecError: an axis is made of an unknown axis, of itself, or of too many axes.
        """
        found = {name: tuple(axis.parts.split()) for name, axis in self.axes.items() if axis.parts}
        check_products(found, self.axes)
        return found

    # ---- the bibliography: the files whose headers state an id, else all in turn until one contains it

    @cached_property
    def _files_of_ids(self) -> Mapping[str, list[str]]:
        return files_of_ids(self.paths("bibliography"))

    def _bibliographies(self, of: str = "") -> Iterator[spec.Bibliography]:
        """The files, those that state an id first."""
        stating = self._files_of_ids.get(of, []) if of else []
        for file in dict.fromkeys([*stating, *self.paths("bibliography")]):
            yield self._load(spec.Bibliography, "bibliography", file)

    def source(self, name: str, where: str) -> spec.Source:
        """A source by its id; `where` is the place that refers to it, for the message.

        Raises:
            SpecError: there is no such id.
        """
        for file in self._bibliographies(name):
            if name in file.sources:
                return file.sources[name]
        raise SpecError(f"{where}: no source is called {name!r} in the bibliography")

    def cite(self, name: str) -> spec.Cite:
        """A cite by its id.

        Raises:
            SpecError: there is no such id.
        """
        for file in self._bibliographies(name):
            if name in file.cites:
                return file.cites[name]
        raise SpecError(f"no cite is called {name!r} in the bibliography")

    @property
    def sources(self) -> Mapping[str, spec.Source]:
        """All, by id."""
        return {name: source for file in self._bibliographies() for name, source in file.sources.items()}

    @property
    def cites(self) -> Mapping[str, spec.Cite]:
        """All, by id."""
        return {name: cite for file in self._bibliographies() for name, cite in file.cites.items()}

    # ---- one file for each component, architecture, family and catalogue

    def paths(self, kind: str) -> dict[str, Path]:
        """File stem -> path of every file of that kind; later folders take precedence.

        Raises:
            SpecError: a folder cannot be read, or contains too many files.
        """
        if kind not in self._paths:
            self._paths[kind] = {
                path.stem: path
                for folder in self.folders
                for path in toml_files(folder / kind)
                if is_there(path)
            }
        return self._paths[kind]

    def _read(self, path: Path) -> dict[str, Any]:
        tables = read_toml(path)
        self._bytes += path.stat().st_size
        if self._bytes > MOST_BYTES:
            raise SpecError(f"{path}: the description files have more than {MOST_BYTES:,} bytes in total")
        return tables

    def _load(self, kind: type[T], folder: str, name: str) -> T:
        if (folder, name) not in self._loaded:
            path = self.paths(folder).get(name)
            if path is None:
                raise SpecError(
                    f"{folder}/{name[:100]}.toml: no such description",
                    hint=f"available: {', '.join(list(self.paths(folder))[:50])}",
                )
            if kind is spec.Architecture:
                merged = inheritance.merged(name, self._architecture_file)
                described = validate(kind, merged.table, merged)
            else:
                described = validate(kind, self._read(path), str(path))
            own = getattr(described, "id", name)
            if own != name:  # references use the file's name
                raise SpecError(f"{path}: id is {own!r}, expected the file's name, {name!r}")
            self._loaded[folder, name] = described
        found = self._loaded[folder, name]
        assert isinstance(found, kind)
        return found

    def _architecture_file(self, name: str, stated: str = "") -> tuple[Path, dict[str, Any]]:
        """An architecture's file and its own tables, each read once; `stated` is the place that names it, for the message."""
        if name not in self._raw:
            path = self.paths("architectures").get(name)
            if path is None:
                raise SpecError(
                    f"{stated}architectures/{name[:100]}.toml: no such description",
                    hint=f"available: {', '.join(list(self.paths('architectures'))[:50])}",
                )
            self._raw[name] = path, self._read(path)
        return self._raw[name]

    @cached_property
    def undescribed(self) -> Mapping[str, spec.UndescribedKind]:
        """The kinds of models that are not described; a later folder's table replaces one of the same name.

        Raises:
            SpecError: a table is faulty.
        """
        found: dict[str, spec.UndescribedKind] = {}
        for folder in self.folders:
            path = folder / "undescribed.toml"
            if is_there(path):
                found |= {
                    name: validate(spec.UndescribedKind, table, f"{path}: {name}")
                    for name, table in self._read(path).items()
                }
        return found

    def kind_of(self, model_type: str) -> str | None:
        """What a model of a kind that is not described is, as the end of a sentence; None if that is not known."""
        return next((kind.what for kind in self.undescribed.values() if model_type in kind.model_types), None)

    @cached_property
    def claims(self) -> dict[str, list[registry.Claim]]:
        """`model_type` -> the configuration tables that describe it.

        Raises:
            SpecError: the architecture files are too long in total.
        """
        return registry.claims(self.paths("architectures"), most=MOST_BYTES)

    def chain(self, name: str) -> list[Mapping[str, Any]]:
        """The tables of an architecture's own file, then those of each file that it is built like.

        Raises:
            SpecError: a file of the chain is missing or faulty.
        """
        return [table for _, table in inheritance.merged(name, self._architecture_file).files]

    def samples(self, architecture: spec.Architecture) -> dict[str, dict[str, Any]]:
        """Name -> a small configuration of an architecture, with sizes that are all different; empty for a base.

        The first is called by the architecture's id, the others also by their own names.
        """
        if architecture.base:
            return {}
        named = {"": {}, **architecture.samples} if architecture.sample else architecture.samples
        return {
            f"{architecture.id}-{name}".removesuffix("-"): {
                key: None if value == NULL else value
                for key, value in {**architecture.sample, **changed}.items()
                if value != ABSENT
            }
            for name, changed in named.items()
        }

    def component(self, name: str) -> spec.Component:
        return self._load(spec.Component, "components", name)

    def architecture(self, name: str) -> spec.Architecture:
        return self._load(spec.Architecture, "architectures", name)

    def quantisations(self) -> list[spec.Quantisation]:
        return [self._load(spec.Quantisation, "quantisations", name) for name in self.paths("quantisations")]

    def topics(self) -> list[spec.Topic]:
        return [self._load(spec.Topic, "topics", name) for name in self.paths("topics")]

    # ---- the catalogue

    def family(self, name: str) -> spec.Family:
        return self._load(spec.Family, "models", name)

    def catalogue(self, family: str) -> spec.Catalogue:
        return self._load(spec.Catalogue, "catalogue", family)

    def families(self) -> Iterator[spec.Family]:
        """Every family, each file parsed when its turn comes."""
        return map(self.family, sorted(self.paths("models")))

    def families_naming(self, name: str) -> Iterator[spec.Family]:
        """The families that may have a model of that name, in lower case: files without the name's bytes are not parsed.

        Those whose id occurs in the name, hyphens apart, come first, longest id first.
        """
        plain = name.replace("-", "")
        likely = sorted(
            self.paths("models").items(),
            key=lambda item: (-len(item[0]) if item[0].replace("-", "") in plain else 0, item[0]),
        )
        return (self.family(family) for family, path in likely if may_contain(path, name))
