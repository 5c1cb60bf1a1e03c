"""Finds which names the statements of a module or class bind, from the syntax tree.

This file evaluates nothing. `syntax` evaluates a name, and only if one plain statement binds it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

_HARMLESS = {"cache", "lru_cache", "property", "classmethod", "staticmethod"}


def bindings(statements: Iterable[ast.stmt]) -> dict[str, list[ast.stmt]]:
    """Name -> the statements that bind it, including those inside a condition or a loop."""
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


def is_plain_import(statement: ast.stmt, stems: set[str]) -> bool:
    """Whether a statement only imports names that another of the files defines, without renaming them."""
    match statement:
        case ast.ImportFrom(module=str(module), names=names):
            return module.split(".")[-1] in stems and not any(alias.asname for alias in names)
    return False


def assigned(statement: ast.stmt) -> ast.expr | None:
    """The value in `name = value`, with or without a type annotation; None for any other statement."""
    match statement:
        case ast.Assign(targets=[ast.Name()], value=value) | ast.AnnAssign(target=ast.Name(), value=value):
            return value
    return None


def plain_names(nodes: Iterable[ast.expr]) -> set[str]:
    """The names among these expressions; an expression that is not a plain name becomes an empty string."""
    return {node.id if isinstance(node, ast.Name) else "" for node in nodes}


def harmless(function: ast.FunctionDef) -> bool:
    """Whether none of the decorators changes what the function returns or makes the method a validator."""
    return plain_names(function.decorator_list) <= _HARMLESS


def is_plain(kind: ast.ClassDef, base: str) -> bool:
    """Whether a class has exactly that base and does not change how its instances are created or compared."""
    methods = [node for node in kind.body if isinstance(node, ast.FunctionDef)]
    return (
        (plain_names(kind.bases), kind.keywords, kind.decorator_list) == ({base}, [], [])
        and not any(node.name.startswith(("_", "model_post")) for node in methods)
        and all(map(harmless, methods))
    )
