"""Reads the header of one safetensors file and reports every fault in it; no weights are read.

    8 bytes   n, little-endian, at most 100,000,000
    n bytes   JSON in UTF-8: {"__metadata__": {"format": "pt"},
                              "wq": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}, …}
    the rest  the tensors' data without gaps; offsets count from its first byte

The header is a few kilobytes in front of gigabytes, so the first bytes and the size are enough to check a
file, on disk or over HTTP: `examine` is a pure function of these two. It reports all faults;
`parse` and `read_header` raise the first.

A fault's code shows how far the reader got. `pointer`, `header`: there is no readable header, so no
`Header`. `offsets`: the header is readable, and its entries contradict each other. `truncated`,
`trailing`: the entries agree, but the file has another length.

Every file accepted here is accepted by the safetensors library (0.8.0). The library also accepts what is refused here:

- a key that occurs twice in an object. The format forbids it; the library keeps the last value, so a
  tensor is lost silently;
- white space before the `{`. The format forbids it;
- a field other than dtype, shape and data_offsets. The library ignores it;
- an entry of more than 64 KiB with escapes in the names of its fields, in a header of more than 4 MiB;
- an entry written `["F32", [1], [0, 4]]`, or a dtype written `{"F32": null}`. Accidents of how the
  library decodes, which other readers do not share.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from dataclasses import dataclass
from operator import attrgetter

from atlas.checkpoint import entries
from atlas.checkpoint.contradictions import contradictions
from atlas.checkpoint.faults import LENGTH_BYTES, MAX_HEADER_BYTES, Fault, Malformed, not_a_header, show
from atlas.checkpoint.scan import METADATA, Irregular, scan
from atlas.checkpoint.tensor import Header, Tensor
from atlas.errors import CheckpointError

__all__ = [
    "Examined",
    "Fault",
    "Header",
    "Tensor",
    "bytes_needed",
    "examine",
    "examine_file",
    "parse",
    "read_header",
]

# Enough to recognise the format of a file that is not safetensors.
_SIGNATURE_BYTES = 1024


@dataclass(frozen=True, slots=True)
class Examined:
    """A file's header and its faults; the header is there unless a fault is `header` or `pointer`."""

    header: Header | None
    faults: tuple[Fault, ...]


def read_header(path: str | os.PathLike[str]) -> Header:
    """The header of the file at `path`.

    Raises:
        CheckpointError: with the code of the first fault.
    """
    return _sound(examine_file(path))


