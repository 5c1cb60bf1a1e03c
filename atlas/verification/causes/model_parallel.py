"""Model-parallel files: each must hold its share of the same tensors, so a missing or surplus file shows in every matrix."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from atlas.checkpoint.findings import Finding, listing
from atlas.verification import formatting
from atlas.verification.comparison import Comparison
from atlas.verification.devices import Devices, Shape, along, devices, pieces, share
from atlas.verification.formatting import shape_text


def wrong_shares(comparison: Comparison) -> Iterator[Finding]:
    """Files with fewer tensors than the others, surplus and missing files, and tensors that are no share."""
    if comparison.inventory.shares and comparison.inventory.headers:
        found = devices(comparison)
        for cause in (_incomplete, _surplus, _absent, _unequal):
            yield from cause(comparison, found)


def _incomplete(comparison: Comparison, found: Devices) -> Iterator[Finding]:
    """A file without tensors that the others have, or without any."""
    inventory = comparison.inventory
    headers = {file: inventory.headers[file] for file in found.files}
    every = {
        name
        for header in headers.values()
        for name in header.tensors
        if comparison.ours(name) in comparison.needed
    }
    holding = [header for header in headers.values() if header.tensors]
    if len(holding) > 1 and sum(len(header.tensors) for header in holding) == len(
        {name for header in holding for name in header.tensors}
    ):
        return  # each tensor is in one file only, so these are no shares
    for file, header in headers.items():
        lacking = sorted(every - header.tensors.keys())
        if not lacking:
            continue
        what = f"lacks {formatting.name_list(lacking)} ({formatting.tensor_count(len(lacking))})"
        if not header.tensors:
            what = f"holds no tensors; {len(lacking):,} are missing"
        yield Finding(
            code="missing",
            tensor=lacking[0] if header.tensors else None,
            file=file,
            count=len(lacking),
            message=f"{file} {what}: the other model-parallel files hold their shares; download it again",
        )
        comparison.explained(map(comparison.ours, lacking))


def _surplus(comparison: Comparison, found: Devices) -> Iterator[Finding]:
    """More files than devices, for example one left over from another checkpoint."""
    inventory = comparison.inventory
    if not found.surplus:
        return
    names = {name for file in found.surplus for name in inventory.headers[file].tensors}
    many = "is one file" if len(found.surplus) == 1 else f"are {len(found.surplus):,} files"
    others = listing(found.files)
    yield Finding(
        code="unexpected",
        file=found.surplus[0],
        expected=found.count,
        found=len(inventory.headers),
        count=max(len(names), 1),
        message=f"{listing(found.surplus)} {many} too many: the matrices are divided over {found.count:,} devices, and {others} "
        "hold all shares; delete files that are left over from another checkpoint",
    )
    kept = {name for file in found.files for name in inventory.headers[file].tensors}
    comparison.explained(
        [*_fitting(comparison, found.count, found.files), *map(comparison.ours, names - kept)]
    )


def _absent(comparison: Comparison, found: Devices) -> Iterator[Finding]:
    """Most matrices lack the same share: the files of that many devices are missing."""
    inventory = comparison.inventory
    names = [name for name in _fitting(comparison, found.count, found.files) if name in comparison.mismatched]
    comparison.explained(names)
    there = len(inventory.headers) + len(inventory.unread)
    every = max(found.count, there + len(inventory.absent))
    if every > there and not found.surplus:
        gone = _other_devices([*inventory.headers, *inventory.unread], every)
        yield Finding(
            code="missing",
            file=gone[0],
            expected=every,
            found=there,
            count=len(names) or every - there,
            message=f"only {there:,} of {every:,} model-parallel files are there; {listing(gone)} {'is' if len(gone) == 1 else 'are'} "
            f"missing, which leaves {formatting.tensor_count(len(names))} incomplete; download the rest",
        )


def _other_devices(files: Collection[str], devices: int) -> list[str]:
    """The names of the missing devices' files: `consolidated.01.safetensors`."""
    some = next(iter(files))
    every = [re.sub(r"\d+", lambda m: str(i).zfill(len(m[0])), some, count=1) for i in range(devices)]  # noqa: B023
    return [file for file in every if file not in files]


def _fitting(comparison: Comparison, count: int, files: tuple[str, ...]) -> list[str]:
    """Tensors of which every file holds the share of one of `count` devices, or the whole if it is declared so."""
    return [
        name
        for name, shares in pieces(comparison, files).items()
        if _odd(shares, comparison.row(name).shape, along(comparison, comparison.row(name)), count)
        == (None, ())
    ]


