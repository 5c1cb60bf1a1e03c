"""Fuzzing: for any bytes at all a header or an `AtlasError`, and never more than the library accepts.

Every file is put to both readers. What we accept, the library accepts, with the same names, shapes,
dtypes and data; what only we refuse is one of the exceptions that header.py lists. A sound header is
mutated as a tree (values, fields, keys, offsets) before it becomes text, and as bytes after; one small
file is mutated at its every byte. ATLAS_FUZZ_EXAMPLES sets how many are drawn, and draws anew each time.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import SafetensorError, deserialize

from atlas.checkpoint.header import bytes_needed, examine, parse
from atlas.dtypes import BITS
from atlas.errors import AtlasError

EXAMPLES = int(os.environ.get("ATLAS_FUZZ_EXAMPLES", "2000"))
CHOICES = 64
fuzz = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize="ATLAS_FUZZ_EXAMPLES" not in os.environ,
    suppress_health_check=list(HealthCheck),
)

# The exceptions of header.py's docstring, as the messages tell them.
STRICTER = {
    "key twice": re.compile(r" \d+ times; expected once$"),
    "white space first": re.compile(r"not a JSON object: it begins b['\"]( |\\[ntr])"),
    "unknown field": re.compile(r" has an unknown field "),
    "entry an array": re.compile(r" is \[.*; expected an object with"),
    "dtype an object": re.compile(r" has dtype \{…\}"),
}


def judged(file: bytes) -> str:
    """How our reader takes a file: `accepted`, a fault's code, or in what it is stricter than the library."""
    found = examine(file, len(file), "x")
    try:
        library = {name: (t["shape"], t["dtype"], bytes(t["data"])) for name, t in deserialize(file)}
    except SafetensorError:
        library = None
    prefix = file[: bytes_needed(file[:8], len(file))]
    assert [fault.code for fault in examine(prefix, len(file), "x").faults] == [
        fault.code for fault in found.faults
    ]
    if not found.faults:
        header = parse(file, len(file), "x")
        data = file[header.data_start :]
        ours = {t.name: (list(t.shape), t.dtype, data[t.begin : t.end]) for t in header.tensors.values()}
        assert ours == library
        return "accepted"
    with pytest.raises(AtlasError):
        parse(file, len(file), "x")
    for fault in found.faults:
        assert fault.message.startswith("x: ")
        assert len(fault.message.encode()) < 1000
    code, message = found.faults[0].code, found.faults[0].message
    assert (found.header is None) == (code in ("header", "pointer"))
    if library is None:
        return code
    reasons = [reason for reason, words in STRICTER.items() if words.search(message)]
    assert reasons, message
    return reasons[0]


class Choices:
    """Choices read from bytes, so that hypothesis draws once and shrinks towards the first option of each."""

    def __init__(self, raw: bytes) -> None:
        self.raw = iter(raw)

    def below(self, limit: int) -> int:
        return next(self.raw, 0) % limit

    def of(self, options: Sequence[Any]) -> Any:
        return options[self.below(len(options))]


class Text(str):
    """Goes into the file as it is: JSON, or what only looks like it."""


def dumped(tree: Any) -> str:
    """As JSON; an object is a tuple of pairs here, so that a key can stand in it twice."""
    if isinstance(tree, Text):
        return tree
    if isinstance(tree, tuple):
        return "{" + ",".join(f"{dumped(key)}:{dumped(value)}" for key, value in tree) + "}"
    if isinstance(tree, list):
        return "[" + ",".join(map(dumped, tree)) + "]"
    return json.dumps(tree, ensure_ascii=False)


def packed(text: str, data_bytes: int) -> bytes:
    raw = text.encode("utf-8", "surrogatepass")
    return len(raw).to_bytes(8, "little") + raw + bytes(i % 251 for i in range(data_bytes))


