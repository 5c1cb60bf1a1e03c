"""Fuzzing: any file is a receipt whose sentence can be printed, or is refused in one sentence of ours."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlas.errors import UsageError, clipped
from atlas.report.plain import dumps
from atlas.verification import receipt
from tests.bounds import fuzz
from tests.mutations import CHOICES, mutated_bytes, mutated_tree
from tests.verify.checkpoints import CONFIG, hub, save
from tests.verify.conftest import Check

INTERNAL = ("NoneType", "Error:", "<class", "object at 0x", "pydantic", "Input should", "Field required")


@pytest.mark.parametrize("mutate", [mutated_tree, mutated_bytes])
def test_a_receipt_or_a_refusal(mutate: Callable[[bytes, Any], bytes], check: Check, tmp_path: Path) -> None:
    real = receipt.receipt(check(save(tmp_path / "c", hub(), config=CONFIG)))
    documents = [json.loads(dumps(real))]
    path = tmp_path / "r.json"
    path.write_text(dumps(real))
    assert receipt.read(path) == real
    seen: Counter[str] = Counter()

    @fuzz(300)
    @given(st.binary(min_size=CHOICES, max_size=CHOICES))
    def run(raw: bytes) -> None:
        path.write_bytes(mutate(raw, documents))
        try:
            receipt.rests_on(receipt.read(path))
            seen["read"] += 1
        except UsageError as error:
            message = clipped(error.message)
            assert len(message) <= 2000
            assert not any(word in message for word in INTERNAL), message
            seen["refused"] += 1

    run()
    assert seen["read"]
    assert seen["refused"]
