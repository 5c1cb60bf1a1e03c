"""A checkpoint's own configuration -> a Model, by the tables of its architecture.

`config.json` of the Hub and Meta's `params.json` are read alike: every key is used, changes shapes in a way that is not
described (refused by name), changes the computation only (a gap: counted, but refused where the answer depends on it),
is ignored by name, or is unknown (a warning). Absent and `null` both mean the default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from atlas import dtypes, spec
from atlas.errors import ConfigError, shown
from atlas.resolution import dimensions, feed_forward, rope
from atlas.resolution.model import Gap, Model, Scalar
from atlas.spec.library import Library

LONGEST_NAME = 400
"""Of `_name_or_path`, in characters: a longer one is no name, and the file's own place is used instead."""

MOST_UNKNOWN = 20
"""Unknown keys that are named one by one; the rest of them are only counted."""


def describe(config: Mapping[str, Any], library: Library, *, id: str, file: str = "config.json") -> Model:
    """The model that a configuration describes.

    Args:
        config: the file's top-level object.
        id: what messages call it: a path or a Hub id.
        file: `config.json` or `params.json`, which decides the tables it is read by.

    Raises:
        ConfigError: a dimension is missing, is no positive integer or does not divide as needed; or a setting changes
            shapes in a way that is not described. The message names the key.
    """
    architecture, table = _table(config, library, id, file)
    read = _Reading(architecture, table, library, f"{id}")
    unstated = {key: value for key, value in table.absent.items() if key not in config}
    read.notes += [
        f"{key} is not stated; {shown(value)} is used, the default" for key, value in unstated.items()
    ]
    read.keys({**unstated, **config})
    read.defaults()
    if file == "params.json":
        read.meta()
    sizes = dimensions.check(read.dims, architecture, library.axes, read.key_of, read.where)
    dimensions.agree(config, table.agrees, sizes, read.key_of, read.where)
    return Model(
        id=id,
        name=_name(config) or id,
        architecture=architecture.id,
        dims=read.dims,
        numbers=read.numbers,
        flags=architecture.flags | {k: v for k, v in read.flags.items() if k in architecture.flags},
        rope=read.rope,
        lists=read.lists,
        dtype=read.dtype or "BF16",
        dtype_stated=read.dtype is not None,
        context_length=read.context_length,
        names="hf" if file == "config.json" else "meta",
        rests_on=f"the configured dimensions in {id}",
        notes=tuple(read.notes),
        warnings=tuple(read.warnings),
        gaps=tuple(read.gaps),
    )


def _name(config: Mapping[str, Any]) -> str:
    """What the configuration calls its model; empty where it says nothing that can be a name."""
    name = config.get("_name_or_path")
    return name if isinstance(name, str) and len(name) <= LONGEST_NAME else ""


def _table(
    config: Mapping[str, Any], library: Library, id: str, file: str
) -> tuple[spec.Architecture, spec.Config]:
    """The architecture and the table of keys that this configuration is read by."""
    name = "meta" if file == "params.json" else config.get("model_type")
    if name is None:
        raise ConfigError(
            f"{id}: model_type is missing, so the architecture is not known",
            hint='add it, for example "model_type": "llama"',
        )
    known: dict[str, spec.Architecture] = {}
    for architecture in map(library.architecture, library.paths("architectures")):
        for word, table in architecture.configs.items():
            if table.file == file:
                known[word] = architecture
    if not isinstance(name, str) or name not in known:
        raise ConfigError(
            f"{id}: model_type {repr(name)[:80] if isinstance(name, str) else shown(name)} is not described yet; described are {', '.join(sorted(known))}",
        )
    return known[name], library.config(known[name], name)