def examine_file(path: str | os.PathLike[str]) -> Examined:
    """The header of the file at `path` and all its faults; a file that cannot be read is a fault too."""
    # A path need not be text, but a message must be.
    where = os.fspath(path).encode("utf-8", "backslashreplace").decode("utf-8")
    file = -1
    try:
        # O_NONBLOCK: opening a FIFO would otherwise block until another process writes.
        file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            kind = "a folder" if stat.S_ISDIR(found.st_mode) else "not a regular file"
            return Examined(None, (Fault("header", f"{where}: this is {kind}; expected a safetensors file"),))
        file_bytes = found.st_size
        prefix = os.read(file, _SIGNATURE_BYTES)
        wanted = bytes_needed(prefix, file_bytes)
        while len(prefix) < wanted and (more := os.read(file, wanted - len(prefix))):
            prefix += more
    except (OSError, ValueError, MemoryError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or error
        return Examined(None, (Fault("header", f"{where}: the file cannot be read: {reason}"),))
    finally:
        if file >= 0:
            os.close(file)
    return examine(prefix, file_bytes, where)


def bytes_needed(prefix: bytes, file_bytes: int) -> int:
    """How many bytes from its start `examine` needs of a file, once the first eight are known, or better nine.

    Where the ninth shows that no header follows, what the file is instead shows in its first kilobyte.
    """
    stop = LENGTH_BYTES + int.from_bytes(prefix[:LENGTH_BYTES], "little")
    no_header = prefix[LENGTH_BYTES : LENGTH_BYTES + 1] not in (b"", b"{")
    if no_header or stop > min(file_bytes, LENGTH_BYTES + MAX_HEADER_BYTES):
        return min(file_bytes, _SIGNATURE_BYTES)
    return stop


def parse(prefix: bytes, file_bytes: int, where: str) -> Header:
    """Like `examine`, but a file with any fault raises.

    Raises:
        CheckpointError: with the code of the first fault.
    """
    return _sound(examine(prefix, file_bytes, where))


def examine(prefix: bytes, file_bytes: int, where: str) -> Examined:
    """The header of a file and all its faults.

    Args:
        prefix: the first bytes of the file, at least `bytes_needed` of them; more are ignored.
        file_bytes: the size of the whole file.
        where: its name, path or address, for the messages.
    """
    length = int.from_bytes(prefix[:LENGTH_BYTES], "little")
    stop = LENGTH_BYTES + length
    if length > MAX_HEADER_BYTES or len(prefix) < stop or not prefix.startswith(b"{", LENGTH_BYTES):
        return Examined(None, (not_a_header(prefix, file_bytes).at(where),))
    try:
        try:
            tensors, metadata = scan(prefix, LENGTH_BYTES, stop)
        except Irregular as odd:
            if length > entries.MOST_DECODED_BYTES:
                raise _Faulty([_wrong_at(prefix, odd.at, stop, where)]) from None
            tensors, metadata = _decoded(prefix[LENGTH_BYTES:stop], where)
        header = _header(tensors, metadata, length, file_bytes)
    except _Faulty as faulty:
        return Examined(None, faulty.faults)
    except Malformed as wrong:
        return Examined(None, (wrong.at(where),))
    except MemoryError:
        return Examined(
            None, (Malformed(f"the header of {length:,} bytes does not fit in memory").at(where),)
        )
    return Examined(header, contradictions(header, where))


def _header(tensors: list[Tensor], metadata: dict[str, str], header_bytes: int, file_bytes: int) -> Header:
    """The header of these tensors, in any order.

    Raises:
        Malformed: a name occurs twice.
    """
    # Two sorts by integers that exist already; one sort by pairs would have to build the pairs.
    tensors.sort(key=attrgetter("end"))
    tensors.sort(key=attrgetter("begin"))
    by_name = {tensor.name: tensor for tensor in tensors}
    if len(by_name) < len(tensors):
        name, times = Counter(tensor.name for tensor in tensors).most_common(1)[0]
        raise Malformed(f"the header has the name {show(name)} {times:,} times; expected once")
    data_bytes = max((tensor.end for tensor in tensors), default=0)
    return Header(by_name, metadata, header_bytes, data_bytes, file_bytes)


class _Faulty(Exception):
    def __init__(self, faults: list[Fault]) -> None:
        self.faults = tuple(faults)


def _decoded(raw: bytes, where: str) -> tuple[list[Tensor], dict[str, str]]:
    """The tensors and the metadata of a header that is decoded as a whole.

    Raises:
        Malformed: it is not JSON.
        _Faulty: entries are wrong.
    """
    by_name = entries.decode(raw)
    faults: list[Fault] = []
    metadata: dict[str, str] = {}
    try:
        metadata = entries.metadata(by_name.pop(METADATA, None))
    except Malformed as wrong:
        faults.append(wrong.at(where))
    tensors: list[Tensor] = []
    for name, entry in by_name.items():
        try:
            tensors.append(entries.tensor(name, entry))
        except Malformed as wrong:
            faults.append(wrong.at(where, name))
    if faults:
        raise _Faulty(faults)
    return tensors, metadata


def _wrong_at(data: bytes, at: int, end: int, where: str) -> Fault:
    """What is wrong at a byte of a header that is too long to be decoded as a whole."""
    name = None
    try:
        name, value, _ = entries.member(data, at, end)
        if name == METADATA:
            name = None
            entries.metadata(value)
        else:
            entries.tensor(name, value)
    except Malformed as wrong:
        return wrong.at(where, name)
    near = show(data[at : at + 40].decode("utf-8", "replace"))
    return Malformed(f"the header has something wrong or out of place at byte {at:,}, near {near}").at(where)


def _sound(examined: Examined) -> Header:
    for fault in examined.faults:
        raise CheckpointError(fault.message, hint=fault.hint, code=fault.code)
    assert examined.header is not None
    return examined.header
