"""Ctrl-C before a command has begun and after its answer: exit 130 in silence, whatever happens to be under way."""

from __future__ import annotations

import subprocess
import sys

import pytest

from .conftest import REPOSITORY

SWALLOWS = """
import os, signal, sys

class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            sys.meta_path.remove(self)
            try:
                os.kill(os.getpid(), signal.SIGINT)
            except KeyboardInterrupt:
                pass  # as an import that falls back to another does

sys.meta_path.insert(0, Interrupts())
"""
AT_EXIT = """
import atexit, os, signal, sys
atexit.register(os.kill, os.getpid(), signal.SIGINT)
"""
WHILE_PRINTING = """
import os, signal, sys
from atlas.report import console
def line(text=""):
    os.kill(os.getpid(), signal.SIGINT)
console.line = line
"""
TWICE = """
import os, signal, sys, types
from atlas.report import console
def again(text=""):
    os.kill(os.getpid(), signal.SIGINT)
console.line = again
sys.modules["atlas.checkpoint.download"] = types.SimpleNamespace(remove_partial_files=again)
"""


def started(code: str, *words: str) -> subprocess.CompletedProcess[str]:
    program = f"{code}\nsys.argv = ['atlas', *{list(words)}]\nfrom atlas.__main__ import main\nmain()"
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    "code", [SWALLOWS, AT_EXIT, WHILE_PRINTING, TWICE], ids=["importing", "at exit", "printing", "twice"]
)
def test_it_ends_in_silence(code: str) -> None:
    ran = started(code, "params", "llama3.2-1b")
    assert (ran.returncode, ran.stderr) == (130, "")


def test_an_interrupt_that_is_ignored_stays_ignored() -> None:
    """A shell's background job; then the answer is printed all the same."""
    ran = started("import signal, sys\nsignal.signal(signal.SIGINT, signal.SIG_IGN)" + AT_EXIT, "--version")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("atlas ")


def test_nothing_heavy_is_imported_before_an_interrupt_is_heard() -> None:
    code = "import sys; before = set(sys.modules); import atlas.__main__; print(*set(sys.modules) - before)"
    ran = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert not {"typing", "re", "typer", "pydantic", "rich"} & set(ran.stdout.split())
