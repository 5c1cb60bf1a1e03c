"""Checks all description files: each file, references between files, and every model bound to its architecture."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from atlas import spec
from atlas.errors import AtlasError, SpecError
from atlas.evidence.bibliography import evidence
from atlas.graph import cites, operations, tensors
from atlas.graph.binding import bind
from atlas.resolution import catalogued, config
from atlas.resolution import config_table as config_tables
from atlas.resolution.resolve import ids
from atlas.spec import registry
from atlas.spec.config_tables import config_table
from atlas.spec.library import Library
from atlas.spec.registry import Claim

_ID = re.compile(r"[a-z0-9][a-z0-9.:-]*")
_WORD = re.compile(r"[A-Za-z_]\w*")
_RESOLVED = {"rope", "dtype", "context_length", "ffn_dim_multiplier", "original_context", "rope_theta"}
"""Names that `atlas.resolution` itself reads."""


@dataclass(frozen=True, slots=True)
class SpecCheck:
    """The result of `atlas specs check`. Each fault is a sentence that names the file or the id."""

    components: int
    architectures: int
    models: int
    faults: tuple[str, ...]


def check(library: Library) -> SpecCheck:
    """Find every fault, not only the first."""
    faults: list[str] = []

    def attempt(what: Callable[..., object], *arguments: object) -> bool:
        try:
            what(*arguments)
        except AtlasError as error:
            faults.append(error.message)
            return False
        return True

    attempt(lambda: [library.axes, library.sources])
    attempt(lambda: evidence(library.cites, library))
    components = [name for name in library.paths("components") if attempt(library.component, name)]
    architectures = [name for name in library.paths("architectures") if attempt(library.architecture, name)]
    for name in components:
        attempt(_component, library, name)
    attempt(_topics, library)
    for name in architectures:
        faults += [
            f"architectures/{name}.toml: {fault}"
            for fault in registry.unlike(name, library.claims, library.chain(name))
        ]
        attempt(_configs, library, name)
        attempt(_samples, library, name)
    for model_type, claims in library.claims.items():
        attempt(_claims, library, model_type, claims)
    models = 0
    owners: dict[str, spec.Entry] = {}
    for name in library.paths("models"):
        if not attempt(library.family, name):
            continue
        family = library.family(name)
        attempt(_family, family, library)
        for entry in family.models:
            faults += _names_taken(entry, name, owners)
            if entry.architecture is not None:
                models += attempt(_model, family, entry, library)
    return SpecCheck(len(components), len(architectures), models, tuple(dict.fromkeys(faults)))


def _family(family: spec.Family, library: Library) -> None:
    """Check a family's own fields and the ids of its models."""
    if family.follows is not None and (
        family.follows == family.id or family.follows not in library.paths("models")
    ):
        raise SpecError(
            f"models/{family.id}.toml: follows = {family.follows!r}: there is no other family of that id"
        )
    for entry in family.models:
        if not _ID.fullmatch(entry.id):
            raise SpecError(
                f"models/{family.id}.toml: id = {entry.id!r}: expected lower-case letters, digits and . : -"
            )


def _names_taken(entry: spec.Entry, file: str, owners: dict[str, spec.Entry]) -> list[str]:
    """Names of an entry that another entry already has. Two entries may share a Hub id if both are published there."""
    found = []
    for word in sorted(ids(entry)):
        owner = owners.setdefault(word, entry)
        shared = word == (entry.hub_id or "").lower() == (owner.hub_id or "").lower()
        if owner is not entry and not shared:
            found.append(f"models/{file}.toml: {word!r} is already a name of {owner.id}")
    return found


def _topics(library: Library) -> None:
    """Each topic loads, cites what exists, and is about an operation, a component or parts of nodes."""
    for topic in library.topics():
        where = f"topics/{topic.id}.toml"
        if sum(map(bool, (topic.op, topic.component, topic.within))) != 1:
            raise SpecError(f"{where}: expected exactly one of op, component and within")
        if topic.op and topic.op not in operations.OPERATIONS:
            raise SpecError(f"{where}: op = {topic.op!r}: there is no such operation")
        if topic.component and topic.component not in library.paths("components"):
            raise SpecError(f"{where}: component = {topic.component!r}: there is no such component")
        evidence(topic.cites, library)


