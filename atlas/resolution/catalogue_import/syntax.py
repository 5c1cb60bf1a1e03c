"""The small part of Python that Meta's catalogue is written in, evaluated from its syntax trees.

Nothing is executed or imported. The language: literals; lists and dicts with `*` and `**` spreads; `+` of
lists; module constants; members of an `Enum`; keyword calls of a `BaseModel`, its fields and properties; and
functions made of `return` and `if` with `==` or `in`. Whatever else is met on the way is refused, with file and
line: a value is never guessed. What is not on the way, such as another function, is not looked at, save that a
name bound twice has no value here. Depth and steps are bounded: every file ends soon.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from atlas.errors import ConfigError
from atlas.resolution.catalogue_import.assignments import (
    assigned,
    bindings,
    harmless,
    is_plain,
    is_plain_import,
    plain_names,
)

# Meta's catalogue takes 20,000 steps and nests 16 deep. A level takes four of Python's thousand frames.
MOST_STEPS = 200_000
MOST_DEPTH = 100

HINT = "this reader knows the syntax of llama-models 0.3.0: read that version, or report the new form"


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an Enum; as in Python, two names for one value are one member."""

    enum: ast.ClassDef
    value: object


@dataclass(frozen=True, slots=True, eq=False)
class Instance:
    """What `Model(...)` makes; `uses` holds the constants and functions that its arguments took values from."""

    call: ast.Call
    kind: ast.ClassDef
    fields: dict[str, object]
    uses: dict[str, ast.stmt]


