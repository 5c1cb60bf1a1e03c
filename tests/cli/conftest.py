"""Runs the command line as a user does: a process of its own, with its own streams and exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[2]


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def run(*arguments: str, cwd: Path = REPOSITORY, **environment: str) -> Ran:
    """`python -m atlas` with these arguments; nothing of the user's terminal or Hub settings leaks in."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HF_", "COLUMNS", "NO_COLOR", "FORCE_COLOR"))
    }
    done = subprocess.run(
        [sys.executable, "-m", "atlas", *arguments],
        env={**kept, "PYTHONPATH": str(REPOSITORY), **environment},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def atlas() -> Any:
    return run
