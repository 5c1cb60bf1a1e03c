"""Whole layers: missing, unexpected, or numbered from another start."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from atlas.checkpoint.findings import Finding
from atlas.checkpoint.tensor import product
from atlas.verification import formatting
from atlas.verification.comparison import Comparison


@dataclass(slots=True)
class _Stack:
    """The layers of one stack, whose names share a beginning.

    Attributes:
        axis: the axis that counts the layers.
        needed: layer -> the names it must have.
        tails: what may follow the layer's number in a name, with further indices as `*`.
        extra: undeclared layer -> its stored names.
        gone: layer of which no tensor is stored -> its names.
    """

    axis: str
    needed: dict[int, list[str]] = field(default_factory=dict)
    tails: set[str] = field(default_factory=set)
    extra: dict[int, list[str]] = field(default_factory=dict)
    gone: dict[int, list[str]] = field(default_factory=dict)

    def there(self) -> list[int]:
        """The stored layers, in order."""
        return sorted({*self.needed, *self.extra} - self.gone.keys())

    def without_gap(self) -> bool:
        there = self.there()
        return bool(there) and there[-1] - there[0] + 1 == len(there)


def miscounted(comparison: Comparison) -> Iterator[Finding]:
    """Missing and unexpected layers, one finding for each run of them, and whether the configured number is stale."""
    for stack in _stacks(comparison) if comparison.missing or comparison.unexpected else ():
        if stack.gone and stack.extra and stack.without_gap() and len(stack.there()) == len(stack.needed):
            yield _renumbered(stack)
        elif stack.extra and not stack.gone and stack.without_gap() and _are_whole(stack):
            yield _more_than_stated(comparison, stack)
        else:
            yield from _extra(comparison, stack)
            yield from _gone(comparison, stack)
        comparison.explained(_names(stack.extra))
        comparison.explained(_names(stack.gone))


def _renumbered(stack: _Stack) -> Finding:
    there, needed = formatting.layer_text(stack.there()), formatting.layer_text(stack.needed)
    return Finding(
        code="unexpected",
        tensor=_names(stack.extra)[0],
        expected=needed,
        found=there,
        count=len(_names(stack.extra)),
        message=f"{there} are stored, expected {needed}: they are numbered from another start; rename them",
    )


def _more_than_stated(comparison: Comparison, stack: _Stack) -> Finding:
    names, there = _names(stack.extra), len(stack.there())
    return Finding(
        code="unexpected",
        tensor=names[0],
        expected=len(stack.needed),
        found=there,
        count=len(names),
        message=f"{formatting.layer_text(stack.extra)} {_are(stack.extra)} unexpected ({_amount(comparison, names)}): {there:,} complete "
        f"layers are stored without a gap; {comparison.description.doubt(stack.axis)}",
    )


def _extra(comparison: Comparison, stack: _Stack) -> Iterator[Finding]:
    key, source = comparison.description.key(stack.axis), comparison.description.source
    for run in _runs(stack.extra):
        names = _names(run)
        yield Finding(
            code="unexpected",
            tensor=names[0],
            count=len(names),
            message=f"{formatting.layer_text(run)} {_are(run)} unexpected ({_amount(comparison, names)}): {key} in {source} is "
            f"{len(stack.needed):,}",
        )


def _gone(comparison: Comparison, stack: _Stack) -> Iterator[Finding]:
    there, stated = stack.there(), len(stack.needed)
    whole = not any(name in comparison.missing for layer in there for name in stack.needed.get(layer, ()))
    stale = stack.without_gap() and whole and not stack.extra and there[0] == min(stack.needed)
    hint = (
        f"; the stored {formatting.layer_text(there)} {_are(dict.fromkeys(there))} complete and without a gap: if the model has no more, "
        f"{comparison.description.doubt(stack.axis)}"
    )
    for run in _runs(stack.gone):
        names = _names(run)
        yield Finding(
            code="missing",
            tensor=names[0],
            expected=stated if stale else None,
            found=len(there) if stale else None,
            count=len(names),
            message=f"{formatting.layer_text(run)} {_are(run)} missing ({_amount(comparison, names)}){hint if stale else ''}",
        )


def _stacks(comparison: Comparison) -> list[_Stack]:
    stacks: dict[str, _Stack] = {}
    axes = {axis.index: name for name, axis in comparison.graph.axes.items()}
    for name, row in comparison.needed.items():
        layer = comparison.layer(name)
        if row.layers is not None and layer is not None:
            before = row.template.text.partition(f"{{{row.layers[0]}}}")[0]
            stack = stacks.setdefault(before, _Stack(axes[row.layers[0]]))
            stack.needed.setdefault(layer, []).append(name)
            stack.tails.add(formatting.wildcard(name.removeprefix(f"{before}{layer}")))
    for name in comparison.unexpected:
        for before, stack in stacks.items():
            number = name.removeprefix(before).partition(".")[0]
            if name.startswith(before) and number.isascii() and number.isdigit() and len(number) < 10:
                known = formatting.wildcard(name.removeprefix(before + number)) in stack.tails
                if known and int(number) not in stack.needed:
                    stack.extra.setdefault(int(number), []).append(name)
    for stack in stacks.values():
        stack.gone = {
            layer: names
            for layer, names in stack.needed.items()
            if all(name in comparison.missing for name in names)
        }
    return list(stacks.values())


def _are_whole(stack: _Stack) -> bool:
    """Whether each extra layer has as many names as some declared layer."""
    return {len(names) for names in stack.extra.values()} <= {len(names) for names in stack.needed.values()}


def _names(layers: Mapping[int, Sequence[str]]) -> list[str]:
    return [name for names in layers.values() for name in names]


MOST_RUNS = 3
"""Runs of layers that get a finding each; more are one finding."""


def _runs(layers: Mapping[int, list[str]]) -> list[Mapping[int, list[str]]]:
    runs = formatting.runs(layers)
    if len(runs) > MOST_RUNS:
        return [layers]
    return [{i: layers[i] for i in range(first, last + 1)} for first, last in runs]


def _are(layers: Mapping[int, object]) -> str:
    return "is" if len(layers) == 1 else "are"


def _amount(comparison: Comparison, names: Iterable[str]) -> str:
    names = list(names)
    shapes = [
        comparison.found[name].shape if name in comparison.found else comparison.needed[name].shape
        for name in names
    ]
    return f"{formatting.tensor_count(len(names))}, {sum(map(product, shapes)):,} parameters"