class Evaluator:
    """Evaluates what some files define together; `home` tells the file of each node.

    A function or a class is, as a value, its node.
    """

    def __init__(self, trees: Mapping[Path, ast.Module]) -> None:
        self.home = {node: path for path, tree in trees.items() for node in ast.walk(tree)}
        stems = {path.stem for path in trees}
        top = [node for tree in trees.values() for node in tree.body if not is_plain_import(node, stems)]
        self._names = bindings(top)
        self._members = {node: bindings(node.body) for node in top if isinstance(node, ast.ClassDef)}
        self._uses: dict[str, ast.stmt] = {}
        self._steps = self._depth = 0

    def refusal(self, node: ast.expr | ast.stmt, why: str) -> ConfigError:
        """The error to raise about what stands at a node."""
        return ConfigError(f"{self.home[node]}, line {node.lineno} is refused: {why}", hint=HINT)

    def call(self, name: str) -> object:
        """What a function returns when called without arguments; None if no function has that name.

        Raises:
            ConfigError: something outside the language is on the way.
        """
        match self._names.get(name):
            case [ast.FunctionDef() as function] if harmless(function):
                return self._run(function, [], function)
        return None

    def attribute(self, owner: object, name: str, at: ast.expr) -> object:
        """A field or property of an instance, or a member of an Enum, asked for at a node.

        Raises:
            ConfigError: there is none, or something outside the language is on the way.
        """
        match owner:
            case Instance(fields=fields) if name in fields:
                return fields[name]
            case Instance(kind=kind):
                method = self._bound(self._members[kind], name, at)
                if isinstance(method, ast.FunctionDef) and plain_names(method.decorator_list) == {"property"}:
                    return self._run(method, [owner], at)
            case ast.ClassDef() if is_plain(owner, "Enum"):
                if value := assigned(self._bound(self._members[owner], name, at)):
                    return Member(owner, self._evaluate(value, {}))
        raise self.refusal(at, f"`.{name}` is neither a field, a property nor a member of an Enum")

    def _evaluate(self, node: ast.expr, local: Mapping[str, object]) -> object:
        self._steps += 1
        self._depth += 1
        if self._steps > MOST_STEPS or self._depth > MOST_DEPTH:
            raise self.refusal(node, f"more than {MOST_STEPS} steps, or nested more than {MOST_DEPTH} deep")
        value = self._value(node, local)
        # What has a name could be changed elsewhere, and doubled at every use.
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(value, list | dict):
            raise self.refusal(node, f"a {type(value).__name__} that has a name of its own")
        self._depth -= 1
        return value

    def _value(self, node: ast.expr, local: Mapping[str, object]) -> object:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                return -value
            case ast.Name(id=name):
                return local[name] if name in local else self._global(name, node)
            case ast.Attribute(value=owner, attr=name):
                return self.attribute(self._evaluate(owner, local), name, node)
            case ast.List(elts=elements):
                return list(self._items(elements, local))
            case ast.Dict():
                return self._dict(node, local)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                one, two = self._evaluate(left, local), self._evaluate(right, local)
                if isinstance(one, list) and isinstance(two, list):
                    return one + two
                raise self.refusal(node, "`+` of anything but lists")
            case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
                return self._evaluate(left, local) == self._evaluate(right, local)
            case ast.Compare(ops=[ast.In()], comparators=[ast.List() | ast.Set() | ast.Tuple() as right]):
                return self._evaluate(node.left, local) in list(self._items(right.elts, local))
            case ast.Call():
                called = self._evaluate(node.func, local)
                if isinstance(called, ast.ClassDef):
                    return self._construct(called, node, local)
                if isinstance(called, ast.FunctionDef) and not node.keywords:
                    return self._run(called, list(self._items(node.args, local)), node)
                raise self.refusal(node, f"a call of `{ast.unparse(node.func)}` in this form")
        raise self.refusal(node, f"an expression of the kind `{type(node).__name__}`")

    def _items(self, nodes: Iterable[ast.expr], local: Mapping[str, object]) -> Iterator[object]:
        for node in nodes:
            if not isinstance(node, ast.Starred):
                yield self._evaluate(node, local)
            elif isinstance(spread := self._evaluate(node.value, local), list):
                yield from spread
            else:
                raise self.refusal(node, "`*` of anything but a list")

    def _dict(self, node: ast.Dict, local: Mapping[str, object]) -> dict[str, object]:
        found: dict[str, object] = {}
        for key, item in zip(node.keys, node.values, strict=True):
            name = key and self._evaluate(key, local)
            value = self._evaluate(item, local)
            if isinstance(name, str):
                found[name] = value
            elif key is None and isinstance(value, dict):
                found |= value
            else:
                raise self.refusal(item, "a key that is not text" if key else "`**` of anything but a dict")
        return found

    def _global(self, name: str, at: ast.expr) -> object:
        node = self._bound(self._names, name, at)
        if isinstance(node, ast.ClassDef):
            return node
        self._uses[name] = node
        if isinstance(node, ast.FunctionDef) and harmless(node):
            return node
        if value := assigned(node):
            return self._evaluate(value, {})
        raise self.refusal(at, f"`{name}` is neither a class, an undecorated function nor a constant")

    def _construct(self, kind: ast.ClassDef, call: ast.Call, local: Mapping[str, object]) -> Instance:
        if not is_plain(kind, "BaseModel"):
            raise self.refusal(call, f"`{kind.name}` is not a plain `BaseModel`")
        self._uses = {}
        given = {item.arg: self._evaluate(item.value, local) for item in call.keywords}
        uses, self._uses = self._uses, {}
        if call.args or None in given or len(given) < len(call.keywords):
            raise self.refusal(call, f"`{kind.name}(...)` with anything but keywords, each once")
        fields: dict[str, object] = {}
        for name in self._members[kind]:
            match self._bound(self._members[kind], name, call):
                case ast.AnnAssign() if name in given:
                    fields[name] = given.pop(name)
                case ast.AnnAssign(value=None):
                    raise self.refusal(call, f"`{kind.name}(...)` without `{name}`")
                case ast.AnnAssign(value=ast.Call(made, [], [ast.keyword("default_factory", maker)])) if (
                    plain_names([made, maker]) == {"Field", "dict"}
                ):
                    fields[name] = {}
                case ast.AnnAssign(value=ast.expr() as default):
                    fields[name] = self._evaluate(default, {})
        if given:
            raise self.refusal(call, f"`{kind.name}` has no field `{next(iter(given))}`")
        return Instance(call, kind, fields, uses)

    def _run(self, function: ast.FunctionDef, given: list[object], at: ast.expr | ast.stmt) -> object:
        plain = function.args.args
        if len(plain) != len(given) or plain != list(ast.iter_child_nodes(function.args)):
            raise self.refusal(at, f"a call of `{function.name}` in this form")
        local = {argument.arg: value for argument, value in zip(plain, given, strict=True)}
        todo = function.body[::-1]
        while todo:
            match todo.pop():
                case ast.Return(value=ast.expr() as value):
                    return self._evaluate(value, local)
                case ast.If(test=test, body=body, orelse=otherwise):
                    holds = self._evaluate(test, local)
                    if not isinstance(holds, bool):
                        raise self.refusal(test, "a condition that is neither true nor false")
                    todo += (body if holds else otherwise)[::-1]
                case ast.Expr(value=ast.Constant()):
                    pass  # a docstring
                case node:
                    raise self.refusal(node, f"a `{type(node).__name__}` statement in `{function.name}`")
        raise self.refusal(at, f"`{function.name}` ends without a `return`")

    def _bound(self, names: Mapping[str, list[ast.stmt]], name: str, at: ast.expr) -> ast.stmt:
        found = names.get(name, [])
        if len(found) != 1:
            raise self.refusal(at, f"`{name}` is {'bound more than once' if found else 'not defined'}")
        return found[0]
