"""Headers made to be large: their memory is a small multiple of their size, their faults few, and both ways of reading agree."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlas.checkpoint import entries
from atlas.checkpoint.contradictions import MOST_FAULTS
from atlas.checkpoint.header import examine, examine_file
from tests.checkpoint.test_header_fuzz import CHOICES, fuzz, mutated_bytes, mutated_tree, packed

MOST = 20 * 2**20


def filled(make: Callable[[int], str], before: str = "{", after: str = "}", size: int = MOST // 4) -> bytes:
    """As many of these as fit, with commas between them."""
    parts, length, i = list[str](), 0, 0
    while length < size:
        parts.append(make(i))
        length += len(parts[-1]) + 1
        i += 1
    raw = (before + ",".join(parts) + after).encode()
    return struct.pack("<Q", len(raw)) + raw


def entry(i: int, name: str = "") -> str:
    return f'"{name or hex(i)}":{{"dtype":"U8","shape":[],"data_offsets":[{i},{i + 1}]}}'


HOSTILE: dict[str, tuple[Callable[[], bytes], str | None]] = {
    "tiny tensors": (lambda: filled(entry), "truncated"),
    "fields in another order": (
        lambda: filled(lambda i: f'"{i}":{{"shape":[],"dtype":"U8","data_offsets":[{i},{i + 1}]}}'),
        "truncated",
    ),
    "escaped field names": (
        lambda: filled(lambda i: f'"{i}":{{"dt\\u0079pe":"U8","shape":[],"data_offsets":[{i},{i + 1}]}}'),
        "truncated",
    ),
    "all wrong": (
        lambda: filled(lambda i: f'"{i}":{{"dtype":"U8","shape":[],"data_offsets":[0,0]}}'),
        "offsets",
    ),
    "metadata": (lambda: filled(lambda i: f'"{i}":""', '{"__metadata__":{', "}}"), None),
    "metadata with a key twice": (
        lambda: filled(lambda i: f'"{i}":""', '{"__metadata__":{', ',"7":""}}'),
        "header",
    ),
    "empty lists": (lambda: filled(lambda i: "[]", '{"a":[', "]}"), "header"),
    "empty objects": (lambda: filled(lambda i: '{"":0}', '{"a":[', "]}"), "header"),
    "nested": (lambda: filled(lambda i: "0", '{"a":' + "[" * 10**6, "]" * 10**6 + "}"), "header"),
    "dimensions": (
        lambda: filled(lambda i: "1", '{"a":{"dtype":"U8","shape":[', '],"data_offsets":[0,1]}}'),
        "truncated",
    ),
    "dimensions that overflow": (
        lambda: filled(lambda i: "999", '{"a":{"dtype":"U8","shape":[', '],"data_offsets":[0,1]}}'),
        "offsets",
    ),
    "a comma too many": (
        lambda: filled(lambda i: "1", '{"a":{"dtype":"U8","shape":[', ',],"data_offsets":[0,1]}}'),
        "header",
    ),
    "backslashes": (
        lambda: filled(
            lambda i: "", '{"' + "\\\\" * (MOST // 4), '":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}', 0
        ),
        "truncated",
    ),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_large_header_is_judged(kind: str) -> None:
    make, code = HOSTILE[kind]
    file = make()
    assert len(file) > entries.MOST_DECODED_BYTES
    found = examine(file, len(file), "x")
    assert {fault.code for fault in found.faults} == ({code} if code else set())
    assert len(found.faults) <= MOST_FAULTS + 1
    assert all(len(fault.message) < 1000 for fault in found.faults)


def test_of_many_faults_the_last_says_how_many_more_there_are() -> None:
    wrong = 5 * MOST_FAULTS
    text = ",".join(f'"{i}":{{"dtype":"U8","shape":[],"data_offsets":[0,0]}}' for i in range(wrong))
    file = packed("{" + text + "}", 0)
    faults = examine(file, len(file), "x").faults
    assert sum(fault.count for fault in faults) == wrong


PROBE = """
import resource, sys
from atlas.checkpoint.header import examine_file
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
examine_file(sys.argv[1])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ru_maxrss is in kibibytes on Linux")
@pytest.mark.parametrize("kind", ["tiny tensors", "metadata", "empty lists"])
def test_the_memory_is_a_small_multiple_of_the_header(kind: str, tmp_path: Path) -> None:
    """Decoded as JSON they take 11, 15 and 26 times their size."""
    path = tmp_path / "model.safetensors"
    path.write_bytes(HOSTILE[kind][0]())
    ran = subprocess.run([sys.executable, "-c", PROBE, path], capture_output=True, text=True, check=True)
    assert int(ran.stdout) * 1024 < 10 * path.stat().st_size


@pytest.mark.parametrize("mutate", [mutated_tree, mutated_bytes])
def test_a_long_header_is_accepted_like_a_short_one(
    mutate: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is too long to be decoded as a whole, here everything, is told apart by the very same rules."""

    @fuzz
    @given(st.binary(min_size=CHOICES, max_size=CHOICES))
    def run(raw: bytes) -> None:
        file = mutate(raw)
        monkeypatch.setattr(entries, "MOST_DECODED_BYTES", 2**22)
        short = examine(file, len(file), "x")
        monkeypatch.setattr(entries, "MOST_DECODED_BYTES", -1)
        long = examine(file, len(file), "x")
        assert long.header == short.header
        assert bool(long.faults) == bool(short.faults)

    run()


def test_a_begin_beyond_the_file_is_one_fault(tmp_path: Path) -> None:
    """The hole that it leaves is where it belongs: its neighbours are right."""
    header = {
        "a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]},
        "b": {"dtype": "U8", "shape": [4], "data_offsets": [10**12, 8]},
        "c": {"dtype": "U8", "shape": [4], "data_offsets": [8, 12]},
    }
    path = tmp_path / "model.safetensors"
    path.write_bytes(packed(json.dumps(header), 12))
    assert [(fault.code, fault.tensor) for fault in examine_file(path).faults] == [("offsets", "b")]