ODD = [
    Text(text)
    for text in ("-0", "1.0", "1e0", "01", "+1", "NaN", "-", "[[[]]]", '"\\ud800"', '"\\u0061"', '"\n"', "")
]
NUMBERS = [0, 1, 2, 4, 8, -1, 2**31, 2**32, 2**61, 2**62, 2**63, 2**64 - 1, 2**64, 10**30]
NAMES = [
    "a",
    "b",
    "wq",
    "",
    "-0",
    "é😀",
    "\x00",
    "\ud800",
    "dtype",
    "__metadata__",
    Text('"\\u0061"'),
    Text('"\\udc00"'),
]
VALUES = [
    *NUMBERS,
    *ODD,
    *NAMES,
    None,
    True,
    False,
    1.5,
    [],
    (),
    [0, 4],
    ["F32", [1], [0, 4]],
    (("F32", None),),
]
VALUES += ["F32", "F4", "F64", "bfloat16", (("dtype", "U8"), ("shape", [0]), ("data_offsets", [0, 0]))]


def sound(choices: Choices) -> tuple[Any, int]:
    """A sound header as a tree, and the length of its data in bytes."""
    end, entries = 0, list[Any]()
    for name in NAMES[: 1 + choices.below(4)]:
        dtype = choices.of(list(BITS))
        shape = [choices.of([2, 1, 3, 4, 0]) for _ in range(choices.below(4))] + [4] * (BITS[dtype] < 8)
        begin, end = end, end + math.prod(shape) * BITS[dtype] // 8
        entries.append((name, (("dtype", dtype), ("shape", shape), ("data_offsets", [begin, end]))))
    if choices.below(3) == 1:
        entries.insert(choices.below(len(entries) + 1), ("__metadata__", (("format", "pt"), ("", "é"))))
    return tuple(reversed(entries) if choices.below(4) == 1 else entries), end


def changed(choices: Choices, tree: Any, *, root: bool = False) -> Any:
    """The tree with something changed, a random way down; the root itself stays an object."""
    if not (isinstance(tree, list | tuple) and tree):
        if type(tree) is int and choices.below(4):
            same = [float(tree), bool(tree), Text(f"-{tree}"), Text(f"{tree}e0")]
            return choices.of([tree + 1, tree - 1, tree + 4, tree - 4, *same])
        if type(tree) is str and tree in BITS and choices.below(4):
            return choices.of([*BITS, ((tree, None),)])  # the library reads {"F32": null} as "F32"
        return choices.of(VALUES)
    nodes = list(tree)
    at, other = choices.below(len(nodes)), choices.below(len(nodes))
    keyed = isinstance(tree, tuple)
    match choices.of(
        [*["down"] * 12, "swap", "swap", "shift", "drop", "twice", "replace", "key", "extra", "array"]
    ):
        case "swap" if keyed:  # the values, not the keys
            nodes[at], nodes[other] = (nodes[at][0], nodes[other][1]), (nodes[other][0], nodes[at][1])
        case "swap":
            nodes[at], nodes[other] = nodes[other], nodes[at]
        case "shift" if all(type(node) is int for node in nodes):
            by = choices.of([-4, -1, 1, 4])
            nodes = [node + by for node in nodes]
        case "drop":
            del nodes[at]
        case "twice":
            nodes.insert(other, nodes[at])
        case "replace" if not root:
            return choices.of(VALUES)
        case "key" if keyed:
            nodes[at] = (choices.of(NAMES), nodes[at][1])
        case "extra" if keyed:
            nodes.insert(at, (choices.of(NAMES), choices.of(VALUES)))
        case "array" if keyed and not root:  # the library reads an entry's values without their keys
            return [value for _, value in nodes]
        case _:
            nodes[at] = (
                (nodes[at][0], changed(choices, nodes[at][1])) if keyed else changed(choices, nodes[at])
            )
    return type(tree)(nodes)


def mutated_tree(raw: bytes) -> bytes:
    choices = Choices(raw)
    tree, data_bytes = sound(choices)
    for _ in range(choices.of([1, 1, 1, 1, 2, 3])):
        tree = changed(choices, tree, root=True)
    text = dumped(tree)
    if choices.below(
        4
    ):  # as the mutated header would have it; otherwise many a fault would hide behind this one
        ends = [int(end) for end in re.findall(r'"data_offsets":\[[0-9]+,([0-9]{1,4})\]', text)]
        data_bytes = max(ends, default=0)
    before = choices.of([*[""] * 40, " ", "\n", "\ufeff"])
    after = choices.of([*[""] * 40, "       ", "\r\n\t", "\0", "x"])
    return packed(before + text + after, max(0, data_bytes + choices.of([*[0] * 20, 1, 300, -1, -4])))


