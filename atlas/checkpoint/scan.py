"""A header as tensors, straight from its bytes: no tree of JSON values is built on the way.

Decoded JSON takes up to twenty times the room of its text: of a hostile header, 100 MB of `[],[],[],…`, gigabytes. Here the
entries are matched one by one, each in any order of its fields and with any white space, so that only names, shapes and
offsets are kept in memory. What does not match is left to `atlas.checkpoint.entries`, which reports what is wrong.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from itertools import chain

from atlas.checkpoint import entries
from atlas.checkpoint.distinct import Names, require_once
from atlas.checkpoint.faults import Malformed
from atlas.checkpoint.tensor import MAX_COUNT, Tensor
from atlas.dtypes import BITS

METADATA = "__metadata__"

_W = rb"[ \t\n\r]*+"
_STRING = rb'"((?:[^"\\\x00-\x1f]++|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*+)"'
_PLAIN = rb'"([^"\\\x00-\x1f]*+)"'
_NUMBER = rb"(0|[1-9][0-9]{0,19})"
_DTYPE = rb'"dtype"' + _W + rb":" + _W + rb'"([A-Z0-9_]++)"'
_SHAPE = rb'"shape"' + _W + rb":" + _W + rb"\[([0-9, \t\n\r]*+)\]"
_OFFSETS = (
    rb'"data_offsets"' + _W + rb":" + _W + rb"\[" + _W + _NUMBER + _W + rb"," + _W + _NUMBER + _W + rb"\]"
)
_COMMA, _COLON, _END = _W + rb"," + _W, _W + rb":" + _W, _W + rb"([,}])"


def _entry(name: bytes, *fields: bytes) -> re.Pattern[bytes]:
    return re.compile(_W + name + _COLON + rb"\{" + _W + _COMMA.join(fields) + _W + rb"\}" + _END)


_USUAL = _entry(_PLAIN, _DTYPE, _SHAPE, _OFFSETS)
_ANY_ORDER = _entry(_STRING, *[b"(?:" + b"|".join([_DTYPE, _SHAPE, _OFFSETS]) + b")"] * 3)
_KEY = re.compile(_W + _STRING + _COLON)
_PAIR = re.compile(_W + _STRING + _COLON + _STRING + _END)
_NOTHING = re.compile(_W + rb"\}")
_NULL = re.compile(rb"null" + _END)
_AFTER = re.compile(_END)
_SPACE = re.compile(_W)

_UTF8 = codecs.getincrementaldecoder("utf-8")
_DTYPES = {dtype.encode("ascii"): dtype for dtype in BITS}
_MOST_SHAPES = 10_000
# The files of a model share their shapes, and so do most tensors of a file.
_SHAPES: dict[bytes, tuple[int, ...]] = {b"": ()}
_PIECE_BYTES = 2**16
_MOST_METADATA_BYTES = 2**20
_CHUNK_BYTES = 2**20


class Irregular(Exception):
    """At this byte there is something other than an entry of the usual form."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


def scan(data: bytes, begin: int, end: int) -> tuple[list[Tensor], dict[str, str]]:
    """The tensors of the header between two byte positions, in its order, and the strings under `__metadata__`.

    A name may occur twice in the list. Strings of more than a mebibyte in all are checked and left out.

    Raises:
        Irregular: it is not JSON, or not a header, or one that only `atlas.checkpoint.entries` can read.
        Malformed: a key occurs twice in the metadata.
    """
    if data[begin : begin + 1] != b"{" or not _is_utf8(data, begin, end):
        raise Irregular(begin)
    scanned = _Scan(data, end)
    return scanned.tensors(begin + 1), scanned.metadata or {}


def _is_utf8(data: bytes, begin: int, end: int) -> bool:
    decoder = _UTF8()
    try:
        if end - begin <= _CHUNK_BYTES:
            data[begin:end].decode()
            return True
        for at in range(begin, end, _CHUNK_BYTES):
            stop = min(at + _CHUNK_BYTES, end)
            decoder.decode(data[at:stop], final=stop == end)
    except UnicodeDecodeError:
        return False
    return True


