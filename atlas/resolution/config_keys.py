"""Reads the keys of a configuration one by one, as its architecture's table says what each means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from atlas import dtypes, spec
from atlas.errors import ConfigError, UndescribedConfigError, shown
from atlas.grammar.conditions import holds
from atlas.resolution import dimensions, layer_rules, quantisation, rope
from atlas.resolution.model import Gap, Scalar, Unknown
from atlas.resolution.undescribed import is_described, rope_beyond
from atlas.spec.library import Library

ORIGINAL_CONTEXT = "original_context"
"""The number that is the context length before it was extended."""

_ORDER = {"context_length": 0, ORIGINAL_CONTEXT: 1, "rope": 2}
"""Names that are read before others: RoPE's forms need the lengths."""

_COMPUTATION = frozenset({"trace", "explain", "run"})
"""Commands that a setting which changes only values affects."""


def flattened(config: Mapping[str, Any], table: spec.Config) -> dict[str, Any]:
    """The configuration with each object whose keys the table names (`attn_config.alibi`) replaced by these keys."""
    dotted = {key.partition(".")[0] for key in _known_keys(table) if "." in key}
    found: dict[str, Any] = {}
    for key, value in config.items():
        if key in dotted and isinstance(value, Mapping):
            found |= {f"{key}.{inner}": item for inner, item in value.items()}
        else:
            found[key] = value
    return found


def _known_keys(table: spec.Config) -> Iterator[str]:
    for keys in (
        table.used,
        table.only,
        table.computes,
        table.expects,
        table.agrees,
        table.present,
        table.ignored,
    ):
        yield from keys


