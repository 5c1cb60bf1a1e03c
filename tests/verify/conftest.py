"""A path -> what `atlas verify` finds there, in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from atlas.checkpoint import local
from atlas.spec.library import Library
from atlas.verification import Verification, verify

Check = Callable[..., Verification]


@pytest.fixture(scope="session")
def check(library: Library) -> Check:
    def checked(path: Path, **options: Any) -> Verification:
        store, only = local.at(path)
        return verify(store, library, only=only, **{"release": None, **options})

    return checked
