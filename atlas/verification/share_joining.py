"""Join model-parallel files: the whole tensor that the devices' shares make.

Every file has the same names. A matrix is divided by rows or by columns: the convention states which, and if it does not, the
declared shape decides. A vector along the residual stream is whole on every device; any other is divided like the rows it is
added to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from atlas import spec
from atlas.checkpoint.header import Header, Tensor
from atlas.graph.tensors import Row

_DIMS = {"rows": (0,), "columns": (1,), "either": (0, 1)}


def join(
    headers: Mapping[str, Header],
    declared: Mapping[str, Row],
    renamed: Mapping[str, str],
    convention: spec.Convention,
) -> dict[str, Tensor]:
    """Stored name -> the whole tensor that its shares make, or the share that does not fit.

    Args:
        renamed: stored name -> declared name, where the two differ.
        convention: states how tensors are divided.
    """
    shares: dict[str, list[Tensor]] = {}
    for header in headers.values():
        for name, tensor in header.tensors.items():
            shares.setdefault(name, []).append(tensor)
    joined = {}
    for name, pieces in shares.items():
        row = declared.get(renamed.get(name, name))
        joined[name] = _joined(pieces, row, cut_along(row, convention) if row else ())
    return joined


def cut_along(row: Row, convention: spec.Convention) -> tuple[int, ...] | None:
    """The dimensions a tensor may be divided along; empty if every device holds the whole, None if the convention does not say."""
    if is_repeated(row):
        return ()
    entry = convention.tensors[row.template.text]
    cut = entry.cut if isinstance(entry, spec.Row) else None
    return None if cut is None else tuple(d for d in _DIMS[cut] if d < len(row.shape))


def is_repeated(row: Row) -> bool:
    """Whether every device holds the whole: a vector along the residual stream."""
    return [weight.shape for weight in row.weights] == [(("dim",),)]


def _joined(pieces: Sequence[Tensor], row: Row | None, dims: tuple[int, ...] | None) -> Tensor:
    dtype = "+".join(sorted({piece.dtype for piece in pieces}))
    wanted = row.shape if row else pieces[0].shape
    odd = next((piece for piece in pieces if piece.shape != wanted), None)
    if odd is None and (not dims or len(pieces) == 1):
        return pieces[0]._replace(dtype=dtype)
    first = odd or pieces[0]
    shape = None if dims == () else _side_by_side([piece.shape for piece in pieces], wanted, dims)
    if shape is None:
        return first._replace(dtype=dtype)
    return Tensor(first.name, dtype, shape, 0, sum(piece.end - piece.begin for piece in pieces))


def _side_by_side(
    pieces: Sequence[tuple[int, ...]], wanted: tuple[int, ...], dims: tuple[int, ...] | None
) -> tuple[int, ...] | None:
    """The shape that shares make along one dimension: the wanted one, else the nearest to it; None if none fits.

    Args:
        dims: the dimensions to try; None for all, keeping a whole only if it has the wanted length along some dimension.
    """
    first = pieces[0]
    if len(first) != len(wanted):
        return None
    wholes = []
    for d in range(len(wanted)) if dims is None else dims:
        whole = (*first[:d], sum(piece[d] for piece in pieces if len(piece) > d), *first[d + 1 :])
        if all((*piece[:d], first[d], *piece[d + 1 :]) == first for piece in pieces):
            agreeing = sum(length == other for length, other in zip(whole, wanted, strict=True))
            wholes.append((agreeing, whole[d] == wanted[d], whole))
    return max(wholes)[2] if wholes and (dims or max(wholes)[0]) else None
