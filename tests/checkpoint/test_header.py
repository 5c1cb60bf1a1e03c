"""One test per way a header can be wrong, and per way it can be unusual and right.

Each wrong file is a sound one with one thing changed, so that its row fails when that fault is not
seen, is called something else, or is told twice. The library is asked about every row.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import time
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from safetensors import SafetensorError, deserialize

from atlas.checkpoint.header import Tensor, bytes_needed, examine, examine_file, parse, read_header
from atlas.dtypes import BITS
from atlas.errors import CheckpointError


def packed(header: Any, data_bytes: int = 0) -> bytes:
    """A file of that header (JSON, or what is to become it) and so many bytes of data."""
    text = header if isinstance(header, str | bytes) else json.dumps(header)
    raw = text.encode() if isinstance(text, str) else text
    return len(raw).to_bytes(8, "little") + raw + bytes(data_bytes)


def entry(dtype: Any = "F32", shape: Any = (1,), begin: Any = 0, end: Any = 4) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def one(dtype: Any = "F32", shape: Any = (1,), begin: Any = 0, end: Any = 4, data_bytes: int = 4) -> bytes:
    """A file of one tensor, `a`."""
    return packed({"a": entry(dtype, shape, begin, end)}, data_bytes)


def offsets(value: Any) -> bytes:
    return packed({"a": {**entry(), "data_offsets": value}}, 4)


def two(begin: int, end: int, data_bytes: int) -> bytes:
    """A file of `a`, eight bytes from 0, and `b` where the offsets say."""
    return packed({"a": entry("F32", [2], 0, 8), "b": entry("U8", [end - begin], begin, end)}, data_bytes)


def zipped() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("archive/data.pkl", b"weights")
    return buffer.getvalue()


A = '"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'
LFS = b"""version https://git-lfs.github.com/spec/v1
oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393
size 207840
"""

# fmt: off
# What is wrong: the file, the code, the words its message or its hint must have.
WRONG: dict[str, tuple[bytes, str, list[str]]] = {
    # before the header
    "empty": (b"", "header", ["empty"]),
    "seven bytes": (bytes(7), "header", ["7 bytes long", "begins with 8"]),
    "length 0": (bytes(100), "header", ["length of its header is 0", "zeros"]),
    "length past the file": ((5000).to_bytes(8, "little") + b"\xff" * 50, "header", ["5,000 bytes, goes past the end", "58 bytes"]),
    "length over the limit": ((100_000_001).to_bytes(8, "little") + b"{}", "header", ["100,000,001 bytes", "limit of 100,000,000"]),
    "length absurd": (b"\xff" * 8 + b"{}", "header", ["18,446,744,073,709,551,615 bytes", "limit"]),
    "cut inside the header": (packed('{"a":1}'.ljust(50))[:40], "header", ["ends inside its header", "first 58 bytes", "40 found"]),
    # not JSON
    "not UTF-8": (packed(b'{"\xff":1}'), "header", ["not UTF-8", "byte 2 is 0xff"]),
    "not JSON": (packed('{"a":,}'), "header", ["not JSON", "at byte 5", """near '{"a":,}'"""]),
    "not JSON after a letter of two bytes": (packed('{"é":,}'), "header", ["not JSON", "at byte 6"]),
    "text after it": (packed("{} x"), "header", ["not JSON", "Extra data at byte 3"]),
    "NUL after it": (packed("{}\0"), "header", ["not JSON", "Extra data at byte 2"]),
    "byte order mark": (packed(b"\xef\xbb\xbf{}"), "header", ["not a JSON object", "xef"]),
    "array": (packed("[]"), "header", ["not a JSON object", "[]"]),
    "string": (packed('"a"'), "header", ["not a JSON object"]),
    "control character": (packed('{"\x01":1}'), "header", ["not JSON", "control character"]),
    "surrogate in a name": (packed('{"\\ud800":1}'), "header", ["half of a surrogate pair", "ud800"]),
    "surrogate in metadata": (packed('{"__metadata__":{"k":"\\udc00"}}'), "header", ["half of a surrogate pair", "udc00"]),
    "nested too deeply": (packed('{"a":' + "[" * 100_000), "header", ["nested too deeply"]),
    "5,000 digits": (packed('{"a":' + "9" * 5000 + "}"), "header", ["number out of range"]),
    # metadata
    "metadata a list": (packed({"__metadata__": ["pt"]}), "header", ["__metadata__ is ['pt']", "object of strings"]),
    "metadata a number": (packed({"__metadata__": {"k": 1}}), "header", ["__metadata__ has 1 under 'k'", "a string"]),
    "metadata null inside": (packed({"__metadata__": {"k": None}}), "header", ["__metadata__ has None under 'k'"]),
    "metadata twice": (packed('{"__metadata__":{},"__metadata__":{}}'), "header", ["'__metadata__' 2 times"]),
    # entries
    "entry a number": (packed({"a": 1}), "header", ["tensor 'a' is 1;", "an object"]),
    "entry NaN": (packed('{"a":NaN}'), "header", ["tensor 'a' is nan;", "an object"]),
    "entry null": (packed({"a": None}), "header", ["tensor 'a' is None;", "an object"]),
    "entry empty": (packed({"a": {}}), "header", ["'a' has no data_offsets and no dtype and no shape;"]),
    "field missing": (packed({"a": {"dtype": "F32", "data_offsets": [0, 4]}}, 4), "header", ["'a' has no shape;"]),
    "field misspelt": (packed({"a": {"dtype": "F32", "shapes": [1], "data_offsets": [0, 4]}}, 4), "header", ["'a' has no shape and an unknown field 'shapes'"]),
    "field twice": (packed('{"a":{"shape":[1],' + A[5:] + "}", 4), "header", ["'a' has the field 'shape' 2 times"]),
    "field twice, one missing": (packed('{"a":{"dtype":"F32","dtype":"F32","shape":[1]}}'), "header", ["'a' has the field 'dtype' 2 times"]),
    # dtypes
    "dtype unknown": (one("F7"), "header", ["'a' has dtype 'F7'", "known are BOOL, F4"]),
    "dtype of torch": (one("bfloat16"), "header", ["'a' has dtype 'bfloat16'", "writes BF16"]),
    "dtype a number": (one(32), "header", ["'a' has dtype 32,"]),
    "dtype a list": (one(["F32"]), "header", ["'a' has dtype ['F32'],"]),
    # shapes
    "shape a number": (one(shape=1), "header", ["'a' has shape 1;", "list of dimensions"]),
    "shape null": (one(shape=None), "header", ["'a' has shape None;"]),
    "dimension negative": (one(shape=[-1]), "header", ["'a' has dimension -1 in shape [-1]", "integers from 0"]),
    "dimensions negative, product right": (one(shape=[-1, -1]), "header", ["dimension -1 in shape [-1, -1]"]),
    "dimension minus zero": (packed('{"a":{"dtype":"F32","shape":[-0],"data_offsets":[0,0]}}'), "header", ["dimension -0.0 in"]),
    "dimension a float": (one(shape=[1.0]), "header", ["dimension 1.0 in"]),
    "dimension true": (one(shape=[True]), "header", ["dimension True in"]),
    "dimension a string": (one(shape=["1"]), "header", ["dimension '1' in"]),
    "dimension a list": (one(shape=[[1]]), "header", ["dimension [1] in"]),
    "dimension of 65 bits": (one(shape=[0, 2**64], end=0, data_bytes=0), "header", ["dimension 18446744073709551616 in"]),
    "elements overflow": (one(shape=[2**63, 2]), "offsets", ["overflow", "9223372036854775808, 2]"]),
    "elements overflow, then zero": (one(shape=[2**32, 2**32, 0], end=0, data_bytes=0), "offsets", ["overflow", "4294967296, 0]"]),
    "bits overflow": (one("U8", [2**61], end=2**61), "offsets", ["overflow", "[2305843009213693952] of U8"]),
    "shape against offsets": (one(shape=[2]), "offsets", ["shape [2] of F32", "takes 8 bytes", "span 4"]),
    "dtype against offsets": (one("F64"), "offsets", ["shape [1] of F64", "takes 8 bytes", "span 4"]),
    "half a byte": (one("F4", [3], end=2, data_bytes=2), "offsets", ["shape [3] of F4", "12 bits, not whole bytes"]),
    "a quarter of a byte": (one("F6_E2M3", [3], end=2, data_bytes=2), "offsets", ["18 bits, not whole bytes"]),
    # offsets
    "offsets a number": (offsets(4), "header", ["'a' has data_offsets 4;", "begin and an end"]),
    "offsets one": (offsets([4]), "header", ["data_offsets [4];", "begin and an end"]),
    "offsets three": (offsets([0, 4, 4]), "header", ["data_offsets [0, 4, 4];", "begin and an end"]),
    "offset negative": (offsets([-4, 0]), "header", ["data_offsets [-4, 0]; expected integers"]),
    "offset a float": (offsets([0, 4.0]), "header", ["data_offsets [0, 4.0]; expected integers"]),
    "offset false": (offsets([False, 4]), "header", ["data_offsets [False, 4]; expected integers"]),
    "offset of 65 bits": (offsets([0, 2**64]), "header", ["data_offsets [0, 18446744073709551616]; expected integers"]),
    "end before begin": (offsets([8, 4]), "offsets", ["'a' begins at byte 8", "ends before that, at 4"]),
    "first not at 0": (one(begin=4, end=8, data_bytes=8), "offsets", ["'a' begins at byte 4", "expected 0", "first"]),
    "hole": (two(12, 16, 16), "offsets", ["'b' begins at byte 12", "4 after the end of 'a'", "unused bytes"]),
    "overlap": (two(6, 12, 12), "offsets", ["'b' begins at byte 6", "overlaps 'a', which ends at 8"]),
    "inside another": (two(2, 4, 8), "offsets", ["'b' begins at byte 2", "overlaps 'a'"]),
    "empty and inside another": (two(4, 4, 8), "offsets", ["'b' begins at byte 4", "overlaps 'a'"]),
    "in the same place": (two(0, 8, 8), "offsets", ["'b' begins at byte 0", "overlaps 'a'"]),
    # the size of the file
    "truncated": (two(8, 12, 10), "truncated", ["truncated", "2 too few", "1 of 2 tensors: 'b'"]),
    "truncated before the data": (two(8, 12, 0), "truncated", ["12 too few", "2 of 2 tensors: 'a', 'b'"]),
    "trailing": (two(8, 12, 15), "trailing", ["surplus of 3"]),
    "trailing, no tensors": (packed({}, 1), "trailing", ["data ends at byte 10", "surplus of 1"]),
    # something else
    "LFS pointer": (LFS, "pointer", ["Git LFS pointer", "207,840 bytes", "sha256:4d7a21", "git lfs pull", "hf download"]),
    "LFS pointer, CRLF": (LFS.replace(b"\n", b"\r\n"), "pointer", ["Git LFS pointer", "207,840 bytes", "sha256:4d7a21"]),
    "LFS pointer, cut": (LFS[:43], "pointer", ["Git LFS pointer", "size not stated"]),
    "web page": ("\n<!DOCTYPE html><title>\nLog in – Hub</title>".encode(), "pointer", ["web page titled 'Log in – Hub'", "token"]),
    "web page, no title": (b"<HTML><body>Not found", "pointer", ["web page that begins '<HTML><body>Not found'"]),
    "refusal of S3": (b'<?xml version="1.0"?><Error><Code>AccessDenied', "pointer", ["AccessDenied"]),
    "JSON of a server": (b'{"error": "Repository not found"}', "header", ["JSON text", "Repository not found", "server"]),
    "text of a server": ("Accès refusé".encode(), "header", ["is text", "Accès refusé"]),
    "ZIP": (zipped(), "header", ["ZIP archive", "torch.save", "weights_only=True"]),
    "pickle": (pickle.dumps({"a": 1}, protocol=2), "header", ["Python pickle", "weights_only=True"]),
    "pickle, protocol 5": (pickle.dumps({"a": 1}, protocol=5), "header", ["Python pickle"]),
    "GGUF": (b"GGUF\x03\0\0\0" + bytes(100), "header", ["GGUF", "llama.cpp"]),
    "gzip": (gzip.compress(b"weights"), "header", ["gzip", "gunzip"]),
}

# What the library reads and we refuse, for the reasons in header.py's docstring.
STRICTER: dict[str, tuple[bytes, str]] = {
    "name twice": (packed(f"{{{A},{A}}}", 4), "the name 'a' 2 times"),
    "metadata key twice": (packed('{"__metadata__":{"k":"1","k":"2"}}'), "__metadata__ has the key 'k' 2 times"),
    "white space first": (packed(f" {{{A}}}", 4), "expected { first"),
    "unknown field": (packed({"a": {**entry(), "layout": "C"}}, 4), "'a' has an unknown field 'layout'"),
    "entry an array": (packed({"a": ["F32", [1], [0, 4]]}, 4), "'a' is ['F32', [1], [0, 4]]"),
    "dtype an object": (one({"F32": None}), "'a' has dtype {…}"),
}

RIGHT: dict[str, bytes] = {
    "one tensor": one(),
    "no tensors": packed({}),
    "only metadata": packed({"__metadata__": {"format": "pt"}}),
    "metadata last": packed({"a": entry(), "__metadata__": {"a": "b"}}, 4),
    "metadata null": packed({"__metadata__": None, "a": entry()}, 4),
    "scalar": one(shape=[]),
    "empty tensor": one(shape=[3, 0, 2], end=0, data_bytes=0),
    "empty tensors between": packed({"a": entry(), "b": entry("I8", [0], 4, 4), "c": entry("F64", [0], 0, 0)}, 4),
    "zero before what would overflow": one(shape=[0, 2**63, 2**64 - 1], end=0, data_bytes=0),
    "not in the order of the data": packed({"b": entry(begin=4, end=8), "a": entry()}, 8),
    "unaligned header": packed(f"{{{A}}}", 4),
    "unaligned data": packed({"a": entry("U8", [1], 0, 1), "b": entry("F64", [1], 1, 9)}, 9),
    "spaces after": packed(f"{{{A}}}       ", 4),
    "white space within and after": packed(f"{{\n\t{A}\r\n}}\n", 4),
    "escapes in a name": packed('{"\\u0061\\/\\ud83d\\ude00\\"' + A[2:] + "}", 4),
    "any name": packed({"": entry(), "é😀\x7f -0": entry(begin=4, end=8)}, 8),
    "fields in another order": packed('{"a":{"data_offsets":[0,4],"shape":[1],"dtype":"F32"}}', 4),
    **{f"dtype {code}": one(code, [2, 4], end=bits, data_bytes=bits) for code, bits in BITS.items()},
}
# fmt: on


def refusal(file: bytes) -> CheckpointError:
    with pytest.raises(CheckpointError) as caught:
        parse(file, len(file), "model.safetensors")
    return caught.value


def library_reads(file: bytes) -> bool:
    try:
        deserialize(file)
    except SafetensorError:
        return False
    return True


@pytest.mark.parametrize(("file", "code", "words"), WRONG.values(), ids=WRONG)
def test_wrong(file: bytes, code: str, words: list[str]) -> None:
    error = refusal(file)
    assert error.code == code
    assert error.message.startswith("model.safetensors: ")
    assert [word for word in words if word not in f"{error.message} | {error.hint}"] == []
    assert len(examine(file, len(file), "model.safetensors").faults) == 1, "one cause is one fault"
    assert not library_reads(file), "then it belongs in STRICTER"


@pytest.mark.parametrize(("file", "words"), STRICTER.values(), ids=STRICTER)
def test_stricter_than_the_library(file: bytes, words: str) -> None:
    error = refusal(file)
    assert error.code == "header"
    assert words in error.message
    assert library_reads(file), "then it belongs in WRONG"


@pytest.mark.parametrize("file", RIGHT.values(), ids=RIGHT)
def test_right(file: bytes) -> None:
    header = parse(file, len(file), "model.safetensors")
    found = {t.name: (list(t.shape), t.dtype, t.end - t.begin) for t in header.tensors.values()}
    assert found == {name: (t["shape"], t["dtype"], len(t["data"])) for name, t in deserialize(file)}
    begins = [t.begin for t in header.tensors.values()]
    assert begins == sorted(begins)
    assert header.data_start + header.data_bytes == header.file_bytes == len(file)


def test_what_a_header_holds(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    wq = np.arange(6, dtype=np.float32).reshape(2, 3)
    safetensors.numpy.save_file({"norm": np.ones(3, np.float16), "wq": wq}, path, metadata={"format": "np"})
    header = read_header(path)
    expected = [Tensor("wq", "F32", (2, 3), 0, 24), Tensor("norm", "F16", (3,), 24, 30)]
    assert list(header.tensors.values()) == expected
    assert list(header.tensors) == ["wq", "norm"]
    assert header.metadata == {"format": "np"}
    assert path.read_bytes()[header.data_start :][0:24] == wq.tobytes()


def test_a_truncated_file_has_a_header_and_names_what_is_cut() -> None:
    names = [f"layers.{i}" for i in range(9)]
    file = packed({name: entry(begin=4 * i, end=4 * i + 4) for i, name in enumerate(names)}, 36)
    found = examine(file[:-18], len(file) - 18, "model.safetensors")
    assert found.header is not None
    assert list(found.header.tensors) == names
    (fault,) = found.faults
    assert (fault.code, fault.expected, fault.found) == ("truncated", len(file), len(file) - 18)
    assert "5 of 9 tensors: 'layers.4', 'layers.5', 'layers.6' and 2 more" in fault.message


def test_an_empty_tensor_past_the_cut_is_not_cut() -> None:
    file = packed({"a": entry(), "b": entry("U8", [0], 4, 4)}, 2)
    assert "1 of 2 tensors: 'a'" in refusal(file).message


def test_truncated_and_trailing_share_no_words() -> None:
    def words(file: bytes) -> set[str]:
        error = refusal(file)
        said = f"{error.message} {error.hint.split(';')[0]}".replace(":", " ").replace(",", " ").split()
        return {word for word in said if word.isalpha()}

    assert words(WRONG["truncated"][0]) & words(WRONG["trailing"][0]) <= {"the", "of", "or"}


def test_every_fault_is_reported_not_only_the_first() -> None:
    def faults(header: dict[str, Any], data_bytes: int) -> list[tuple[str, str | None]]:
        file = packed(header, data_bytes)
        return [(fault.code, fault.tensor) for fault in examine(file, len(file), "x").faults]

    unreadable = {"__metadata__": {"k": 1}, "a": entry("F7"), "b": entry(shape=[-1]), "c": entry()}
    assert faults(unreadable, 4) == [("header", None), ("header", "a"), ("header", "b")]
    contradictory = {"a": entry(shape=[2]), "b": entry(begin=4, end=8), "c": entry(begin=12, end=16)}
    assert faults(contradictory, 17) == [("offsets", "a"), ("offsets", "c"), ("trailing", None)]


@pytest.mark.parametrize("end", [2, 6, 9, 2**40])
@pytest.mark.parametrize("names", ["ab", "abc"])
def test_one_wrong_offset_is_one_fault(end: int, names: str) -> None:
    """Not also an overlap or a hole with the next tensor, nor a file of the wrong size."""
    entries = {"a": entry(), "b": entry(begin=4, end=end), "c": entry(begin=8, end=12)}
    file = packed({name: entries[name] for name in names}, 4 * len(names))
    found = examine(file, len(file), "x")
    assert [(fault.code, fault.tensor) for fault in found.faults] == [("offsets", "b")]
    assert found.header is not None


def test_messages_stay_short() -> None:
    long = "n" * 1_000_000
    dims = [2] * 100_000
    wide: Any = 0
    for _ in range(6):
        wide = [wide] * 6
    wrong = [entry(long), entry(shape=[long]), entry(shape=[*dims, -1]), entry(shape=dims), {long: 1}, wide]
    files = [packed({long: value}, 4) for value in wrong]
    files += [
        packed(f'{{"{long}":'),
        packed({"__metadata__": {long: dims}}),
        packed(f'{{"{long}":1,"{long}":1}}'),
    ]
    files += [f"<html><title>{long}".encode(), long.encode(), LFS + long.encode()]
    assert [len(refusal(file).message) for file in files if len(refusal(file).message) > 500] == []


def test_a_true_header_is_never_taken_for_something_else() -> None:
    """Its length may be what another format begins with."""
    for signature in (b"\x1f\x8b\x08", b"\x80\x02\x5d"):
        file = packed("{}".ljust(int.from_bytes(signature, "little")))
        assert file.startswith(signature)
        assert parse(file, len(file), "x").tensors == {}
        assert "ends inside its header" in refusal(file[:20]).message


def test_a_header_over_the_limit_is_refused_though_it_is_all_there() -> None:
    assert "limit" in refusal(packed(b"{}".ljust(100_000_001))).message


def test_the_first_bytes_and_the_size_are_enough() -> None:
    """As a reader over HTTP has them."""
    header = {"a": entry("BF16", [1000, 1000], 0, 2_000_000), "__metadata__": {"k": "v" * 5000}}
    file = packed(header, 2_000_000)
    needed = bytes_needed(file[:8], len(file))
    assert needed == len(packed(header))
    assert parse(file[:needed], len(file), "https://host/x") == parse(file, len(file), "https://host/x")
    with pytest.raises(CheckpointError, match="ends inside its header"):
        parse(file[: needed - 1], len(file), "https://host/x")


@pytest.mark.parametrize(
    "row", ["length absurd", "length over the limit", "LFS pointer", "web page", "empty"]
)
def test_what_is_not_safetensors_needs_few_bytes(row: str) -> None:
    file = WRONG[row][0]
    size = len(file) and 10**10
    needed = bytes_needed(file[:8], size)
    assert needed <= 4096
    assert examine(file[:needed], size, "x").faults[0].code == WRONG[row][1]


def test_sixteen_gigabytes_are_judged_by_their_first_bytes(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    entries = {f"layers.{i}": entry("BF16", [2**26, 16], i * 2**31, (i + 1) * 2**31) for i in range(8)}
    path.write_bytes(packed(entries))
    size = path.stat().st_size + 2**34
    os.truncate(path, size)
    tracemalloc.start()
    started = time.perf_counter()
    header = read_header(path)
    seconds, peak_bytes = time.perf_counter() - started, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (header.data_bytes, header.file_bytes) == (2**34, size)
    assert peak_bytes < 1_000_000
    assert seconds < 1


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: None, "No such file"),
        (lambda path: path.mkdir(), "a folder"),
        (lambda path: os.mkfifo(path), "not a regular file"),
        (lambda path: path.symlink_to(path), "cannot be read"),
        (lambda path: path.write_bytes(b""), "empty"),
        (lambda path: path.write_bytes(LFS), "Git LFS pointer"),
    ],
    ids=["missing", "folder", "FIFO", "link to itself", "empty", "pointer"],
)
def test_paths_that_hold_no_weights(tmp_path: Path, make: Any, words: str) -> None:
    path = tmp_path / "model.safetensors"
    try:
        make(path)
    except (AttributeError, OSError) as error:
        pytest.skip(f"cannot be made on this system: {error}")
    with pytest.raises(CheckpointError, match=words) as caught:
        read_header(path)
    assert caught.value.message.startswith(f"{path}: ")
    assert [fault.message for fault in examine_file(path).faults] == [caught.value.message]


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(one())

    def refuse(*args: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.open", refuse)  # root, as which the tests may run, is refused nothing
    with pytest.raises(CheckpointError, match="cannot be read: Permission denied"):
        read_header(path)


@pytest.mark.parametrize("name", ["a\0b", "\udcff.safetensors"])
def test_a_name_that_is_not_text(tmp_path: Path, name: str) -> None:
    with pytest.raises(CheckpointError, match="cannot be read") as caught:
        read_header(tmp_path / name)
    caught.value.message.encode()


SHARED = Path(__file__).parents[3] / "shared"


@pytest.mark.skipif(
    not (SHARED / "cases").is_dir(), reason="../shared, with the inputs that bit people, is not here"
)
def test_the_files_that_bit_people() -> None:
    sound = sorted((SHARED / "checkpoints").rglob("*.safetensors"))
    assert sound
    assert [path for path in sound if examine_file(path).faults] == []
    for model, code in (
        ("01-lfs-pointer/model/model.safetensors", "pointer"),
        ("01b-lfs-pointer-one-shard/model/model-00002-of-00002.safetensors", "pointer"),
        ("02-truncated-data/model/model.safetensors", "truncated"),
    ):
        assert [fault.code for fault in examine_file(SHARED / "cases" / "cases" / model).faults] == [code]
