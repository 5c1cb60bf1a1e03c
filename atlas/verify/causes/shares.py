"""Meta's model-parallel files: one of them missing shows in every matrix, and each must hold the same names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator

from atlas.checkpoint.findings import Finding, listing
from atlas.verify import words
from atlas.verify.case import Case
from atlas.verify.joined import is_repeated


def absent(case: Case) -> Iterator[Finding]:
    """Most matrices are too short by the same share: that many devices' files are not there."""
    inventory = case.inventory
    if not inventory.shares or not inventory.headers:
        return
    there = len(inventory.headers)
    short = {
        name: devices
        for name, tensor in case.mismatched.items()
        if (devices := _devices(tensor.shape, case.row(name).shape, there))
    }
    cut = sum(name in case.found and not is_repeated(row) for name, row in case.needed.items())
    devices, many = Counter(short.values()).most_common(1)[0] if short else (0, 0)
    if many * 2 <= cut:
        devices, short = there + len(inventory.unread) + len(inventory.absent), {}
    names = [name for name, count in short.items() if count == devices]
    case.explained(names)
    there += len(inventory.unread)
    if devices > there:
        lost = devices - there
        gone = _other_devices([*inventory.headers, *inventory.unread], devices)
        yield Finding(
            code="missing",
            file=gone[0],
            expected=devices,
            found=there,
            count=len(names) or lost,
            message=f"{there:,} of {devices:,} model-parallel files are there, without {listing(gone)}: incomplete for that "
            f"{words.tensors(len(names))}; download them",
        )


def _other_devices(files: Collection[str], devices: int) -> list[str]:
    """The files of the devices that have none: `consolidated.01.safetensors`."""
    some = next(iter(files))
    every = [re.sub(r"\d+", lambda m: str(i).zfill(len(m[0])), some, count=1) for i in range(devices)]  # noqa: B023
    return [file for file in every if file not in files]


def _devices(found: tuple[int, ...], wanted: tuple[int, ...], there: int) -> int | None:
    """Over how many devices a tensor of which `there` shares were found was cut; None where it is not that."""
    differing = [d for d, (a, b) in enumerate(zip(found, wanted, strict=False)) if a != b]
    if len(found) != len(wanted) or len(differing) != 1:
        return None
    share, rest = divmod(found[differing[0]], there)
    whole = wanted[differing[0]]
    return whole // share if not rest and share and whole % share == 0 and whole // share > there else None


def uneven(case: Case) -> Iterator[Finding]:
    """A file that lacks what the others hold."""
    if not case.inventory.shares:
        return
    headers = case.inventory.headers
    every = {name for header in headers.values() for name in header.tensors}
    for file, header in headers.items():
        lacking = sorted(every - header.tensors.keys())
        if lacking and len(lacking) * 2 < len(every):
            yield Finding(
                code="missing",
                tensor=lacking[0],
                file=file,
                count=len(lacking),
                message=f"{file} lacks {words.together(lacking)} ({words.tensors(len(lacking))}), of which the other "
                "model-parallel files hold their share; download it again",
            )
            case.explained(map(case.ours, lacking))