@dataclass
class _Reading:
    """What has been read so far of one configuration."""

    architecture: spec.Architecture
    table: spec.Config
    library: Library
    where: str
    dims: dict[str, int] = field(default_factory=dict)
    numbers: dict[str, float] = field(default_factory=dict)
    flags: dict[str, Scalar] = field(default_factory=dict)
    rope: dict[str, Scalar] = field(default_factory=dict)
    lists: dict[str, tuple[int, ...]] = field(default_factory=dict)
    dtype: str | None = None
    context_length: int | None = None
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    said_by: dict[str, str] = field(default_factory=dict)
    """Our name -> the key that gave it, for messages and against two keys that disagree."""

    @cached_property
    def listed(self) -> set[str]:
        """The names under which a stack's blocks ask for a list of layers."""
        stacks = self.architecture.stacks.values()
        return {choice.at for stack in stacks for slot in stack.layers for choice in slot if choice.at}

    @cached_property
    def key_of(self) -> dict[str, str]:
        """Our name -> the first key of the table that gives it."""
        return {name: key for key, name in reversed(self.table.used.items())}

    def keys(self, config: Mapping[str, Any]) -> None:
        table = self.table
        unknown: list[str] = []
        for key, value in config.items():
            if value is None or key in table.ignored or key in table.agrees:
                continue
            if key in table.only:
                if not _among(value, table.only[key]):
                    described = " or ".join(map(shown, [*table.only[key], None]))
                    raise ConfigError(
                        f"{self.where}: {key} is {shown(value)}, which changes the model's tensors and is not "
                        f"described; expected {described}"
                    )
            elif key in table.computes:
                rule = table.computes[key]
                if not _among(value, rule.only):
                    within = config.get(rule.window) if rule.window else None
                    within = within if type(within) is int and within > 0 else None
                    self.gaps.append(
                        Gap(rule.says.replace("{value}", shown(value)), frozenset(rule.affects), within)
                    )
            elif key in table.used:
                self._use(key, table.used[key], value)
            else:
                unknown.append(key)
        self.warnings += [
            f"{self.where}: the key {_key(key)} is unknown and was not used" for key in unknown[:MOST_UNKNOWN]
        ]
        if len(unknown) > MOST_UNKNOWN:
            rest = len(unknown) - MOST_UNKNOWN
            self.warnings.append(f"{self.where}: {rest:,} more keys are unknown and were not used")

    def _use(self, key: str, name: str, value: Any) -> None:
        if name == "rope":
            theta, scaled, gap = rope.read(key, value, self.where)
            self._agree(key, name, scaled, self.rope if name in self.said_by else None)
            self.rope = scaled
            self.gaps += [gap] if gap and gap not in self.gaps else []
            if theta is not None:
                self._agree(key, "rope_theta", theta, self.numbers.get("rope_theta"))
                self.numbers["rope_theta"] = theta
        elif name == "dtype":
            found = dtypes.find(value) if isinstance(value, str) else None
            if found is None:
                self.warnings.append(
                    f"{self.where}: {key} is {shown(value)}, which is no dtype that is known"
                )
            else:
                self._agree(key, name, found, self.dtype)
                self.dtype = found
        elif name == "context_length":
            found_length = dimensions.read(key, value, self.where)
            self._agree(key, name, found_length, self.context_length)
            self.context_length = found_length
        elif name in self.listed:
            if not isinstance(value, list) or not all(type(layer) is int and layer >= 0 for layer in value):
                raise ConfigError(
                    f"{self.where}: {key} is {shown(value)}, expected a list of layers' numbers"
                )
            self.lists[name] = tuple(value)
        elif name in self.library.axes:
            size = dimensions.read(key, value, self.where)
            self._agree(key, name, size, self.dims.get(name))
            self.dims[name] = size
        elif isinstance(self.architecture.flags.get(name, self.table.defaults.get(name)), bool):
            if not isinstance(value, bool):
                raise ConfigError(f"{self.where}: {key} is {shown(value)}, expected true or false")
            self.flags[name] = value
        elif not rope.positive(value):
            raise ConfigError(f"{self.where}: {key} is {shown(value)}, expected a positive number")
        else:
            self._agree(key, name, value, self.numbers.get(name))
            self.numbers[name] = value
        self.said_by.setdefault(name, key)

    def _agree(self, key: str, name: str, value: object, before: object) -> None:
        if before is not None and value != before:
            other = self.said_by.get(name, name)
            raise ConfigError(f"{self.where}: {key} and {other} disagree: {shown(value)} and {shown(before)}")
        self.said_by.setdefault(name, key)

    def defaults(self) -> None:
        """What an absent key means, with a note for the numbers the computation depends on."""
        for name, value in self.table.defaults.items():
            if isinstance(value, bool):
                self.flags.setdefault(name, value)
            elif name not in self.numbers and isinstance(value, int | float):
                self.numbers[name] = value
                self.notes.append(
                    f"{self.key_of.get(name, name)} is not stated; {value:g} is used, the default{self.table.whose}"
                )

    def meta(self) -> None:
        """What Meta's reference code works out from the arguments: the feed-forward's width, scaled positions."""
        multiple_of = self.numbers.pop("multiple_of", None)
        multiplier = self.numbers.pop("ffn_dim_multiplier", None)
        if not isinstance(multiple_of, int):
            raise ConfigError(
                f"{self.where}: multiple_of is {shown(multiple_of)}, expected a positive integer"
            )
        if "dim" in self.dims:
            try:
                width = feed_forward.width(self.dims["dim"], multiple_of, multiplier)
            except OverflowError:
                width = 0
            if not 1 <= width <= dimensions.LARGEST:
                raise ConfigError(
                    f"{self.where}: multiple_of {shown(multiple_of)} and ffn_dim_multiplier {shown(multiplier)} give a "
                    f"feed-forward of width {shown(width) if width else 'zero, or beyond any number'}; expected 1 to "
                    f"{dimensions.LARGEST:,}"
                )
            self.dims["ffn_dim"] = width
        self.notes = [note for note in self.notes if not note.startswith("multiple_of")]
        if self.flags.pop("use_scaled_rope", False):
            self.rope = dict(rope.META_SCALED)


def _key(key: str) -> str:
    """A key as a warning shows it: plain where it looks like one, else as JSON writes it, and never long."""
    return key if key.isidentifier() and len(key) <= 80 else shown(key)


def _among(value: Any, allowed: Sequence[object]) -> bool:
    return any(value == option and isinstance(value, bool) == isinstance(option, bool) for option in allowed)
