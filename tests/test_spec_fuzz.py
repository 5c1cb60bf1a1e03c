"""Fuzzing descriptions: for any description files at all an answer or an `AtlasError`, within a time and a memory.

The atlas's own files are mutated as text, and as tables: values, keys and whole tables are dropped, doubled, swapped or
replaced, and texts are changed by the tokens of the small grammars (shapes, formulas, conditions, names of tensors, places).
What comes out is bound to a model and asked for all that the commands print. ATLAS_FUZZ_EXAMPLES sets how many are drawn.
"""

from __future__ import annotations

import json
import re
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlas.api.model import Model
from atlas.errors import AtlasError
from atlas.evidence.bibliography import evidence, place
from atlas.grammar import conditions, names, shapes
from atlas.graph.binding import bind
from atlas.graph.check import check
from atlas.resolution import config
from atlas.resolution.resolve import resolve
from atlas.spec.library import Library, builtin_folder
from tests.bounds import Choices, bounded, fuzz

FILES = sorted(path.relative_to(builtin_folder()) for path in builtin_folder().rglob("*.toml"))
TEXTS = {file: (builtin_folder() / file).read_text(encoding="utf-8") for file in FILES}
MODELS = ("llama2-7b", "llama3.2-1b", "llama3.1-8b")
CHOICES = 120

TOKENS = (
    "(", ")", "*", "**", "/", "+", "-", "=", "[", "]", "{", "}", "{layer}", "{expert}", ".", "_", " ", "0", "1", "64", "2**64",
    "1e999", "9999999999", "dim", "n_layers", "n_experts", "layer", "x", "off", "false", "batch", "positions", "sha256:",
    "1-1", "5-1", "../", "\0", "\x1b[2J", "\u2028", "\u0663", "²", "é", "# ", "\ufeff",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    0, 1, -1, 2, 5, 10**12, 2**63 - 1, -(2**63), 2**63, 10**400, 0.0, -0.5, 1e300, 1e-300, float("inf"), float("nan"), True,
    False, "", "dim", "x", "n_layers", "llama", "BF16", "(((dim**64)**64)**64)**64", "dim " * 300, "(" * 300, "-" * 900 + "1",
    [], [1], [[1]], [[5, 1]], ["x"], {}, {"a": 1}, {"a": {"b": {}}}, [[[[[[]]]]]], ["dim", "dim"],
)  # fmt: skip


def dumped(table: dict[str, Any], at: tuple[str, ...] = ()) -> Iterator[str]:
    """A table as TOML's lines; an array of tables is written as such where it is one."""
    inner = {key: value for key, value in table.items() if isinstance(value, dict) or _tables(value)}
    for key, value in table.items():
        if key not in inner:
            yield f"{json.dumps(key)} = {_inline(value)}"
    for key, value in inner.items():
        here = ".".join(map(json.dumps, (*at, key)))
        if isinstance(value, dict):
            yield f"[{here}]"
            yield from dumped(value, (*at, key))
        else:
            for item in value:
                yield f"[[{here}]]"
                yield from dumped(item, (*at, key))


