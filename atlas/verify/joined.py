"""Meta's model-parallel files joined: what each tensor is when the devices' shares lie side by side.

Every file has the same names. A matrix is cut by its rows or by its columns: by which, the declared shape tells. A vector
along the residual stream is whole on every device; any other is cut as the rows it is added to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from atlas.checkpoint.header import Header, Tensor
from atlas.tensors import Row


def join(
    headers: Mapping[str, Header], declared: Mapping[str, Row], renamed: Mapping[str, str]
) -> dict[str, Tensor]:
    """Stored name -> the whole tensor that its shares make, or the share that does not fit.

    Args:
        renamed: stored name -> the declared one, where the two differ.
    """
    shares: dict[str, list[Tensor]] = {}
    for header in headers.values():
        for name, tensor in header.tensors.items():
            shares.setdefault(name, []).append(tensor)
    return {name: _joined(pieces, declared.get(renamed.get(name, name))) for name, pieces in shares.items()}


def _joined(pieces: Sequence[Tensor], row: Row | None) -> Tensor:
    dtype = "+".join(sorted({piece.dtype for piece in pieces}))
    wanted = row.shape if row else pieces[0].shape
    odd = next((piece for piece in pieces if piece.shape != wanted), None)
    if odd is None:
        return pieces[0]._replace(dtype=dtype)
    shape = (
        None if row is None or is_repeated(row) else _side_by_side([piece.shape for piece in pieces], wanted)
    )
    if shape is None:
        return odd._replace(dtype=dtype)
    return Tensor(odd.name, dtype, shape, 0, sum(piece.end - piece.begin for piece in pieces))


def is_repeated(row: Row) -> bool:
    """Whether every device holds the whole: a vector along the residual stream."""
    return [weight.shape for weight in row.weights] == [(("dim",),)]


def _side_by_side(pieces: Sequence[tuple[int, ...]], wanted: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape that shares make along one dimension: the wanted one, else the nearest to it; None where none fits."""
    first = pieces[0]
    if len(first) != len(wanted):
        return None
    wholes = []
    for d in range(len(wanted)):
        whole = (*first[:d], sum(piece[d] for piece in pieces if len(piece) > d), *first[d + 1 :])
        if all((*piece[:d], first[d], *piece[d + 1 :]) == first for piece in pieces):
            agreeing = sum(length == other for length, other in zip(whole, wanted, strict=True))
            wholes.append((agreeing, whole[d] == wanted[d], whole))
    return max(wholes)[2] if wholes and max(wholes)[0] else None
