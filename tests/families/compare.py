"""Prints how the atlas differs from transformers on published configurations, for whoever describes a family.

python tests/families/compare.py qwen2-7b qwen2.5-3b
python tests/families/compare.py --all          every configuration whose model_type is described
python tests/families/compare.py --list         what there is
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from atlas.spec.library import Library
from tests.families import comparison, expected


def main(arguments: list[str]) -> int:
    """Print a table for each name. 1 if anything differs, 2 for a name that is not there."""
    library = Library()
    known = comparison.registered(library)
    if "--list" in arguments or not arguments:
        for name, row in expected.EXPECTED.items():
            print(f"{name:28} {row.model_type:16} {'described' if row.model_type in known else '—'}")
        return 0
    names = [name for name, row in expected.EXPECTED.items() if row.model_type in known]
    names = names if "--all" in arguments else arguments
    if unknown := [name for name in names if name not in expected.EXPECTED]:
        print(f"no figures for {', '.join(unknown)}; --list shows what there is", file=sys.stderr)
        return 2
    if not expected.FAMILIES.is_dir():
        print(f"{expected.FAMILIES} is not there", file=sys.stderr)
        return 2
    return int(sum(_report(name, library) for name in names) > 0)


def _report(name: str, library: Library) -> bool:
    figures = comparison.attempt(name, library)
    differing = [figure for figure in figures if not figure.equal]
    print(f"{name} ({expected.EXPECTED[name].model_type}): {'differs' if differing else 'equal'}")
    for figure in figures:
        mark = " " if figure.equal else "≠"
        line = f"  {mark} {figure.what:26} {_text(figure.expected):>22}"
        print(line if figure.equal else f"{line}  here {_text(figure.found)}  {figure.note}".rstrip())
    return bool(differing)


def _text(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
