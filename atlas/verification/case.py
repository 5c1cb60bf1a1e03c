"""One checkpoint and one description, side by side: what is missing, unexpected, or of another shape.

A `Case` is what the causes are looked for in (`atlas.verification.causes`). Each cause takes out what it explains, so that no
later one says it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field

from atlas.checkpoint.header import Tensor
from atlas.checkpoint.inventory import Inventory
from atlas.graph.graph import Graph
from atlas.graph.tensors import Row, convention
from atlas.verification.beside import Description
from atlas.verification.declared import layer
from atlas.verification.joined import join
from atlas.verification.naming import Naming

BUFFERS = (
    ".rotary_emb.inv_freq", ".rotary_emb.cos_cached", ".rotary_emb.sin_cached", ".inner_attention.rope.freqs", ".rope.freqs",
)  # fmt: skip
"""Tables of the rotation that old files store beside the weights; what reads them computes them anew."""


@dataclass(slots=True, kw_only=True)
class Case:
    """Declared against found, by the declared names, whatever stands before them in the files.

    Attributes:
        needed: what must be there, as far as the files that were asked for go.
        found: every tensor that is there; joined where each file holds a share.
        renamed: stored name -> declared name, where the two differ.
        buffers, copies: what is set aside: old buffers, and a stored copy of a tied matrix.
        standing_in: matrix that is not there -> the copy, tied to it, that is there in its place and counts as it.
        missing, unexpected, mismatched: what no cause has explained yet.
    """

    description: Description
    naming: Naming
    inventory: Inventory
    needed: Mapping[str, Row]
    found: Mapping[str, Tensor]
    renamed: Mapping[str, str]
    buffers: dict[str, Tensor] = field(default_factory=dict)
    copies: dict[str, Tensor] = field(default_factory=dict)
    standing_in: Mapping[str, str] = field(default_factory=dict)
    missing: dict[str, Row] = field(default_factory=dict)
    unexpected: dict[str, Tensor] = field(default_factory=dict)
    mismatched: dict[str, Tensor] = field(default_factory=dict)

    @property
    def graph(self) -> Graph:
        return self.description.graph

    def ours(self, name: str) -> str:
        """The declared name of a stored one."""
        return self.renamed.get(name, name)

    def row(self, name: str) -> Row:
        """What declares a tensor, a tied one included."""
        return self.needed.get(name) or self.naming.table.tied[name]

    def layer(self, name: str) -> int | None:
        """The layer a declared tensor stands in."""
        return layer(name, self.row(name))

    def explained(self, names: Iterable[str]) -> None:
        """These need no other cause."""
        for name in names:
            self.missing.pop(name, None)
            self.unexpected.pop(name, None)
            self.mismatched.pop(name, None)


def case(description: Description, naming: Naming, inventory: Inventory) -> Case:
    """Hold what was found against what is declared.

    What the files' own findings account for is not missing: it may well be in a file that cannot be read.
    """
    needed, tied = naming.table.needed, naming.table.tied
    renamed = naming.renamed(inventory.tensors.keys() | inventory.places.keys())
    found: Mapping[str, Tensor] = inventory.tensors
    if inventory.shares:
        found = join(
            inventory.headers, needed, renamed, convention(description.graph, naming.table.convention)
        )
    if renamed:
        found = {renamed.get(name, name): tensor for name, tensor in found.items()}
    standing_in = _standing_in(inventory, needed, tied, found, renamed)
    if standing_in:
        of = {copy: original for original, copy in standing_in.items()}
        renamed = {**renamed, **{found[copy].name: original for copy, original in of.items()}}
        found = {of.get(name, name): tensor for name, tensor in found.items()}
    if inventory.one_of_many:
        needed = {name: row for name, row in needed.items() if name in found}
    if inventory.outside:
        outside = {renamed.get(name, name) for name in inventory.outside} - found.keys()
        needed = {name: row for name, row in needed.items() if name not in outside}
    made = Case(
        description=description,
        naming=naming,
        inventory=inventory,
        needed=needed,
        found=found,
        renamed=renamed,
        standing_in=standing_in,
    )
    for name, row in needed.items():
        tensor = found.get(name)
        if tensor is None:
            made.missing[name] = row
        elif tensor.shape != row.shape:
            made.mismatched[name] = tensor
    modules: set[str] | None = None
    for name, tensor in found.items():
        if name in needed:
            continue
        if name in tied:
            (made.copies if tensor.shape == tied[name].shape else made.mismatched)[name] = tensor
        else:
            if modules is None:
                modules = _modules(naming)
            (made.buffers if _is_buffer(name, modules) else made.unexpected)[name] = tensor
    if inventory.unread and not inventory.places:
        made.missing.clear()
    made.explained(map(made.ours, inventory.misplaced.in_no_file))
    for file in inventory.unread:
        made.explained(map(made.ours, inventory.misplaced.in_absent_file.get(file, ())))
    return made


def _modules(naming: Naming) -> set[str]:
    """What holds declared tensors: `model.layers.0.self_attn`, `model`, and the model itself, whose name is empty."""
    modules = {""}
    for name in (*naming.table.needed, *naming.table.tied):
        while (name := name.rpartition(".")[0]) not in modules:
            modules.add(name)
    return modules


def _is_buffer(name: str, modules: Set[str]) -> bool:
    """Whether a name is an old buffer's, of a module that is there: one of a layer beyond the last is not."""
    if not name.endswith(BUFFERS):
        # No module stands before it.
        return name in (buffer[1:] for buffer in BUFFERS)
    return any(name.endswith(buffer) and name.removesuffix(buffer) in modules for buffer in BUFFERS)


def _standing_in(
    inventory: Inventory,
    needed: Mapping[str, Row],
    tied: Mapping[str, Row],
    found: Mapping[str, Tensor],
    renamed: Mapping[str, str],
) -> dict[str, str]:
    """Copies whose original is nowhere: `save_model` of safetensors keeps one of the names of a shared matrix, either.

    One that may lie in a file that is not there, not read or not asked for is not replaced.
    """
    if inventory.absent or inventory.unread or inventory.one_of_many:
        return {}
    originals = {row.weights[0].id: name for name, row in needed.items() if row.tied_to is None}
    pairs = {
        originals.get(row.tied_to.id, ""): name
        for name, row in tied.items()
        if name in found and row.tied_to is not None and found[name].shape == row.shape
    }
    gone = {original: copy for original, copy in pairs.items() if original and original not in found}
    placed = {renamed.get(name, name) for name in inventory.places} if gone else set()
    return {original: copy for original, copy in gone.items() if original not in placed}
