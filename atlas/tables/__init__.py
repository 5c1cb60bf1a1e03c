"""Tables and results as plain text, Markdown, CSV and HTML. Standard library only, so that every room may import it.

`Table` is what a command prints; `Result` is the base class of what the commands and the Python API return.
"""

from __future__ import annotations

from atlas.tables.result import Result
from atlas.tables.table import Cell, Column, Table

__all__ = ["Cell", "Column", "Result", "Table"]
