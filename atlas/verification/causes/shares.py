"""Meta's model-parallel files: one missing or too many shows in every matrix, and each must hold its share of the same names."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from atlas.checkpoint.findings import Finding, listing
from atlas.verification import words
from atlas.verification.case import Case
from atlas.verification.devices import Devices, Shape, along, devices, pieces, share
from atlas.verification.words import written


def unfit(case: Case) -> Iterator[Finding]:
    """A file that lacks what others hold, one too many or too few, and shares that are none."""
    if case.inventory.shares and case.inventory.headers:
        found = devices(case)
        for cause in (_uneven, _surplus, _absent, _unlike):
            yield from cause(case, found)


def _uneven(case: Case, found: Devices) -> Iterator[Finding]:
    """A file that lacks what the others hold, or holds nothing."""
    inventory = case.inventory
    headers = {file: inventory.headers[file] for file in found.files}
    every = {name for header in headers.values() for name in header.tensors if case.ours(name) in case.needed}
    holding = [header for header in headers.values() if header.tensors]
    if len(holding) > 1 and sum(len(header.tensors) for header in holding) == len(
        {name for header in holding for name in header.tensors}
    ):
        return  # each tensor lies in one file only, so these are no shares
    for file, header in headers.items():
        lacking = sorted(every - header.tensors.keys())
        if not lacking:
            continue
        what = f"lacks {words.together(lacking)} ({words.tensors(len(lacking))}), of which the other"
        if not header.tensors:
            what = f"holds no tensors; of {len(lacking):,} the other"
        yield Finding(
            code="missing",
            tensor=lacking[0] if header.tensors else None,
            file=file,
            count=len(lacking),
            message=f"{file} {what} model-parallel files hold their share; download it again",
        )
        case.explained(map(case.ours, lacking))


def _surplus(case: Case, found: Devices) -> Iterator[Finding]:
    """More files than the matrices are cut over, as when one of another checkpoint was left behind."""
    inventory = case.inventory
    if not found.surplus:
        return
    names = {name for file in found.surplus for name in inventory.headers[file].tensors}
    many = "is one file" if len(found.surplus) == 1 else f"are {len(found.surplus):,} files"
    yield Finding(
        code="unexpected",
        file=found.surplus[0],
        expected=found.count,
        found=len(inventory.headers),
        count=max(len(names), 1),
        message=f"{listing(found.surplus)} {many} too many: the matrices are cut over {found.count:,} devices, whose shares "
        f"{listing(found.files)} hold; remove what is left over from another checkpoint",
    )
    kept = {name for file in found.files for name in inventory.headers[file].tensors}
    case.explained([*_fitting(case, found.count, found.files), *map(case.ours, names - kept)])


def _absent(case: Case, found: Devices) -> Iterator[Finding]:
    """Most matrices are too short by the same share: that many devices' files are not there."""
    inventory = case.inventory
    names = [name for name in _fitting(case, found.count, found.files) if name in case.mismatched]
    case.explained(names)
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
            message=f"{there:,} of {every:,} model-parallel files are there, without {listing(gone)}: incomplete for that "
            f"{words.tensors(len(names))}; download them",
        )


def _other_devices(files: Collection[str], devices: int) -> list[str]:
    """The files of the devices that have none: `consolidated.01.safetensors`."""
    some = next(iter(files))
    every = [re.sub(r"\d+", lambda m: str(i).zfill(len(m[0])), some, count=1) for i in range(devices)]  # noqa: B023
    return [file for file in every if file not in files]


def _fitting(case: Case, count: int, files: tuple[str, ...]) -> list[str]:
    """Tensors of which every file holds the share of one of so many devices, or which are whole in each as declared."""
    return [
        name
        for name, held in pieces(case, files).items()
        if _odd(held, case.row(name).shape, along(case, case.row(name)), count) == (None, ())
    ]


