"""A fault of a checkpoint file as a message, and the recognition of files that are not safetensors.

Two kinds of file are found in place of weights so often that they have a code of their own, `pointer`: Git LFS
pointers, and web pages that a server sent instead of the file. The rest is `header`: other formats (recognised
by their signatures), text, and damaged files.

A safetensors file begins with a length, which may be any eight bytes. So other formats are tried only after the
file has failed to parse as safetensors.
"""

from __future__ import annotations

import re
import reprlib
from dataclasses import dataclass

LENGTH_BYTES = 8
MAX_HEADER_BYTES = 100_000_000
AGAIN = "download the file again"
_DAMAGED = "this is no safetensors file, or its first bytes are damaged"


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with a file: a sentence, what to try, and what `atlas verify` lists of it.

    Attributes:
        code: `pointer`, `header`, `offsets`, `truncated` or `trailing`.
        expected, found: sizes in bytes, or text; None where the message is enough.
        count: the number of faults it covers; the last of many covers those without a message of their own.
    """

    code: str
    message: str
    hint: str = ""
    tensor: str | None = None
    expected: int | str | None = None
    found: int | str | None = None
    count: int = 1


class Malformed(Exception):
    """Raised when a header or an entry cannot be read: a `Fault` whose address is not known yet."""

    def __init__(
        self,
        what: str,
        hint: str = "download the file again; if the published file is the same, the program that wrote it is at fault",
        *,
        code: str = "header",
        expected: int | str | None = None,
        found: int | str | None = None,
    ) -> None:
        super().__init__(what)
        self.what, self.hint, self.code, self.expected, self.found = what, hint, code, expected, found

    def at(self, where: str, tensor: str | None = None) -> Fault:
        message = f"{where}: {self.what}" if tensor is None else f"{where}: tensor {show(tensor)} {self.what}"
        return Fault(self.code, message, self.hint, tensor, self.expected, self.found)


class _Clipped(reprlib.Repr):
    def repr_tuple(self, x: tuple[object, ...], level: int) -> str:
        return "{…}"  # a JSON object, as `entries.decode` gives it


_CLIPPED = _Clipped()
_CLIPPED.maxstring = _CLIPPED.maxother = 100
_CLIPPED.maxlevel = 2


def show(value: object) -> str:
    """A JSON value for a message: quoted, escaped and shortened."""
    return _CLIPPED.repr(value)


def not_a_header(prefix: bytes, file_bytes: int) -> Malformed:
    """The fault of a file whose first bytes are not a length followed by a header of that length that begins with `{`."""
    if not prefix:
        return Malformed("the file is empty", AGAIN, found=0)
    if len(prefix) < LENGTH_BYTES:
        return Malformed(
            f"the file is {len(prefix)} bytes long, {prefix!r}; "
            "a safetensors file begins with 8 that give the length of its header",
            AGAIN,
            found=len(prefix),
        )
    length = int.from_bytes(prefix[:LENGTH_BYTES], "little")
    stop = LENGTH_BYTES + length
    if length <= MAX_HEADER_BYTES and prefix[LENGTH_BYTES:].startswith(b"{"):
        # A file of the right size may still have been cut under the reader's hands.
        found = file_bytes if file_bytes < stop else len(prefix)
        return Malformed(
            f"the file ends inside its header, which takes the first {stop:,} bytes: {found:,} found",
            f"the download stopped early; {AGAIN}",
            expected=stop,
            found=found,
        )
    foreign = _recognise(prefix)
    if foreign:
        return foreign
    if length == 0:
        return Malformed(
            "the length of its header is 0",
            f"a file of zeros is a download whose space was reserved but not filled; {AGAIN}",
            found=0,
        )
    if length > MAX_HEADER_BYTES:
        return Malformed(
            f"the length of its header, {length:,} bytes, is over the limit of {MAX_HEADER_BYTES:,}",
            _DAMAGED,
            expected=MAX_HEADER_BYTES,
            found=length,
        )
    if stop > file_bytes:
        return Malformed(
            f"the length of its header, {length:,} bytes, goes past the end of the file of {file_bytes:,} bytes",
            _DAMAGED,
            expected=stop,
            found=file_bytes,
        )
    begins = prefix[LENGTH_BYTES : LENGTH_BYTES + 20]
    return Malformed(f"the header is not a JSON object: it begins {begins!r}; expected {{ first")


# The versions Git LFS itself reads: today's, and the two from before its release.
_LFS_VERSION = re.compile(
    rb"version (https://git-lfs\.github\.com/spec/|https://hawser\.github\.com/spec/|http://git-media\.io/v/)"
)
_LFS_OID = re.compile(rb"^oid ([a-z0-9]+:[0-9a-f]{1,128})\s*$", re.MULTILINE)
_LFS_SIZE = re.compile(rb"^size ([0-9]{1,20})\s*$", re.MULTILINE)

_FROM_TORCH = (
    "look for the same weights as .safetensors, or convert them: "
    "torch.load(…, weights_only=True), then safetensors.torch.save_file"
)
_FORMATS = (
    (rb"PK\x03\x04", "a ZIP archive, as torch.save writes (.bin, .pt, .pth)", _FROM_TORCH),
    # The protocol (2 to 5), then an opcode that a pickled dict, tuple or number begins with.
    (rb"\x80[\x02-\x05][}\](c\x8a\x95]", "a Python pickle, as torch.save wrote before 1.6", _FROM_TORCH),
    (rb"GGUF", "a GGUF file, as llama.cpp reads", "use the safetensors it was converted from"),
    (rb"\x1f\x8b\x08", "gzip-compressed", "unpack it first: `gunzip`, or `tar -xzf` for a .tar.gz"),
)

_WEB_PAGE = re.compile(r"\ufeff?\s*<(!doctype|!--|\?xml|html|head|body|script)", re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]*>([^<]*)", re.IGNORECASE)
_HUB_PAGE = re.compile(r"([^<>\"]{1,200}?) · ([\w.-]+/[\w.-]+) at \S")
"""The title of the Hub's page about one file: `config.json · owner/name at main`."""
_BINARY = re.compile(r"[\x00-\x08\x0e-\x1f\x7f\ufffd]")