def mutated_bytes(raw: bytes) -> bytes:
    choices = Choices(raw)
    tree, data_bytes = sound(choices)
    file = bytearray(packed(dumped(tree), data_bytes))
    length_put_right = choices.below(4)
    for _ in range(choices.of([1, 1, 2, 3])):
        at = choices.below(256) * len(file) // 256
        match choices.of(["flip", "flip", "digit", "insert", "repeat", "delete", "cut"]):
            case "flip":
                file[at] ^= 1 << choices.below(8)
            case "digit":
                digits = [i for i, byte in enumerate(file[8:], 8) if byte in b"0123456789"] or [at]
                file[choices.of(digits)] = choices.of(b"0123456789-.")
            case "insert":
                file[at:at] = choices.of([b" ", b"0", b"-", b'"', b",", b"{", b"}", b"\xff", b"\\", b"[]"])
            case "repeat":
                file[at:at] = file[at : at + choices.below(32)]
            case "delete":
                del file[at : at + 1 + choices.below(8)]
            case _:
                del file[at:]
        if not file:
            break
    if length_put_right:  # otherwise it would nearly always be wrong, and hide all that follows
        file[:8] = max(0, len(file) - 8 - data_bytes).to_bytes(8, "little")
    return bytes(file)


SIGNATURES = [
    b"",
    b"{",
    b'{"',
    b"version https://git-lfs.github.com/spec/v1\nsize ",
    b"<html><title>",
    b"\x80\x02}",
]


def any_bytes(raw: bytes) -> bytes:
    return SIGNATURES[raw[0] % len(SIGNATURES)] + raw[1:]


@pytest.mark.parametrize(
    ("mutate", "verdicts"),
    [
        (mutated_tree, {"accepted", "header", "offsets", "truncated", "trailing", *STRICTER}),
        (mutated_bytes, {"accepted", "header", "offsets", "truncated", "trailing"}),
        (any_bytes, {"header", "pointer"}),
    ],
)
def test_a_header_or_an_error_and_never_more_than_the_library(
    mutate: Callable[[bytes], bytes], verdicts: set[str]
) -> None:
    seen: Counter[str] = Counter()

    @fuzz
    @given(st.binary(min_size=CHOICES, max_size=CHOICES))
    def run(raw: bytes) -> None:
        seen[judged(mutate(raw))] += 1

    run()
    if EXAMPLES >= 2000:  # else there may be too few for all
        assert verdicts - set(seen) == set(), f"the mutations no longer reach these: {seen}"


def every_mutation(file: bytes, header_bytes: int) -> Iterator[bytes]:
    longer, shorter = (bytes([file[0] + by]) + file[1:] for by in (1, -1))
    for at in range(header_bytes):
        yield from (
            file[:at] + bytes([byte]) + file[at + 1 :] for byte in (*range(128), 0x80, 0xC3, 0xED, 0xFF)
        )
        if at >= 8:
            yield from (longer[:at] + bytes([byte]) + longer[at:] for byte in b' 0-",:{}[]\\\0')
            yield shorter[:at] + shorter[at + 1 :]
    for size in range(len(file)):
        yield file[:size]
    yield file + b"\0"


def test_one_small_file_mutated_at_its_every_byte() -> None:
    text = (
        '{"__metadata__":{"k":"v","l":""},"b":{"dtype":"F4","shape":[3,2],"data_offsets":[4,7]},"a":'
        '{"dtype":"F32","shape":[1],"data_offsets":[0,4]}} '
    )
    file = packed(text, 7)
    seen = Counter(judged(mutant) for mutant in every_mutation(file, 8 + len(text)))
    verdicts = {"accepted", "header", "offsets", "truncated", "trailing", "key twice", "white space first"}
    assert verdicts - set(seen) == set()