def _unlike(case: Case, found: Devices) -> Iterator[Finding]:
    """Shares that are none: whole, cut the other way, or not as large as another device's."""
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    parts = pieces(case, found.files)
    for name, held in parts.items():
        row = case.row(name)
        how, files = _odd(held, row.shape, along(case, row), found.count)
        if how is not None:
            groups.setdefault((how, files), []).append(name)
    for (how, files), names in groups.items():
        alone = how == _WHOLE and len(names) == sum(along(case, case.row(name)) != () for name in parts)
        expected = {
            name: _expected(parts[name], case.row(name).shape, along(case, case.row(name)), found.count)
            for name in names
        }
        many = f" ({words.tensors(len(names))})" if len(names) > 1 else ""
        yield Finding(
            code="shape",
            tensor=names[0],
            file=files[0],
            expected=expected[names[0]],
            found=parts[names[0]][files[0]],
            count=len(names),
            message=f"{_differences(case, parts, expected, files)}{many} in {listing(files)}; {how}: "
            + (f"keep {files[0]} alone, or download" if alone else "download or convert")
            + " the checkpoint again",
        )
        case.explained(names)


def _differences(
    case: Case,
    parts: Mapping[str, Mapping[str, Shape]],
    expected: Mapping[str, Shape | None],
    files: Collection[str],
) -> str:
    """`a.weight: expected the share [12, 48], found [24, 48]`, for each pair of shapes."""
    pairs: dict[tuple[str, str], list[str]] = {}
    for name, wanted in expected.items():
        found = dict.fromkeys(written(parts[name][file]) for file in files)
        part = "" if wanted == case.row(name).shape else "the share "
        said = f"{part}{written(wanted)}" if wanted else "a share"
        pairs.setdefault((said, listing(list(found))), []).append(name)
    return listing(
        [
            f"{words.together(names)}: expected {wanted}, found {found}"
            for (wanted, found), names in pairs.items()
        ]
    )


_WHOLE = "whole, where each device holds only its share"
_ROWS = "cut by columns, where the devices' shares are rows"
_COLUMNS = "cut by rows, where the devices' shares are columns"
_UNEQUAL = "each device holds an equal share, of a norm the whole"


def _odd(
    held: Mapping[str, Shape], whole: Shape, dims: tuple[int, ...] | None, count: int
) -> tuple[str | None, tuple[str, ...]]:
    """What is wrong with a tensor's shares, and in which files; (None, ()) where nothing is.

    (None, files) where they are alike and of another size: what that means the shapes tell.
    """
    wanted = _expected(held, whole, dims, count)
    odd = tuple(file for file, shape in held.items() if shape != wanted)
    if not odd:
        return None, ()
    shapes = {held[file] for file in odd}
    if len(held) == 1:
        return None, odd
    if dims and shapes == {whole}:
        return _WHOLE, odd
    if dims and len(dims) == 1 and len(whole) == 2 and shapes == {share(whole, 1 - dims[0], count)}:
        return (_COLUMNS if dims[0] else _ROWS), odd
    return (None if len({*held.values()}) == 1 else _UNEQUAL), odd


def _expected(
    held: Mapping[str, Shape], whole: Shape, dims: tuple[int, ...] | None, count: int
) -> Shape | None:
    """What each file should hold: along the dimension that most of them are cut along, where it may be one or another.

    None where so many devices cannot have equal shares.
    """
    if dims == ():
        return whole
    shares = [share(whole, d, count) for d in (range(len(whole)) if dims is None else dims)]
    known = [shape for shape in shares if shape is not None] + ([whole] if dims is None else [])
    return max(known, key=lambda shape: sum(shape == other for other in held.values()), default=None)


def strange(case: Case) -> Iterator[Finding]:
    """What is not declared, and only in some of the files."""
    inventory = case.inventory
    if not inventory.shares or len(inventory.headers) < 2:
        return
    groups: dict[tuple[str, ...], list[str]] = {}
    for name in case.unexpected:
        stored = case.found[name].name
        files = tuple(file for file, header in inventory.headers.items() if stored in header.tensors)
        if len(files) < len(inventory.headers):
            groups.setdefault(files, []).append(name)
    for files, names in groups.items():
        first = case.unexpected[names[0]]
        many = f" ({words.tensors(len(names))})" if len(names) > 1 else ""
        yield Finding(
            code="unexpected",
            tensor=names[0],
            file=files[0],
            found=first.shape,
            count=len(names),
            message=f"{words.together(names)}{many} in {listing(files)}: no such tensor is declared, and "
            "the other model-parallel files have none; download the file again",
        )
        case.explained(names)