@dataclass
class Reading:
    """What has been read so far of one configuration.

    Attributes:
        beyond: what the configuration states and the description does not cover: key -> value.
    """

    architecture: spec.Architecture
    table: spec.Config
    library: Library
    where: str
    dims: dict[str, int] = field(default_factory=dict)
    numbers: dict[str, float] = field(default_factory=dict)
    flags: dict[str, Scalar] = field(default_factory=dict)
    rope: dict[str, Scalar] = field(default_factory=dict)
    ropes: dict[str, Mapping[str, Scalar]] = field(default_factory=dict)
    lists: dict[str, tuple[int, ...] | tuple[str, ...]] = field(default_factory=dict)
    dtype: str | None = None
    context_length: int | None = None
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    unknown: list[Unknown] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    beyond: dict[str, Any] = field(default_factory=dict)
    stated_by: dict[str, str] = field(default_factory=dict)
    """Our name -> the key that gave it, for messages and for two keys that disagree."""

    @cached_property
    def list_words(self) -> dict[str, set[str]]:
        """List of layers -> the words it may have; empty for a list of layer numbers."""
        found = layer_rules.words_of(self.architecture)
        for name, rules in self.table.patterns.items():
            found.setdefault(name, set()).update(str(rule.word) for rule in rules)
        return found

    @cached_property
    def key_of(self) -> dict[str, str]:
        """Our name -> the first key of the table that gives it."""
        return {name: key for key, names in reversed(self.table.used.items()) for name in _several(names)}

    def keys(self, config: Mapping[str, Any]) -> None:
        """Read every key without a condition. Keys that are used come in the table's order, which is their precedence."""
        table = self.table
        for key, flag in table.present.items():
            self.flags[flag] = config.get(key) is not None
        for key, rule in table.differs.items():
            self.flags[rule.flag] = config.get(key) not in (None, config.get(rule.other))
        others: dict[str, Any] = {}
        for key, value in config.items():
            if value is None or key in table.when or self._is_known(key, value, config):
                continue
            others[key] = value
        if others:
            self.gaps += quantisation.declared(others, self.library)
            declarations = quantisation.keys(self.library)
            self.unknown += [Unknown(k, v, self.where) for k, v in others.items() if k not in declarations]
            self.beyond |= others
        self._used(config, [key for key in table.used if key not in table.when])

    def conditional(self, config: Mapping[str, Any]) -> None:
        """Read the keys that matter only under a condition on what other keys state."""
        values = {
            **self.architecture.flags,
            **self.architecture.numbers,
            **self.dims,
            **self.numbers,
            **self.flags,
        }
        met = {key for key, when in self.table.when.items() if holds(when, values)}
        for key in met:
            if config.get(key) is not None:
                self._is_known(key, config[key], config)
        self._used(config, [key for key in self.table.used if key in met])

    def _used(self, config: Mapping[str, Any], keys: Sequence[str]) -> None:
        for key in sorted(keys, key=lambda key: _ORDER.get(str(self.table.used[key]), len(_ORDER))):
            for name in _several(self.table.used[key]):
                if config.get(key) is not None:
                    self._use(key, name, config[key])
        for key in keys:
            if self.table.used[key] == "rope" and config.get(key) is not None:
                self.beyond |= rope_beyond(key, config[key], config, self.table)

    def _is_known(self, key: str, value: Any, config: Mapping[str, Any]) -> bool:
        """Whether the table says what the key means; a value that is not described is refused, or becomes a gap."""
        table = self.table
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
                self.beyond[key] = value
        elif key in table.expects:
            expected = table.expects[key]
            options = expected if isinstance(expected, list) else [expected]
            if not is_described(value, options):
                described = " or ".join(map(shown, options))
                self.gaps.append(
                    Gap(f"the key {key} is {shown(value)}, and only {described} is described", _COMPUTATION)
                )
                self.beyond[key] = value
        else:
            return (
                key in table.used
                or key in table.ignored
                or key in table.agrees
                or key in table.present
                or (bool(table.classes) and key == "architectures")
            )
        return True

    def _use(self, key: str, name: str, value: Any) -> None:
        flag = self.architecture.flags.get(name, self.table.defaults.get(name))
        words = self.table.words.get(key)
        if words is not None and (
            isinstance(value, bool | str) or (isinstance(value, int) and str(value) in words)
        ):
            self._use_word(key, name, value)
        elif name == "rope":
            self._use_rope(key, value)
        elif name == "dtype":
            self._use_dtype(key, name, value)
        elif name == "context_length":
            length = dimensions.read(key, value, self.where)
            if self.context_length is None:
                self.context_length = length
            elif length != self.context_length:
                self._disagreement(key, name, length, self.context_length)
        elif name in self.list_words:
            self.lists[name] = layer_rules.read(key, value, self.list_words[name], self.where)
        elif name in self.library.axes:
            size = dimensions.read(key, value, self.where)
            self.agree(key, name, size, self.dims.get(name))
            self.dims[name] = size
        elif isinstance(flag, bool):
            if not isinstance(value, bool):
                raise ConfigError(f"{self.where}: {key} is {shown(value)}, expected true or false")
            self.agree(key, name, value, self.flags.get(name))
            self.flags[name] = value
        elif isinstance(flag, str):
            if not isinstance(value, str):
                raise ConfigError(f"{self.where}: {key} is {shown(value)}, expected a string")
            self.agree(key, name, value, self.flags.get(name))
            self.flags[name] = value
        else:
            self._use_number(key, name, value)
        self.stated_by.setdefault(name, key)

    def _use_number(self, key: str, name: str, value: Any) -> None:
        """A number: positive, or zero where the architecture's default is 0, which means that there is none."""
        may_be_none = self.architecture.numbers.get(name) == 0
        if may_be_none and (value is False or (value == 0 and not isinstance(value, bool))):
            value = 0
        elif not rope.positive(value):
            expected = "a positive number or 0" if may_be_none else "a positive number"
            raise ConfigError(f"{self.where}: {key} is {shown(value)}, expected {expected}")
        if name == "rope_theta":
            self._use_theta(key, name, value)
        else:
            self.agree(key, name, value, self.numbers.get(name))
            self.numbers[name] = value

    def _use_word(self, key: str, name: str, value: Any) -> None:
        """A word that the table translates; another one is a gap."""
        words = self.table.words[key]
        word = words.get(str(value).lower() if isinstance(value, bool) else str(value))
        if word is None:
            known = ", ".join(sorted(words))
            self.gaps.append(
                Gap(f"the key {key} is {shown(value)}, and only {known} are described", _COMPUTATION)
            )
            self.beyond[key] = value
            return
        if isinstance(word, bool | str):
            self.agree(key, name, word, self.flags.get(name))
            self.flags[name] = word
        else:
            self._use_number(key, name, word)

    def _use_dtype(self, key: str, name: str, value: Any) -> None:
        found = dtypes.find(value) if isinstance(value, str) else None
        if found is None:
            self.warnings.append(f"{self.where}: {key} is {shown(value)}, which is not a known dtype")
            self.beyond[key] = value
        elif self.dtype is None:
            self.dtype = found
        elif found != self.dtype:
            reason = self._disagreement(key, name, found, self.dtype)
            if dtypes.BITS[found] != dtypes.BITS[self.dtype]:
                self.gaps.append(Gap(reason, frozenset({"weights"})))

    def _use_rope(self, key: str, value: Any) -> None:
        kinds = self.table.rope_kinds
        if (
            kinds
            and isinstance(value, Mapping)
            and value
            and all(isinstance(v, Mapping) for v in value.values())
        ):
            for kind, settings in value.items():
                if kind in kinds:
                    self._use_rope_of(f"{key}.{kind}", settings, kinds[kind], kind)
                else:
                    self.unknown.append(Unknown(f"{key}.{kind}", settings, self.where))
            return
        self._use_rope_of(key, value, "rope_theta", "")

    def _use_rope_of(self, key: str, value: Any, theta: str, kind: str) -> None:
        """RoPE settings, for all layers or for one kind of them.

        Args:
            theta: the name of the number that is its base.
        """
        found = rope.read(
            key, value, longest=self.context_length, original=self.numbers.get(ORIGINAL_CONTEXT)
        )
        if value is False:
            self.warnings.append(f"{self.where}: {key} is false; it is read as null, no scaling")
        self.warnings += [f"{self.where}: {fault.reason}" for fault in found.faults]
        if kind:
            self.ropes[kind] = found.scaling
        elif "rope" not in self.stated_by:
            self.rope = found.scaling
        elif found.scaling != self.rope:
            reason = self._disagreement(key, "rope", found.scaling, self.rope)
            self.gaps.append(Gap(reason, rope.FREQUENCIES))
        self.gaps += [*found.faults, *found.gaps]
        if found.theta is not None:
            self._use_theta(f"{key}.rope_theta", theta, found.theta)
        for name, item in found.others.items():
            if name in self.table.used and not kind:
                for ours in _several(self.table.used[name]):
                    self._use(name, ours, item)
                continue
            rule = self.table.computes.get(name)
            if rule is None:
                self.unknown += [Unknown(f"{key}.{name}", item, self.where)] if found.described else []
            elif not _among(item, rule.only):
                self.gaps.append(Gap(rule.reason.replace("{value}", shown(item)), frozenset(rule.affects)))

    def _use_theta(self, key: str, name: str, theta: float) -> None:
        before = self.numbers.setdefault(name, theta)
        if theta != before:
            reason = self._disagreement(key, name, theta, before)
            self.gaps.append(Gap(reason, rope.FREQUENCIES))
        self.stated_by.setdefault(name, key)

    def agree(self, key: str, name: str, value: object, before: object) -> None:
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


def _several(names: str | list[str]) -> list[str]:
    return [names] if isinstance(names, str) else names


def _among(value: Any, allowed: Sequence[object]) -> bool:
    return any(value == option and isinstance(value, bool) == isinstance(option, bool) for option in allowed)
