"""Mutations of JSON documents, as trees before they become text and as bytes after; for the fuzz tests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tests.bounds import Choices

CHOICES = 48
"""Bytes from which the choices of one example are read."""


class Text(str):
    """Goes into the file as it is: JSON, or what only looks like it."""


ODD = [
    Text(text)
    for text in ("-0", "1e0", "4096.0", "1e308", "1e999", "-1e999", "NaN", "Infinity", "01", "-", "")
]
ODD += [Text("9" * digits) for digits in (19, 400, 4300, 4301)]
ODD += [Text("[" * depth + "]" * depth) for depth in (3, 900, 5000)]
ODD += [Text('{"a":' * 900 + "1" + "}" * 900), Text('"\\ud800"'), Text('"\\u0000\\u001b]0;x\\u0007"')]
HOSTILE = "\x1b]0;x\x07\x1b[2J\x9b31m\u202e\u200b\u2028\r\n[bold]\U000e0041"
NAMES = [
    "",
    "a",
    "é😀",
    HOSTILE,
    "\udcff",
    "x" * 5000,
    "dim",
    "model_type",
    "rope_scaling",
    "{}",
    "__class__",
]
NUMBERS = [0, 1, -1, 2, 3, 7, 64, 2**31, 2**48, 2**48 + 1, 2**63, 10**30, 0.5, -1.5, 1e-320, 1e300]
VALUES: list[Any] = [
    *NUMBERS, *ODD, *NAMES, None, True, False, [], {}, [0, 4], [1, "a", None], {"a": {"b": 1}}, [[]] * 50,
]  # fmt: skip


def dumped(tree: Any) -> str:
    """As JSON; an object is a tuple of pairs here, so that a key can stand in it twice."""
    if isinstance(tree, Text):
        return tree
    if isinstance(tree, tuple):
        return "{" + ",".join(f"{dumped(key)}:{dumped(value)}" for key, value in tree) + "}"
    if isinstance(tree, list):
        return "[" + ",".join(map(dumped, tree)) + "]"
    return json.dumps(tree)


def as_tree(value: Any) -> Any:
    """JSON's values with objects as tuples of pairs."""
    if isinstance(value, dict):
        return tuple((key, as_tree(item)) for key, item in value.items())
    return [as_tree(item) for item in value] if isinstance(value, list) else value


def changed(choices: Choices, tree: Any) -> Any:
    """The tree with something changed, a random way down."""
    if not (isinstance(tree, list | tuple) and tree):
        if type(tree) is int and choices.below(2):
            return choices.of([tree + 1, tree - 1, tree * 2, -tree, float(tree), str(tree), [tree]])
        return as_tree(choices.of(VALUES))
    nodes = list(tree)
    at = choices.below(len(nodes))
    keyed = isinstance(tree, tuple)
    match choices.of([*["down"] * 8, "drop", "twice", "key", "extra", "replace"]):
        case "drop":
            del nodes[at]
        case "twice":
            nodes.insert(choices.below(len(nodes)), nodes[at])
        case "key" if keyed:
            nodes[at] = (choices.of(NAMES), nodes[at][1])
        case "extra" if keyed:
            nodes.insert(at, (choices.of(NAMES), as_tree(choices.of(VALUES))))
        case "replace":
            return as_tree(choices.of(VALUES))
        case _:
            nodes[at] = (
                (nodes[at][0], changed(choices, nodes[at][1])) if keyed else changed(choices, nodes[at])
            )
    return type(tree)(nodes)


def mutated_tree(raw: bytes, documents: Sequence[Any]) -> bytes:
    """One of the documents with one to three changes."""
    choices = Choices(raw)
    tree = as_tree(choices.of(documents))
    for _ in range(choices.of([1, 1, 1, 2, 3])):
        tree = changed(choices, tree)
    before = choices.of([*[""] * 30, " ", "\ufeff"])
    return (before + dumped(tree)).encode("utf-8", "surrogatepass")


def mutated_bytes(raw: bytes, documents: Sequence[Any]) -> bytes:
    """One of the documents with one to three changes to its bytes."""
    choices = Choices(raw)
    file = bytearray(json.dumps(choices.of(documents)).encode())
    for _ in range(choices.of([1, 1, 2, 3])):
        at = choices.below(len(file) or 1)
        match choices.of(["flip", "digit", "insert", "repeat", "delete", "cut", "wide"]):
            case "flip" if file:
                file[at] ^= 1 << choices.below(8)
            case "digit":
                digits = [i for i, byte in enumerate(file) if byte in b"0123456789"]
                if digits:
                    file[choices.of(digits)] = choices.of(b"0123456789-.e")
            case "insert":
                file[at:at] = choices.of(
                    [b" ", b"0", b"-", b'"', b",", b"{", b"}", b"\xff", b"\\", b"\0", b"[]"]
                )
            case "repeat":
                file[at:at] = file[at : at + choices.below(64)]
            case "delete":
                del file[at : at + 1 + choices.below(8)]
            case "cut":
                del file[at:]
            case _:
                file = bytearray(bytes(file).decode("latin-1").encode("utf-16"))
    return bytes(file)
