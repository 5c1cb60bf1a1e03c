"""Reads a checkpoint's own configuration as a Model, with the tables of its architecture.

The Hub's `config.json` and Meta's `params.json` are read alike. A key is used; or it changes shapes in a way that is not
described, and the configuration is refused; or it changes only the computation (a gap: parameters are counted, and commands
that depend on the key refuse); or it is ignored by name; or it is unknown. Absent and `null` both mean the default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from atlas import dtypes, spec
from atlas.errors import ConfigError, UndescribedConfigError, shown
from atlas.resolution import dimensions, quantisation, rope
from atlas.resolution.model import Gap, Model, Scalar, Unknown
from atlas.resolution.undescribed import is_described, undescribed
from atlas.spec.library import Library


def describe(config: Mapping[str, Any], library: Library, *, id: str, file: str = "config.json") -> Model:
    """The model that a configuration describes.

    Args:
        config: the file's top-level object.
        id: the model's id and title: a path or a Hub id.
        file: `config.json` or `params.json`, which selects the tables.

    Raises:
        ConfigError: a dimension is missing, is not a positive integer or does not divide as needed; or a setting changes
            shapes in a way that is not described. The message names the key.
    """
    architecture, table = _table(config, library, id, file)
    head, table = _with_head(config, table, id)
    read = _Reading(architecture, table, library, f"{id}")
    unstated = {key: value for key, value in table.absent.items() if key not in config}
    read.notes += [
        f"{key} is not stated; {shown(value)} is used, the default{_of(table.whose)}"
        for key, value in unstated.items()
    ]
    read.keys({**unstated, **config})
    read.defaults(config)
    if head is not None:
        read.head(head, config)
    if file == "params.json":
        read.meta()
    sizes = dimensions.check(read.dims, architecture, library.axes, read.key_of, read.where)
    dimensions.agree(config, table.agrees, sizes, read.key_of, read.where)
    return Model(
        id=id,
        name=id,
        architecture=architecture.id,
        dims=read.dims,
        numbers={name: number for name, number in read.numbers.items() if name not in architecture.flags},
        flags=architecture.flags
        | {k: v for k, v in {**read.numbers, **read.flags}.items() if k in architecture.flags},
        rope=read.rope,
        lists=read.lists,
        dtype=read.dtype or "BF16",
        dtype_stated=read.dtype is not None,
        context_length=read.context_length,
        names="hf" if file == "config.json" else "meta",
        rests_on=id,
        notes=tuple(read.notes),
        warnings=tuple(read.warnings),
        unknown=tuple(read.unknown),
        gaps=tuple(dict.fromkeys(read.gaps)),
        settings=undescribed({**unstated, **config}, table),
    )


def _table(
    config: Mapping[str, Any], library: Library, id: str, file: str
) -> tuple[spec.Architecture, spec.Config]:
    """The architecture and the table of keys for this configuration."""
    name = "meta" if file == "params.json" else config.get("model_type")
    if name is None:
        raise ConfigError(
            f"{id}: model_type is missing, so the architecture is unknown",
            hint='add it, for example "model_type": "llama"',
        )
    known: dict[str, spec.Architecture] = {}
    for architecture in map(library.architecture, library.paths("architectures")):
        for word, table in architecture.configs.items():
            if table.file == file:
                known[word] = architecture
    if not isinstance(name, str) or name not in known:
        raise UndescribedConfigError(
            f"{id}: model_type {repr(name)[:80] if isinstance(name, str) else shown(name)} is not described yet; described are {', '.join(sorted(known))}",
        )
    return known[name], library.config(known[name], name)


def _with_head(
    config: Mapping[str, Any], table: spec.Config, where: str
) -> tuple[spec.Head | None, spec.Config]:
    """The head of the class in `architectures`, and the table with the keys that this head reads.

    Raises:
        ConfigError: the class is not one of those described.
    """
    stated = config.get("architectures")
    if not table.classes or stated is None or stated == []:
        return None, table
    names = [name for name in table.classes if stated == [name]]
    if not names:
        described = " or ".join(map(shown, [*([name] for name in table.classes), None]))
        raise UndescribedConfigError(
            f"{where}: architectures is {shown(stated)}, which changes the model's tensors and is not described; "
            f"expected {described}"
        )
    head = table.classes[names[0]]
    own = {*head.used, *head.counted}
    ignored = [key for key in table.ignored if key not in own or key in head.counted]
    return head, table.model_copy(update={"used": table.used | head.used, "ignored": ignored})


def _of(whose: str) -> str:
    return f" of {whose}" if whose else ""


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
    unknown: list[Unknown] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    stated_by: dict[str, str] = field(default_factory=dict)
    """Our name -> the key that gave it, for messages and for two keys that disagree."""

    @cached_property
    def layer_lists(self) -> set[str]:
        """The names of the lists of layers that the architecture's stacks use."""
        stacks = self.architecture.stacks.values()
        return {choice.at for stack in stacks for slot in stack.layers for choice in slot if choice.at}

    @cached_property
    def key_of(self) -> dict[str, str]:
        """Our name -> the first key of the table that gives it."""
        return {name: key for key, name in reversed(self.table.used.items())}

    def keys(self, config: Mapping[str, Any]) -> None:
        """Read every key. Keys that are used come in the table's order, which is their precedence."""
        table = self.table
        others: dict[str, Any] = {}
        for key, value in config.items():
            if value is None or key in table.ignored or key in table.agrees or key in table.used:
                continue
            if key in table.only:
                if not _among(value, table.only[key]):
                    described = " or ".join(map(shown, [*table.only[key], None]))
                    raise UndescribedConfigError(
                        f"{self.where}: {key} is {shown(value)}, which changes the model's tensors and is not "
                        f"described; expected {described}"
                    )
            elif key in table.computes:
                rule = table.computes[key]
                if not is_described(value, rule.only):
                    within = config.get(rule.window) if rule.window else None
                    within = within if type(within) is int and within > 0 else None
                    reason = rule.reason.replace("{value}", shown(value))
                    self.gaps.append(Gap(reason, frozenset(rule.affects), within))
            elif not (table.classes and key == "architectures"):
                others[key] = value
        if others:
            self.gaps += quantisation.declared(others, self.library)
            declarations = quantisation.keys(self.library)
            self.unknown += [Unknown(k, v, self.where) for k, v in others.items() if k not in declarations]
        for key, name in sorted(table.used.items(), key=lambda item: item[1] != "rope"):
            if config.get(key) is not None:
                self._use(key, name, config[key])

    def _use(self, key: str, name: str, value: Any) -> None:
        if name == "rope":
            self._use_rope(key, value)
        elif name == "dtype":
            found = dtypes.find(value) if isinstance(value, str) else None
            if found is None:
                self.warnings.append(f"{self.where}: {key} is {shown(value)}, which is not a known dtype")
            elif self.dtype is None:
                self.dtype = found
            elif found != self.dtype:
                reason = self._disagreement(key, name, found, self.dtype)
                if dtypes.BITS[found] != dtypes.BITS[self.dtype]:
                    self.gaps.append(Gap(reason, frozenset({"weights"})))
        elif name == "context_length":
            length = dimensions.read(key, value, self.where)
            if self.context_length is None:
                self.context_length = length
            elif length != self.context_length:
                self._disagreement(key, name, length, self.context_length)
        elif name in self.layer_lists:
            if not isinstance(value, list) or not all(type(layer) is int and layer >= 0 for layer in value):
                raise ConfigError(f"{self.where}: {key} is {shown(value)}, expected a list of layer numbers")
            self.lists[name] = tuple(value)
        elif name in self.library.axes:
            size = dimensions.read(key, value, self.where)
            self._agree(key, name, size, self.dims.get(name))
            self.dims[name] = size
        elif isinstance(self.architecture.flags.get(name, self.table.defaults.get(name)), bool):
            if not isinstance(value, bool):
                raise ConfigError(f"{self.where}: {key} is {shown(value)}, expected true or false")
            self._agree(key, name, value, self.flags.get(name))
            self.flags[name] = value
        elif isinstance(self.architecture.flags.get(name), str):
            if not isinstance(value, str):
                raise ConfigError(f"{self.where}: {key} is {shown(value)}, expected a string")
            self._agree(key, name, value, self.flags.get(name))
            self.flags[name] = value
        elif not rope.positive(value):
            raise ConfigError(f"{self.where}: {key} is {shown(value)}, expected a positive number")
        elif name == "rope_theta":
            self._use_theta(key, value)
        else:
            self._agree(key, name, value, self.numbers.get(name))
            self.numbers[name] = value
        self.stated_by.setdefault(name, key)

    def _use_rope(self, key: str, value: Any) -> None:
        found = rope.read(key, value)
        if value is False:
            self.warnings.append(f"{self.where}: {key} is false; it is read as null, no scaling")
        self.warnings += [f"{self.where}: {fault.reason}" for fault in found.faults]
        if "rope" not in self.stated_by:
            self.rope = found.scaling
        elif found.scaling != self.rope:
            reason = self._disagreement(key, "rope", found.scaling, self.rope)
            self.gaps.append(Gap(reason, rope.FREQUENCIES))
        self.gaps += [*found.faults, *found.gaps]
        if found.theta is not None:
            self._use_theta(f"{key}.rope_theta", found.theta)
        for name, item in found.others.items():
            rule = self.table.computes.get(name)
            if rule is None:
                self.unknown += [Unknown(f"{key}.{name}", item, self.where)] if found.described else []
            elif not _among(item, rule.only):
                self.gaps.append(Gap(rule.reason.replace("{value}", shown(item)), frozenset(rule.affects)))

    def _use_theta(self, key: str, theta: float) -> None:
        before = self.numbers.setdefault("rope_theta", theta)
        if theta != before:
            reason = self._disagreement(key, "rope_theta", theta, before)
            self.gaps.append(Gap(reason, rope.FREQUENCIES))
        self.stated_by.setdefault("rope_theta", key)

    def _agree(self, key: str, name: str, value: object, before: object) -> None:
        """Refuse two keys that give different values to something that shapes depend on."""
        if before is not None and value != before:
            other = self.stated_by.get(name, name)
            raise ConfigError(f"{self.where}: {key} and {other} disagree: {shown(value)} and {shown(before)}")
        self.stated_by.setdefault(name, key)

    def _disagreement(self, key: str, name: str, value: object, before: object) -> str:
        """Warn of two keys that give different values to something that no shape depends on; the earlier one is used."""
        other = self.stated_by[name]
        reason = f"the keys {other} and {key} disagree: {shown(before)} and {shown(value)}"
        self.warnings.append(f"{self.where}: {reason}; {other} is used")
        return reason

    def defaults(self, config: Mapping[str, Any]) -> None:
        """Fill in what absent keys mean, with a note for each number that the computation depends on."""
        defaults, whose = self.table.defaults, self.table.whose
        for generation in self.table.generations:
            if any(config.get(key) is not None for key in generation.stated):
                defaults, whose = defaults | generation.defaults, generation.whose
                break
        for name, value in defaults.items():
            if isinstance(value, bool):
                self.flags.setdefault(name, value)
            elif name not in self.numbers and isinstance(value, int | float):
                self.numbers[name] = value
                self.notes.append(
                    f"{self.key_of.get(name, name)} is not stated; {value:g} is used, the default{_of(whose)}"
                )

    def head(self, head: spec.Head, config: Mapping[str, Any]) -> None:
        """Set the flag for the model's head, and the sizes that only this head has."""
        self.flags["head"] = head.head
        for key, axis in head.counted.items():
            entries = config.get(key)
            if isinstance(entries, Mapping) and entries:
                self._agree(key, axis, len(entries), self.dims.get(axis))
                self.dims[axis] = len(entries)
        for axis, size in head.defaults.items():
            if axis not in self.dims:
                self.dims[axis] = size
                key = self.key_of.get(axis, axis)
                self.notes.append(f"{key} is not stated; {size} is used, the default{_of(self.table.whose)}")
        if head.lacks:
            self.gaps.append(Gap(f"the model is {head.lacks}", frozenset(head.affects)))

    def meta(self) -> None:
        """Derive what Meta's reference code computes from the arguments: the feed-forward width and RoPE scaling."""
        multiple_of = self.numbers.pop("multiple_of", None)
        multiplier = self.numbers.pop("ffn_dim_multiplier", None)
        if not isinstance(multiple_of, int):
            raise ConfigError(
                f"{self.where}: multiple_of is {shown(multiple_of)}, expected a positive integer"
            )
        if "dim" in self.dims:
            try:
                width = dimensions.feed_forward_width(self.dims["dim"], multiple_of, multiplier)
            except OverflowError:
                width = 0
            if not 1 <= width <= dimensions.LARGEST:
                raise ConfigError(
                    f"{self.where}: multiple_of {shown(multiple_of)} and ffn_dim_multiplier {shown(multiplier)} give a "
                    f"feed-forward of width {shown(width) if width else 'zero, or beyond any number'}; expected 1 to "
                    f"{dimensions.LARGEST:,}"
                )
            self.dims["ffn_dim"] = width
        if self.flags.pop("use_scaled_rope", False):
            self.rope = dict(rope.META_SCALED)


def _among(value: Any, allowed: Sequence[object]) -> bool:
    return any(value == option and isinstance(value, bool) == isinstance(option, bool) for option in allowed)