def _unequal(comparison: Comparison, found: Devices) -> Iterator[Finding]:
    """Tensors that are no share: whole, divided the other way, or not as large as another device's."""
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    parts = pieces(comparison, found.files)
    for name, shares in parts.items():
        row = comparison.row(name)
        how, files = _odd(shares, row.shape, along(comparison, row), found.count)
        if how is not None:
            groups.setdefault((how, files), []).append(name)
    for (how, files), names in groups.items():
        alone = how == _WHOLE and len(names) == sum(
            along(comparison, comparison.row(name)) != () for name in parts
        )
        expected = {
            name: _expected(
                parts[name], comparison.row(name).shape, along(comparison, comparison.row(name)), found.count
            )
            for name in names
        }
        many = f" ({formatting.tensor_count(len(names))})" if len(names) > 1 else ""
        yield Finding(
            code="shape",
            tensor=names[0],
            file=files[0],
            expected=expected[names[0]],
            found=parts[names[0]][files[0]],
            count=len(names),
            message=f"{_differences(comparison, parts, expected, files)}{many} in {listing(files)}; {how}: "
            + (f"keep {files[0]} alone, or download" if alone else "download or convert")
            + " the checkpoint again",
        )
        comparison.explained(names)


def _differences(
    comparison: Comparison,
    parts: Mapping[str, Mapping[str, Shape]],
    expected: Mapping[str, Shape | None],
    files: Collection[str],
) -> str:
    """`a.weight: expected the share [12, 48], found [24, 48]`, for each pair of shapes."""
    pairs: dict[tuple[str, str], list[str]] = {}
    for name, wanted in expected.items():
        found = dict.fromkeys(shape_text(parts[name][file]) for file in files)
        part = "" if wanted == comparison.row(name).shape else "the share "
        expected_text = f"{part}{shape_text(wanted)}" if wanted else "a share"
        pairs.setdefault((expected_text, listing(list(found))), []).append(name)
    return listing(
        [
            f"{formatting.name_list(names)}: expected {wanted}, found {found}"
            for (wanted, found), names in pairs.items()
        ]
    )


_WHOLE = "the whole is stored, but each device should hold only its share"
_ROWS = "divided by columns, but the devices' shares are rows"
_COLUMNS = "divided by rows, but the devices' shares are columns"
_UNEQUAL = "each device should hold an equal share, or the whole of a norm"


def _odd(
    found: Mapping[str, Shape], whole: Shape, dims: tuple[int, ...] | None, count: int
) -> tuple[str | None, tuple[str, ...]]:
    """What is wrong with a tensor's shares, and in which files; (None, ()) if nothing is.

    (None, files) if they are equal but of another size; `causes.shapes` explains these.

    Args:
        found: file -> the shape of its share.
    """
    wanted = _expected(found, whole, dims, count)
    odd = tuple(file for file, shape in found.items() if shape != wanted)
    if not odd:
        return None, ()
    shapes = {found[file] for file in odd}
    if len(found) == 1:
        return None, odd
    if dims and shapes == {whole}:
        return _WHOLE, odd
    if dims and len(dims) == 1 and len(whole) == 2 and shapes == {share(whole, 1 - dims[0], count)}:
        return (_COLUMNS if dims[0] else _ROWS), odd
    return (None if len({*found.values()}) == 1 else _UNEQUAL), odd


def _expected(
    found: Mapping[str, Shape], whole: Shape, dims: tuple[int, ...] | None, count: int
) -> Shape | None:
    """The shape that each file should hold; if several dimensions may be divided, the one that most files' shapes fit.

    None if the size does not divide by the number of devices.
    """
    if dims == ():
        return whole
    shares = [share(whole, d, count) for d in (range(len(whole)) if dims is None else dims)]
    known = [shape for shape in shares if shape is not None] + ([whole] if dims is None else [])
    return max(known, key=lambda shape: sum(shape == other for other in found.values()), default=None)


def unexpected_in_some(comparison: Comparison) -> Iterator[Finding]:
    """Undeclared tensors that only some of the files have."""
    inventory = comparison.inventory
    if not inventory.shares or len(inventory.headers) < 2:
        return
    groups: dict[tuple[str, ...], list[str]] = {}
    for name in comparison.unexpected:
        stored = comparison.found[name].name
        files = tuple(file for file, header in inventory.headers.items() if stored in header.tensors)
        if len(files) < len(inventory.headers):
            groups.setdefault(files, []).append(name)
    for files, names in groups.items():
        first = comparison.unexpected[names[0]]
        many = f" ({formatting.tensor_count(len(names))})" if len(names) > 1 else ""
        yield Finding(
            code="unexpected",
            tensor=names[0],
            file=files[0],
            found=first.shape,
            count=len(names),
            message=f"{formatting.name_list(names)}{many} in {listing(files)}: not declared, and not in "
            "the other model-parallel files; download the file again",
        )
        comparison.explained(names)
