"""Tables and results as plain text, Markdown, CSV and HTML. Standard library only, so that every room may import it.

`Table` is what a command prints; `Tabular` is the base class of what the commands and the Python API return.
"""

from __future__ import annotations

from atlas.tables.table import Cell, Column, Table
from atlas.tables.tabular import Tabular

__all__ = ["Cell", "Column", "Table", "Tabular"]