def _recognise(prefix: bytes) -> Malformed | None:
    if _LFS_VERSION.match(prefix):
        size, oid = _LFS_SIZE.search(prefix), _LFS_OID.search(prefix)
        stands_for = int(size[1]) if size else None
        facts = [f"{stands_for:,} bytes"] if stands_for is not None else []
        facts += [oid[1].decode("ascii")] if oid else []
        return Malformed(
            f"the file is a Git LFS pointer, not the weights it stands for ({', '.join(facts) or 'size not stated'})",
            "run `git lfs pull` in its folder, or download the file with `hf download`",
            code="pointer",
            expected=stands_for,
        )
    for signature, what, hint in _FORMATS:
        if re.match(signature, prefix):
            return Malformed(f"the file is {what}, not safetensors", hint)
    text = prefix.decode("utf-8", "replace")
    if _WEB_PAGE.match(text):
        title = _TITLE.search(text)
        if page := _HUB_PAGE.search(text):
            return Malformed(
                f"the file is the Hub's web page about {show(page[1])} in {show(page[2])}, not the file itself",
                "a /blob/ URL gives the page; download the same URL with /resolve/ in place of /blob/",
                code="pointer",
            )
        return Malformed(
            f"the file is a web page that begins {_line(text)}, not weights"
            if title is None
            else f"the file is a web page titled {_line(title[1])}, not weights",
            f"a server sent it instead of the file; {AGAIN}, with a token if the page is about signing in",
            code="pointer",
        )
    # A character split at the end of the prefix is no sign of a binary file, hence not the last one.
    if not text.strip() or _BINARY.search(text, 0, len(text) - 1):
        return None
    kind = "JSON text" if text.lstrip()[0] in "{[" else "text"
    return Malformed(
        f"the file is {kind} that begins {_line(text)}, not safetensors",
        f"a server may have sent it instead of the file; {AGAIN}",
    )


def _line(text: str) -> str:
    return show(" ".join(text.split()))
