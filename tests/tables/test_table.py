"""One table in each format, and a result as a notebook shows it."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import ClassVar

from atlas.tables import Column, Table, Tabular

TABLE = Table(
    (
        Column("component"),
        Column("calculation", key=None),
        Column("shape"),
        Column("×", key="instances", right=True),
        Column("parameters", right=True),
        Column(None, key="bytes"),
    ),
    (
        ("wq", "4,096 × 4,096", (4096, 4096), 32, 536_870_912, 1_073_741_824),
        ("odd|name,\n", "", ("B", 2), None, 1, 2),
    ),
    total=("total", "", None, None, 536_870_913, None),
)


def test_csv_is_for_programs() -> None:
    rows = list(csv.DictReader(io.StringIO(TABLE.csv())))
    assert list(rows[0]) == ["component", "shape", "instances", "parameters", "bytes"]
    assert rows[0] == {
        "component": "wq",
        "shape": "4096x4096",
        "instances": "32",
        "parameters": "536870912",
        "bytes": "1073741824",
    }
    assert rows[1]["component"] == "odd|name,\\n"
    assert rows[1]["shape"] == "Bx2"
    assert rows[1]["instances"] == ""
    assert len(rows) == 2, "the total is no row"
    assert TABLE.csv().splitlines()[0].isascii()


def test_markdown_is_for_people() -> None:
    lines = TABLE.markdown().splitlines()
    assert lines[0] == "| component | calculation | shape | × | parameters |"
    assert lines[1] == "| --- | --- | --- | ---: | ---: |"
    assert lines[2] == "| wq | 4,096 × 4,096 | 4,096 × 4,096 | 32 | 536,870,912 |"
    assert "odd\\|name" in lines[3]
    assert lines[4].startswith("| total |")
    assert len(lines) == 5


@dataclass(frozen=True, slots=True)
class Part:
    name: dict[str, str]
    shape: tuple[int, ...]
    parameters: int


@dataclass(frozen=True, slots=True, repr=False)
class Parts(Tabular):
    rows_fields: ClassVar[tuple[str, ...]] = ("parts",)

    model: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Lone(Tabular):
    total_bytes: int
    text: str


def test_a_result_has_rows_and_one_line() -> None:
    result = Parts("a\nb", tuple(Part({"hf": f"w{i}"}, (2, 3), 6) for i in range(1000)))
    assert result.rows()[7] == {"name.hf": "w7", "shape": (2, 3), "parameters": 6}
    assert repr(result) == "Parts(model='a\\nb', parts=<1000 items>)"
    assert Lone(5, "x").rows() == [
        {"field": "total_bytes", "value": 5},
        {"field": "text", "value": "x"},
    ]
    assert len(repr(Lone(5, "x" * 10_000))) < 200


def test_a_notebook_shows_a_table_in_which_nothing_acts() -> None:
    result = Parts("m", (Part({"hf": "<script>alert(1)</script>\x1b[31m"}, (2, 3000), 6000),))
    html = result._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "\x1b" not in html
    assert "<td>2 × 3,000</td><td>6,000</td>" in html
    assert "<th>name.hf</th>" in html
    markdown = result._repr_markdown_()
    assert markdown.splitlines()[0] == "| name.hf | shape | parameters |"
    assert "<script>" not in markdown


def test_a_long_table_is_cut_in_a_notebook_and_says_so() -> None:
    result = Parts("m", tuple(Part({"hf": f"w{i}"}, (2,), 2) for i in range(250)))
    assert "… and 150 more rows" in result._repr_html_()
    assert result._repr_html_().count("<tr>") == 101
    assert "… and 150 more rows" in result._repr_markdown_()
