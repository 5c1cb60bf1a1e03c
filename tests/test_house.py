"""The plan of the house that CONTRIBUTING.md shows: rooms, and a small ground floor. import-linter holds the floors."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "atlas"


def test_at_most_eight_files_are_in_no_room() -> None:
    assert len(list(PACKAGE.glob("*.py"))) <= 8


def test_every_room_says_what_it_is() -> None:
    rooms = [path for path in PACKAGE.iterdir() if path.is_dir() and (path / "__init__.py").exists()]
    assert len(rooms) >= 10
    for room in rooms:
        assert (room / "__init__.py").read_text(encoding="utf-8").startswith('"""'), room.name


def test_contributing_shows_every_room() -> None:
    plan = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"^\|[^|]*\| `(\w+)/` \|", plan, re.MULTILINE))
    rooms = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert shown == rooms
