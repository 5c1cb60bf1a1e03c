"""What the statements of a module or a class bind, and in which form, read off the syntax tree.

No value is worked out here: `syntax` evaluates what a name is bound to, and only where it is bound once and plainly.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

_HARMLESS = {"cache", "lru_cache", "property", "classmethod", "staticmethod"}


def bindings(statements: Iterable[ast.stmt]) -> dict[str, list[ast.stmt]]:
    """Name -> the statements that bind it, also those that do so within a condition or a loop."""
    found: dict[str, list[ast.stmt]] = {}
    for statement in statements:
        whole = isinstance(statement, ast.FunctionDef | ast.ClassDef)
        for node in [statement] if whole else ast.walk(statement):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.setdefault(node.name, []).append(statement)
            elif isinstance(node, ast.alias):
                found.setdefault(node.asname or node.name, []).append(statement)
            elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                found.setdefault(node.id, []).append(statement)
    return found


def brought(statement: ast.stmt, stems: set[str]) -> bool:
    """Whether a statement only brings, under their own names, what another of the files defines."""
    match statement:
        case ast.ImportFrom(module=str(module), names=names):
            return module.split(".")[-1] in stems and not any(alias.asname for alias in names)
    return False


def assigned(statement: ast.stmt) -> ast.expr | None:
    """The value of `name = value`, with or without a type; None for a statement of another form."""
    match statement:
        case ast.Assign(targets=[ast.Name()], value=value) | ast.AnnAssign(target=ast.Name(), value=value):
            return value
    return None


def plain_names(nodes: Iterable[ast.expr]) -> set[str]:
    """The names that stand there, with an empty one for whatever is more than a name."""
    return {node.id if isinstance(node, ast.Name) else "" for node in nodes}


def harmless(function: ast.FunctionDef) -> bool:
    """Whether, for all its decorators, a function still returns what it says, and a method is no validator."""
    return plain_names(function.decorator_list) <= _HARMLESS


def is_plain(kind: ast.ClassDef, base: str) -> bool:
    """Whether a class has that base and no say of its own in how its instances are made or compared."""
    methods = [node for node in kind.body if isinstance(node, ast.FunctionDef)]
    return (
        (plain_names(kind.bases), kind.keywords, kind.decorator_list) == ({base}, [], [])
        and not any(node.name.startswith(("_", "model_post")) for node in methods)
        and all(map(harmless, methods))
    )
