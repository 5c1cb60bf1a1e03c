"""A folder -> what reading its data shows, in this process. All of it needs NumPy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numpy", reason="--deep needs numpy")

from atlas.checkpoint import local
from atlas.checkpoint.inventory import take
from atlas.verification.deep.check import Deep, check

Read = Callable[..., Deep]


@pytest.fixture(scope="session")
def read() -> Read:
    def reading(path: Path, **options: Any) -> Deep:
        store, only = local.at(path)
        return check(take(store, only), **options)

    return reading