class _Scan:
    def __init__(self, data: bytes, end: int) -> None:
        self.data = data
        self.end = end
        self.metadata: dict[str, str] | None = None

    def tensors(self, at: int) -> list[Tensor]:
        data, end, found = self.data, self.end, list[Tensor]()
        usual, dtypes, shapes = _USUAL.match, _DTYPES, _SHAPES
        mark = b","
        if nothing := _NOTHING.match(data, at, end):
            at, mark = nothing.end(), b"}"
        while mark == b",":
            match = usual(data, at, end)
            if match is None:
                tensor, at, mark = self._unusual(at)
                if tensor is not None:
                    found.append(tensor)
                continue
            raw, kind, text, first, last, mark = match.groups()
            dtype, shape = dtypes.get(kind), shapes.get(text)
            if shape is None:
                shape = self._shape(text, at)
            begin, stop = int(first), int(last)
            if dtype is None or begin > MAX_COUNT or stop > MAX_COUNT or raw == b"__metadata__":
                raise Irregular(at)
            found.append(Tensor(raw.decode(), dtype, shape, begin, stop))
            at = match.end()
        space = _SPACE.match(data, at, end)
        if space is None or space.end() != end:
            raise Irregular(at)
        return found

    def _unusual(self, at: int) -> tuple[Tensor | None, int, bytes]:
        """A tensor with escapes in its name or with its fields in another order, or None for the metadata."""
        match = _ANY_ORDER.match(self.data, at, self.end)
        if match is None:
            key = _KEY.match(self.data, at, self.end)
            if key is not None and self._text(key[1], at) == METADATA:
                return None, *self._metadata(key.end())
            return self._decoded(at)
        raw, *groups, mark = match.groups()
        columns = [[groups[i] for i in range(j, 12, 4) if groups[i] is not None] for j in range(4)]
        name = self._text(raw, at)
        if name == METADATA or any(len(column) != 1 for column in columns):
            raise Irregular(at)
        (kind,), (text,), (first,), (last,) = columns
        dtype, begin, stop = _DTYPES.get(kind), int(first), int(last)
        if dtype is None or begin > MAX_COUNT or stop > MAX_COUNT:
            raise Irregular(at)
        return Tensor(name, dtype, self._shape(text, at), begin, stop), match.end(), mark

    def _decoded(self, at: int) -> tuple[Tensor, int, bytes]:
        """A tensor in another spelling, such as with escapes in the names of its fields."""
        try:
            name, value, stop = entries.member(self.data, at, self.end)
            name.encode()
            tensor = entries.tensor(name, value)
        except (Malformed, UnicodeEncodeError):
            raise Irregular(at) from None
        after = _AFTER.match(self.data, stop, self.end)
        if after is None or name == METADATA:
            raise Irregular(at)
        return tensor, after.end(), after[1]

    def _text(self, raw: bytes, at: int) -> str:
        if b"\\" not in raw:
            return raw.decode()
        text: str = json.loads(b'"%b"' % raw)
        try:
            text.encode()
        except UnicodeEncodeError:  # half of a surrogate pair
            raise Irregular(at) from None
        return text

    def _shape(self, text: bytes, at: int) -> tuple[int, ...]:
        if (known := _SHAPES.get(text)) is not None:
            return known
        try:
            shape = tuple(chain.from_iterable(_numbers(text)))
        except ValueError:
            raise Irregular(at) from None
        if shape and max(shape) > MAX_COUNT:
            raise Irregular(at)
        if len(text) < 100 and len(_SHAPES) < _MOST_SHAPES:
            _SHAPES[text] = shape
        return shape

    def _metadata(self, at: int) -> tuple[int, bytes]:
        """Read the value of `__metadata__` from its first byte; return its end and the character after it."""
        data, end = self.data, self.end
        if self.metadata is not None:
            raise Irregular(at)
        self.metadata = {}
        if null := _NULL.match(data, at, end):
            return null.end(), null[1]
        if data[at : at + 1] != b"{":
            raise Irregular(at)
        first = stop = at + 1
        if nothing := _NOTHING.match(data, first, end):
            stop = nothing.end()
        else:
            strings, count, once = self.metadata, 0, True
            for name, value, stop in self._pairs(first):
                strings[name], count = value, count + 1
                if stop - first > _MOST_METADATA_BYTES:
                    strings.clear()
                    stop = self._many(first)
                    break
            else:
                once = len(strings) == count
            if not once:
                raise Irregular(at)
        after = _AFTER.match(data, stop, end)
        if after is None:
            raise Irregular(at)
        return after.end(), after[1]

    def _many(self, first: int) -> int:
        """Check metadata that is too long to keep in memory (each name once) and return its end."""
        names, stop = Names(), first
        for name, _, end in self._pairs(first):
            names.add(name)
            stop = end
        if twice := names.twice():
            require_once(twice, (name for name, _, _ in self._pairs(first)))
        return stop

    def _pairs(self, at: int) -> Iterator[tuple[str, str, int]]:
        mark = b","
        while mark == b",":
            match = _PAIR.match(self.data, at, self.end)
            if match is None:
                raise Irregular(at)
            name, value, mark = match.groups()
            at = match.end()
            yield self._text(name, at), self._text(value, at), at


def _numbers(text: bytes) -> Iterator[Iterator[int]]:
    """The numbers of a list, each equal one the same object: a shape may have millions."""
    pool: dict[int, int] = {}
    at = 0
    while at < len(text):
        stop = text.find(b",", at + _PIECE_BYTES) if len(text) - at > _PIECE_BYTES else -1
        piece = json.loads(b"[%b]" % text[at : stop if stop >= 0 else len(text)])
        # A piece is empty where there is only white space: all of the list, or a comma with nothing after it.
        if (not piece and (at > 0 or stop >= 0)) or stop == len(text) - 1:
            raise ValueError("a comma too many")
        yield map(pool.setdefault, piece, piece) if len(pool) < 100_000 else iter(piece)
        at = stop + 1 if stop >= 0 else len(text)
