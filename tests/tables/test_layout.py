"""At any width no word of a table is broken: not an id, not a number."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from atlas.report import layout

HEADERS = ["step", "equation", "parameters"]
ROWS = [
    ["layers.0–31.attention.k_rotated", "k ← k · e^(i t θ^(−2j/h))", "1,048,576"],
    ["total", "", "1,879,048,192"],
]


def test_columns_where_there_is_room_and_paragraphs_where_there_is_not() -> None:
    # 31 + 25 + 13 characters and two gaps of 3 need 75; the middle column may shrink to 16, so 66 suffice.
    assert layout.widths(HEADERS, ROWS, [2], 75) == [31, 25, 13]
    assert layout.widths(HEADERS, ROWS, [2], 66) == [31, 16, 13]
    assert layout.widths(HEADERS, ROWS, [2], 65) is None
    assert layout.paragraphs(HEADERS, ROWS, 60) == [
        "layers.0–31.attention.k_rotated",
        "    equation: k ← k · e^(i t θ^(−2j/h))",
        "    parameters: 1,048,576",
        "total",
        "    parameters: 1,879,048,192",
    ]
    assert layout.paragraphs(HEADERS, ROWS, 80)[1] == (
        "    equation: k ← k · e^(i t θ^(−2j/h))   parameters: 1,048,576"
    )


def test_wide_characters_count_twice() -> None:
    assert layout.widths(["a"], [["模型"]], [], 100) == [4]


WORDS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=30)
CELLS = st.lists(WORDS, max_size=6).map(" ".join)
TABLES = st.integers(1, 5).flatmap(
    lambda n: st.tuples(
        st.lists(WORDS, min_size=n, max_size=n),
        st.lists(st.lists(CELLS, min_size=n, max_size=n), min_size=1, max_size=4),
    )
)


@given(TABLES, st.integers(40, 120))
def test_every_word_is_whole_at_any_width(table: tuple[list[str], list[list[str]]], available: int) -> None:
    headers, rows = table
    widths = layout.widths(headers, rows, [], available)
    if widths is None:
        found = " ".join(layout.paragraphs(headers, rows, available)).split()
        for row in rows:
            assert all(word in found for cell in row for word in cell.split())
    else:
        assert sum(widths) + layout.GAP * (len(headers) - 1) <= available
        for i, width in enumerate(widths):
            assert all(len(word) <= width for row in rows for word in row[i].split())
