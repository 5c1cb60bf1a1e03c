"""The classes of the description files: one class for each kind of table under `specs/`, and the library that loads them.

An unknown key, a wrong type or a missing field is an error (`extra="forbid"`, `strict`). Names remain strings here:
`atlas.spec.library` checks them across files, and `atlas.graph.binding` resolves them. May be imported by `evidence`,
`resolution` and every room above them. Imports `grammar` and the ground floor.
"""

from atlas.spec.architectures import (
    Architecture,
    Choice,
    Computes,
    Config,
    Convention,
    Generation,
    Head,
    Input,
    Node,
    Part,
    Row,
    Rule,
    Stack,
    Variant,
    Word,
)
from atlas.spec.axes import Axis
from atlas.spec.bibliography import Bibliography, Cite, Source
from atlas.spec.catalogue import Catalogue, CatalogueEntry, Named
from atlas.spec.components import Component, Step, Weight
from atlas.spec.models import Conflict, Entry, Family, UndescribedKind
from atlas.spec.quantisations import Quantisation
from atlas.spec.table import Note, Spec, Value, Words
from atlas.spec.topics import Topic

__all__ = [
    "Architecture",
    "Axis",
    "Bibliography",
    "Catalogue",
    "CatalogueEntry",
    "Choice",
    "Cite",
    "Component",
    "Computes",
    "Config",
    "Conflict",
    "Convention",
    "Entry",
    "Family",
    "Generation",
    "Head",
    "Input",
    "Named",
    "Node",
    "Note",
    "Part",
    "Quantisation",
    "Row",
    "Rule",
    "Source",
    "Spec",
    "Stack",
    "Step",
    "Topic",
    "UndescribedKind",
    "Value",
    "Variant",
    "Weight",
    "Word",
    "Words",
]