def _tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def _inline(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_inline(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value).replace("\x7f", "\\u007f")


def changed(choices: Choices, tree: Any, other: Any) -> Any:
    """The tree with one change in it; `other` is another tree, to take values from."""
    if isinstance(tree, str) and choices.below(3):
        return changed_text(choices, tree)
    if not isinstance(tree, dict | list) or not tree:
        return choices.of(VALUES)
    keys = list(tree) if isinstance(tree, dict) else list(range(len(tree)))
    at, second = choices.of(keys), choices.of(keys)
    match choices.of([*["down"] * 10, "drop", "swap", "twice", "replace", "from other", "key"]):
        case "drop":
            del tree[at]
        case "swap":
            tree[at], tree[second] = tree[second], tree[at]
        case "twice" if isinstance(tree, list):
            tree += tree * choices.of([1, 1, 1, 40])
        case "twice" if isinstance(at, str):
            tree[f"{at}2"] = tree[at]
        case "replace":
            tree[at] = choices.of(VALUES)
        case "from other":
            tree[at] = choices.of(list(leaves(other)) or [0])
        case "key" if isinstance(tree, dict):
            tree[choices.of([*TOKENS, "a" * 300, *keys])] = tree.pop(at)
        case _:
            tree[at] = changed(choices, tree[at], other)
    return tree


def changed_text(choices: Choices, text: str) -> str:
    at = choices.below(len(text) + 1)
    match choices.of(["insert", "insert", "replace", "cut", "repeat", "nest"]):
        case "insert":
            return text[:at] + choices.of(TOKENS) + text[at:]
        case "replace":
            return text[:at] + choices.of(TOKENS) + text[at + 1 :]
        case "cut":
            return text[:at]
        case "repeat":
            return " ".join([text] * choices.of([2, 3, 40, 200]))
    depth = choices.of([1, 5, 100])
    return "(" * depth + text + choices.of([")", "**64)", "*9)", "+1)"]) * depth


def leaves(tree: Any) -> Iterator[Any]:
    for item in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        if isinstance(item, dict | list):
            yield from leaves(item)
        yield item


def copied(file: Path) -> Any:
    return tomllib.loads(TEXTS[file])


def mutated_tables(choices: Choices, file: Path) -> bytes:
    tree = copied(file)
    for _ in range(choices.of([1, 1, 1, 2, 3])):
        tree = changed(choices, tree, copied(choices.of(FILES)))
        if not isinstance(tree, dict):
            tree = {"x": tree}
    return "\n".join(dumped(tree)).encode("utf-8", "surrogatepass")


def mutated_bytes(choices: Choices, file: Path) -> bytes:
    data = bytearray(TEXTS[file].encode())
    for _ in range(choices.of([1, 1, 2, 4])):
        at, to = sorted((choices.below(len(data) + 1), choices.below(len(data) + 1)))
        match choices.of(["insert", "insert", "flip", "delete", "repeat", "number", "many"]):
            case "insert":
                data[at:at] = choices.of(TOKENS).encode()
            case "flip" if at < len(data):
                data[at] ^= 1 << choices.below(8)
            case "delete":
                del data[at : min(to, at + 60)]
            case "repeat":
                data[at:at] = data[at : at + 200] * choices.of([1, 2, 50])
            case "number" if numbers := list(re.finditer(rb"[0-9]+", bytes(data))):
                found = choices.of(numbers)
                data[found.start() : found.end()] = choices.of(
                    [
                        b"0",
                        b"-1",
                        b"9" * 30,
                        b"9" * 5000,
                        b"0x" + b"f" * 6000,
                        b"inf",
                        b"nan",
                        b"1e400",
                        b"1979-05-27",
                    ]
                )
            case _:
                data[at:at] = choices.of([b"[", b"a.", b'"', b"{", b"\n", b"[[a]]\n", b"\xff", b"\0"]) * 3000
    return bytes(data)


def judged(file: Path, data: bytes, base: Library, model: str) -> str:
    """What comes of the description with that file: an answer, or the class of the refusal; anything else is raised."""
    with tempfile.TemporaryDirectory() as folder, bounded():
        path = Path(folder) / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        library = Library(Path(folder))
        kind, name = file.parent.name, file.stem
        library._loaded = {key: found for key, found in base._loaded.items() if key != (kind, name)}
        try:
            _ask(library, kind, name, model)
        except AtlasError as error:
            said, outcome = error.message, type(error).__name__
        else:
            said, outcome = "", "answer"
    assert len(said) < 20_000
    return outcome


def _ask(library: Library, kind: str, name: str, model: str) -> None:
    if kind == "catalogue":
        library.catalogue(name)
    if kind == "models":
        library.family(name)
    evidence(library.cites, library)
    for cite in library.cites.values():
        for where in cite.at:
            place(where)
    found = resolve(model, library)
    if kind == "architectures" and (samples := library.samples(library.architecture(name))):
        id, settings = next(iter(samples.items()))
        found = config.describe(settings, library, id=id)
    described = Model(bind(found, library), library)
    described.params(by="tensor")
    described.trace(1, 8, 0)
    described.memory(context=8)
    described.flops()
    described.explain()
    described.explain("attention")


@pytest.fixture(scope="module")
def base() -> Library:
    library = Library()
    check(library)
    return library


@pytest.mark.parametrize("mutate", [mutated_tables, mutated_bytes])
def test_an_answer_or_a_refusal(mutate: Any, base: Library) -> None:
    seen: Counter[str] = Counter()

    @fuzz(120)
    @given(st.binary(min_size=CHOICES, max_size=CHOICES))
    def run(raw: bytes) -> None:
        choices = Choices(raw)
        file = choices.of(FILES)
        seen[judged(file, mutate(choices, file), base, choices.of(MODELS))] += 1

    run()
    print(mutate.__name__, dict(seen))
    assert {"answer", "SpecError"} <= set(seen), f"the mutations no longer reach these: {seen}"


def test_the_check_of_all_ends_too() -> None:
    @fuzz(12)
    @given(st.binary(min_size=CHOICES, max_size=CHOICES))
    def run(raw: bytes) -> None:
        choices = Choices(raw)
        file = choices.of(FILES)
        with tempfile.TemporaryDirectory() as folder, bounded():
            path = Path(folder) / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(mutated_tables(choices, file))
            try:
                check(Library(Path(folder)))
            except AtlasError:
                return

    run()


GRAMMARS = {
    "shape": shapes.parse,
    "formula": lambda text: shapes.evaluate(text, {"dim": 4096, "x": 0.5, "n_layers": 2**48}),
    "condition": lambda text: conditions.holds(text, {"dim": 4096, "x": "off", "layer": True}),
    "template": lambda text: names.Template(text).match("model.layers.11111111111111111111111111111111.x"),
    "holding": names.holding,
    "place": place,
}
pieces = st.lists(st.sampled_from(TOKENS), max_size=12)


@pytest.mark.parametrize("grammar", GRAMMARS)
def test_each_small_grammar_ends(grammar: str) -> None:
    @fuzz(200)
    @given(pieces, st.sampled_from([1, 1, 1, 1, 50, 2000]), st.sampled_from(["", "a", "x.y", "{layer}.x"]))
    def run(words: list[str], times: int, head: str) -> None:
        said = ""
        with bounded():
            try:
                GRAMMARS[grammar](head + "".join(words) * times)
            except AtlasError as error:
                said = error.message
        assert len(said) < 3000

    run()
