"""One checkpoint compared with one description: which tensors are missing, unexpected, or of another shape.

The causes (`atlas.verification.causes`) are looked for in a `Comparison`. Each cause removes the tensors that it explains, so that no
later one reports them again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field

from atlas.checkpoint.header import Tensor
from atlas.checkpoint.inventory import Inventory
from atlas.graph.conventions import Apart
from atlas.graph.graph import Graph
from atlas.graph.tensors import Row, convention
from atlas.verification.description import Description
from atlas.verification.naming import Naming, layer_of
from atlas.verification.share_joining import join


@dataclass(slots=True, kw_only=True)
class Comparison:
    """Declared and stored tensors. All of them go by their declared names, whatever prefix the files have.

    Attributes:
        needed: name -> row of the tensors that must be stored in the files that were checked.
        found: every stored tensor; joined to a whole if each file holds a share.
        renamed: stored name -> declared name, where the two differ.
        buffers, copies: tensors that are not counted: old buffers, and a stored copy of a tied matrix.
        apart: what they are -> tensors that the forward pass does not use, or that belong to parts that are not described.
        stored_as_copy: matrix that is not stored -> the copy, tied to it, that is stored instead and counts as it.
        missing, unexpected, mismatched: tensors that no cause has explained yet.
        any_dtype: tensors whose dtype needs no further finding.
        unmerged: an adapter's tensors are stored with the model's.
        explained_codes: codes of the files' own findings that a cause explains better.
    """

    description: Description
    naming: Naming
    inventory: Inventory
    needed: Mapping[str, Row]
    found: Mapping[str, Tensor]
    renamed: Mapping[str, str]
    buffers: dict[str, Tensor] = field(default_factory=dict)
    copies: dict[str, Tensor] = field(default_factory=dict)
    apart: dict[str, dict[str, Tensor]] = field(default_factory=dict)
    stored_as_copy: Mapping[str, str] = field(default_factory=dict)
    missing: dict[str, Row] = field(default_factory=dict)
    unexpected: dict[str, Tensor] = field(default_factory=dict)
    mismatched: dict[str, Tensor] = field(default_factory=dict)
    any_dtype: set[str] = field(default_factory=set)
    unmerged: bool = False
    explained_codes: set[str] = field(default_factory=set)

    @property
    def graph(self) -> Graph:
        return self.description.graph

    def ours(self, name: str) -> str:
        """The declared name of a stored one."""
        return self.renamed.get(name, name)

    def row(self, name: str) -> Row:
        """The row that declares a tensor, a tied one included."""
        return self.needed.get(name) or self.naming.table.tied[name]

    def layer(self, name: str) -> int | None:
        """The layer of a declared tensor."""
        return layer_of(name, self.row(name))

    def explained(self, names: Iterable[str]) -> None:
        """Remove these names: a finding explains them."""
        for name in names:
            self.missing.pop(name, None)
            self.unexpected.pop(name, None)
            self.mismatched.pop(name, None)


def compare(description: Description, naming: Naming, inventory: Inventory) -> Comparison:
    """Compare the stored tensors with the declared ones.

    Tensors that may be in an unreadable file are not missing: a finding reports that file already.
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
    stored_as_copy = _stored_as_copy(inventory, needed, tied, found, renamed)
    if stored_as_copy:
        of = {copy: original for original, copy in stored_as_copy.items()}
        renamed = {**renamed, **{found[copy].name: original for copy, original in of.items()}}
        found = {of.get(name, name): tensor for name, tensor in found.items()}
    if inventory.one_of_many:
        needed = {name: row for name, row in needed.items() if name in found}
    if inventory.outside:
        outside = {renamed.get(name, name) for name in inventory.outside} - found.keys()
        needed = {name: row for name, row in needed.items() if name not in outside}
    comparison = Comparison(
        description=description,
        naming=naming,
        inventory=inventory,
        needed=needed,
        found=found,
        renamed=renamed,
        stored_as_copy=stored_as_copy,
    )
    for name, row in needed.items():
        tensor = found.get(name)
        if tensor is None:
            comparison.missing[name] = row
        elif tensor.shape != row.shape:
            comparison.mismatched[name] = tensor
    modules: set[str] | None = None
    buffers = tuple(convention(description.graph, naming.table.convention).buffers)
    apart = Apart(description.graph, naming.table.convention)
    for name, tensor in found.items():
        if name in needed:
            continue
        if name in tied:
            (comparison.copies if tensor.shape == tied[name].shape else comparison.mismatched)[name] = tensor
        else:
            if modules is None:
                modules = _modules(naming)
            if _is_buffer(name, modules, buffers):
                comparison.buffers[name] = tensor
            elif (what := _apart(name, tensor, description, naming, apart)) is not None:
                comparison.apart.setdefault(what, {})[name] = tensor
            else:
                comparison.unexpected[name] = tensor
    if inventory.unread and not inventory.places:
        comparison.missing.clear()
    comparison.explained(map(comparison.ours, inventory.misplaced.in_no_file))
    for file in inventory.unread:
        comparison.explained(map(comparison.ours, inventory.misplaced.in_absent_file.get(file, ())))
    return comparison


def _modules(naming: Naming) -> set[str]:
    """The modules that have declared tensors: `model.layers.0.self_attn`, `model`, and the model itself, with an empty name."""
    modules = {""}
    for name in (*naming.table.needed, *naming.table.tied):
        while (name := name.rpartition(".")[0]) not in modules:
            modules.add(name)
    return modules


OTHER_PARTS = "other parts of the multimodal model, which are not described"


def _apart(name: str, tensor: Tensor, description: Description, naming: Naming, apart: Apart) -> str | None:
    """What an undeclared tensor is if it has no part in the forward pass; None if that is not known."""
    if (what := apart.what(name)) is not None:
        return what
    if not description.graph.model.text_part:
        return None
    begins = naming.inside or {f"{each.partition('.')[0]}." for each in naming.table.needed}
    return None if tensor.name.startswith(tuple(begins)) else OTHER_PARTS


def _is_buffer(name: str, modules: Set[str], buffers: tuple[str, ...]) -> bool:
    """Whether this is an old buffer of a declared module. One of a layer that the model does not have is not."""
    if not name.endswith(buffers):
        # The buffer of the model itself, whose name has no module before it.
        return name in (buffer[1:] for buffer in buffers)
    return any(name.endswith(buffer) and name.removesuffix(buffer) in modules for buffer in buffers)


def _stored_as_copy(
    inventory: Inventory,
    needed: Mapping[str, Row],
    tied: Mapping[str, Row],
    found: Mapping[str, Tensor],
    renamed: Mapping[str, str],
) -> dict[str, str]:
    """Original -> copy, of copies whose original is not stored: safetensors' `save_model` keeps either name of a shared matrix.

    An original that may be in a file that is missing, unreadable or not checked is not replaced.
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
