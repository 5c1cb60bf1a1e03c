"""Whole layers: missing, too many, or counted otherwise than the configuration counts them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from atlas.checkpoint.findings import Finding
from atlas.checkpoint.tensor import product
from atlas.verification import words
from atlas.verification.case import Case


@dataclass(slots=True)
class _Stack:
    """Layers whose names begin alike.

    Attributes:
        axis: what counts them.
        needed: layer -> the names it must have.
        tails: what may follow the layer's number in a name, further indices as stars.
        extra: layer beyond those -> the names that are there.
        gone: layer of which nothing is there -> its names.
    """

    axis: str
    needed: dict[int, list[str]] = field(default_factory=dict)
    tails: set[str] = field(default_factory=set)
    extra: dict[int, list[str]] = field(default_factory=dict)
    gone: dict[int, list[str]] = field(default_factory=dict)

    def there(self) -> list[int]:
        """The layers that are there, in order."""
        return sorted({*self.needed, *self.extra} - self.gone.keys())

    def without_gap(self) -> bool:
        there = self.there()
        return bool(there) and there[-1] - there[0] + 1 == len(there)


def miscounted(case: Case) -> Iterator[Finding]:
    """Layers that are missing or too many, each run of them once; and whether their configured number is stale."""
    for stack in _stacks(case) if case.missing or case.unexpected else ():
        if stack.gone and stack.extra and stack.without_gap() and len(stack.there()) == len(stack.needed):
            yield _renumbered(stack)
        elif stack.extra and not stack.gone and stack.without_gap() and _are_whole(stack):
            yield _more_than_stated(case, stack)
        else:
            yield from _extra(case, stack)
            yield from _gone(case, stack)
        case.explained(_names(stack.extra))
        case.explained(_names(stack.gone))


def _renumbered(stack: _Stack) -> Finding:
    there, needed = words.layers(stack.there()), words.layers(stack.needed)
    return Finding(
        code="unexpected",
        tensor=_names(stack.extra)[0],
        expected=needed,
        found=there,
        count=len(_names(stack.extra)),
        message=f"{there} are stored, expected {needed}: they are counted from another start; rename them",
    )


def _more_than_stated(case: Case, stack: _Stack) -> Finding:
    names, there = _names(stack.extra), len(stack.there())
    return Finding(
        code="unexpected",
        tensor=names[0],
        expected=len(stack.needed),
        found=there,
        count=len(names),
        message=f"{words.layers(stack.extra)} {_are(stack.extra)} unexpected ({_amount(case, names)}): {there:,} whole layers "
        f"are stored without a gap; {case.description.doubt(stack.axis)}",
    )


def _extra(case: Case, stack: _Stack) -> Iterator[Finding]:
    key, who = case.description.key(stack.axis), case.description.who
    for run in _runs(stack.extra):
        names = _names(run)
        yield Finding(
            code="unexpected",
            tensor=names[0],
            count=len(names),
            message=f"{words.layers(run)} {_are(run)} unexpected ({_amount(case, names)}): {key} in {who} is "
            f"{len(stack.needed):,}",
        )


def _gone(case: Case, stack: _Stack) -> Iterator[Finding]:
    there, stated = stack.there(), len(stack.needed)
    whole = not any(name in case.missing for layer in there for name in stack.needed.get(layer, ()))
    stale = stack.without_gap() and whole and not stack.extra and there[0] == min(stack.needed)
    hint = (
        f"; the {len(there):,} layers there are whole and without a gap: if they are all there are, "
        f"{case.description.doubt(stack.axis)}"
    )
    for run in _runs(stack.gone):
        names = _names(run)
        yield Finding(
            code="missing",
            tensor=names[0],
            expected=stated if stale else None,
            found=len(there) if stale else None,
            count=len(names),
            message=f"{words.layers(run)} {_are(run)} missing ({_amount(case, names)}){hint if stale else ''}",
        )


def _stacks(case: Case) -> list[_Stack]:
    stacks: dict[str, _Stack] = {}
    axes = {axis.index: name for name, axis in case.graph.axes.items()}
    for name, row in case.needed.items():
        layer = case.layer(name)
        if row.layers is not None and layer is not None:
            before = row.template.text.partition(f"{{{row.layers[0]}}}")[0]
            stack = stacks.setdefault(before, _Stack(axes[row.layers[0]]))
            stack.needed.setdefault(layer, []).append(name)
            stack.tails.add(words.starred(name.removeprefix(f"{before}{layer}")))
    for name in case.unexpected:
        for before, stack in stacks.items():
            number = name.removeprefix(before).partition(".")[0]
            if name.startswith(before) and number.isascii() and number.isdigit() and len(number) < 10:
                known = words.starred(name.removeprefix(before + number)) in stack.tails
                if known and int(number) not in stack.needed:
                    stack.extra.setdefault(int(number), []).append(name)
    for stack in stacks.values():
        stack.gone = {
            layer: names
            for layer, names in stack.needed.items()
            if all(name in case.missing for name in names)
        }
    return list(stacks.values())


def _are_whole(stack: _Stack) -> bool:
    """Whether each extra layer has as many names as one of those that must be there."""
    return {len(names) for names in stack.extra.values()} <= {len(names) for names in stack.needed.values()}


def _names(layers: Mapping[int, Sequence[str]]) -> list[str]:
    return [name for names in layers.values() for name in names]


MOST_RUNS = 3
"""Runs of layers that are a finding each."""


def _runs(layers: Mapping[int, list[str]]) -> list[Mapping[int, list[str]]]:
    runs = words.runs(layers)
    if len(runs) > MOST_RUNS:
        return [layers]
    return [{i: layers[i] for i in range(first, last + 1)} for first, last in runs]


def _are(layers: Mapping[int, object]) -> str:
    return "is" if len(layers) == 1 else "are"


def _amount(case: Case, names: Iterable[str]) -> str:
    names = list(names)
    shapes = [case.found[name].shape if name in case.found else case.needed[name].shape for name in names]
    return f"{words.tensors(len(names))}, {sum(map(product, shapes)):,} parameters"