def _configs(library: Library, name: str) -> None:
    """Refuse a configuration key whose value nothing in the architecture reads, such as a misspelled name.

    Raises:
        SpecError: naming the table, the key and the name it gives.
    """
    architecture = library.architecture(name)
    stacks = architecture.stacks.values()
    nodes = [part.node for part in architecture.graph if part.node is not None]
    nodes += [node for block in architecture.blocks.values() for node in block]
    names = {architecture.instead.get(node.component, node.component) for node in nodes}
    components = {each: library.component(each) for each in names}
    components |= {
        step.use: library.component(step.use)
        for component in list(components.values())
        for step in component.steps
        if step.use
    }
    texts = [*architecture.derived.values(), *(stack.over for stack in stacks)]
    texts += [axis.size for axis in library.axes.values() if axis.size]
    for stack in stacks:
        choices = [choice for slot in stack.layers for choice in slot]
        texts += [text for c in choices for text in (c.first, c.every, c.at, c.when) if text]
        texts += stack.axes.values()
    for node in nodes:
        texts += [*map(str, node.given.values()), *node.axes.values()]
    for variant in architecture.variants.values():
        texts += [
            *variant.axes.values(),
            *(str(value) for given in variant.given.values() for value in given.values()),
        ]
    texts += [str(value) for given in architecture.given.values() for value in given.values()]
    for component in components.values():
        texts += [*map(str, component.params.values()), *component.ports.values()]
        texts += [weight.shape for weight in component.weights.values()]
        texts += [step.shape for step in component.steps]
        texts += [axis for step in component.steps for axis in step.axes.values()]
    read = {word for text in texts for word in _WORD.findall(text)}
    for axis, parts in library.parts.items():
        read |= {axis} if read.intersection(parts) else set(parts) if axis in read else set()
    for kind in (
        claim.table for claims in library.claims.values() for claim in claims if claim.architecture == name
    ):
        table = config_table(architecture, kind)
        texts = [
            text
            for rules in table.patterns.values()
            for rule in rules
            for text in (rule.first, rule.every, rule.when)
            if text
        ]
        texts += [*table.when.values(), *table.rope_kinds.values(), *table.agrees.values()]
        known = read | {word for text in texts for word in _WORD.findall(text)}
        known |= {
            *architecture.flags,
            *architecture.numbers,
            *table.defaults,
            *table.patterns,
            *table.optional,
            *_RESOLVED,
        }
        for key, words in table.used.items():
            for word in [words] if isinstance(words, str) else words:
                if word not in known:
                    raise SpecError(
                        f"architectures/{name}.toml: configs.{kind}.used: {key} gives {word!r}, which nothing reads"
                    )


def _samples(library: Library, name: str) -> None:
    """Bind each sample of an architecture and name its tensors in every convention.

    Raises:
        SpecError: a configuration table of the architecture has no sample.
        AtlasError: a sample cannot be described, bound or named.
    """
    architecture = library.architecture(name)
    if architecture.base:
        return
    samples = library.samples(architecture)
    if not samples:
        raise SpecError(
            f"architectures/{name}.toml: there is no [sample], a small configuration to check it with"
        )
    known = {cites.TOPIC + topic.id for topic in library.topics()}
    read: list[spec.Config] = []
    for id, settings in samples.items():
        read += [
            keys
            for _, keys in config_tables.claimed(
                str(settings.get("model_type")), settings, library, "config.json"
            )
        ]
        model = config.describe(settings, library, id=f"architectures/{name}.toml: sample {id}")
        if model.architecture != name:
            raise SpecError(f"architectures/{name}.toml: sample {id} describes {model.architecture}")
        graph = bind(model, library)
        for convention in graph.architecture.conventions:
            tensors.rows(graph, convention)
        nodes = [node for block in graph.blocks for node in block.nodes]
        known |= {node.id for node in nodes} | {step.id for node in nodes for step in node.steps}
        known |= {weight.component for weight in graph.weights.values()}
    for model_type, claims in library.claims.items():
        for claim in claims:
            if (
                claim.architecture == name
                and claim.file == "config.json"
                and config_table(architecture, claim.table) not in read
            ):
                raise SpecError(
                    f"architectures/{name}.toml: no sample has model_type {model_type[:80]!r}, which configs.{claim.table[:80]} describes"
                )
    evidence(
        [*architecture.cites, *(cite for found in architecture.evidence.values() for cite in found)], library
    )
    for key in architecture.evidence:
        if key not in known:
            raise SpecError(
                f"architectures/{name}.toml: evidence: no sample has a node, weight or step {key[:80]!r}, and no topic is "
                "called so"
            )


def _claims(library: Library, model_type: str, claims: list[Claim]) -> None:
    """Refuse two tables for one `model_type` that nothing tells apart."""
    tables = [
        (claim, config_table(library.architecture(claim.architecture), claim.table)) for claim in claims
    ]
    seen: dict[str, Claim] = {}
    for claim, table in tables:
        other = seen.setdefault(f"{table.file} {sorted(table.where.items())}", claim)
        if other is not claim:
            raise SpecError(
                f"architectures/{claim.architecture}.toml: configs.{claim.table} describes model_type {model_type!r}, "
                f"as architectures/{other.architecture}.toml configs.{other.table} does"
            )


def _component(library: Library, name: str) -> None:
    component = library.component(name)
    inner = [cite for words in (*component.weights.values(), *component.steps) for cite in words.cites]
    evidence([*component.cites, *inner], library)


def _model(family: spec.Family, entry: spec.Entry, library: Library) -> None:
    model = catalogued.describe(family, entry, library)
    graph = bind(model, library)
    for convention in graph.architecture.conventions:
        tensors.rows(graph, convention)
    evidence(
        [*model.cites, *(cite for conflict in model.conflicts for cite in conflict.cites)], library, family.id
    )
