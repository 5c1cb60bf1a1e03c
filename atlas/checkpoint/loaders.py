"""Which weight files each loader opens in a folder; loaders disagree where a whole file and an index are both there.

transformers opens `model.safetensors` if it exists, and only without it the shards of `model.safetensors.index.json`
(`modeling_utils._get_resolved_checkpoint_files`, 5.24). vLLM takes every `*.safetensors` file and, where there is an index, keeps
those that it names (`weight_utils.filter_duplicate_safetensors_files`). diffusers goes by the index where there is one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from atlas.checkpoint import contents
from atlas.checkpoint.faults import show
from atlas.checkpoint.findings import Finding, listing, warning
from atlas.checkpoint.header import Examined
from atlas.checkpoint.index import Index
from atlas.checkpoint.tensor import Tensor

WHOLE = "model" + contents.SUFFIX


@dataclass(frozen=True, slots=True)
class LoaderFiles:
    """The weight files that each loader opens, in order; empty where it finds no weights."""

    transformers: tuple[str, ...] = ()
    vllm: tuple[str, ...] = ()
    diffusers: tuple[str, ...] = ()


def loader_files(names: Collection[str], index: Index | None) -> LoaderFiles:
    """What each loader opens in a folder of these files.

    Args:
        names: the files that exist.
        index: the index under its usual name, where it can be read.
    """
    indexed = index.files() if index is not None and index.name == contents.INDEX else ()
    every = tuple(sorted(contents.weights(names)))
    whole = (WHOLE,) if WHOLE in names else ()
    return LoaderFiles(
        transformers=whole or indexed,
        vllm=tuple(name for name in every if name in indexed) if indexed else every,
        diffusers=indexed or whole,
    )


def without_index(location: str, files: Collection[str]) -> Finding:
    """Shards without an index: an error, since only some loaders find them."""
    return Finding(
        code="loader",
        file=min(files),
        expected=contents.INDEX,
        count=len(files),
        message=f"{location}: {len(files):,} weight files and no index, {contents.INDEX}: transformers finds no weights "
        "here, vLLM loads all of the files; save the model again, which writes the index",
    )


def whole_next_to_index(
    index: Index, where: str, indexed: Mapping[str, Tensor], whole: Examined
) -> Iterator[Finding]:
    """A `model.safetensors` that the index does not name, while the shards that it names are there.

    Args:
        where: the folder or repository.
        indexed: the tensors of the shards.
    """
    who = f"transformers loads {WHOLE} first, vLLM and diffusers load the shards that {index.name} names"
    remove = f"delete {WHOLE}, or the index with its shards"
    if whole.header is None:
        fault = whole.faults[0]
        yield Finding(
            code="loader",
            file=WHOLE,
            message=f"{where}: {who}, and {WHOLE} cannot be read ({fault.message}); {remove}",
        )
        return
    stored = whole.header.tensors
    names = sorted(indexed.keys() ^ stored.keys())
    names += [
        name for name, tensor in stored.items() if name in indexed and indexed[name].shape != tensor.shape
    ]
    if not names:
        yield warning(
            code="loader",
            file=WHOLE,
            count=len(stored),
            message=f"{where}: {who}; both hold tensors of the same names and shapes, their values were not compared; "
            f"{remove}",
        )
        return
    name = names[0]
    in_whole, in_shards = stored.get(name), indexed.get(name)
    more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
    yield Finding(
        code="loader",
        tensor=name,
        file=WHOLE,
        expected=in_shards.shape if in_shards else None,
        found=in_whole.shape if in_whole else None,
        count=len(names),
        message=f"{where}: {who}, and they differ: {show(name)}{more} ({_shape(in_whole)} in {WHOLE}, "
        f"{_shape(in_shards)} in the shards); {remove}",
    )


def stale_index(index: Index, where: str, missing: Collection[str], used: Collection[str]) -> Finding:
    """An index of other shards than are there, next to a whole model."""
    who = "loaders go by the index and fail"
    if WHOLE in used:
        who = "transformers loads that file, vLLM and diffusers go by the index and fail"
    return Finding(
        code="index",
        file=index.name,
        expected=len(index.files()),
        found=len(index.files()) - len(missing),
        count=len(missing),
        message=f"{where}: the index is stale: it names {listing(sorted(missing))}, which {_are(missing)} not there, and the "
        f"whole model is in {listing(list(used))}: {who}; delete the index or save the model again",
    )


def _are(files: Collection[str]) -> str:
    return "is" if len(files) == 1 else "are"


def _shape(tensor: Tensor | None) -> str:
    return "absent" if tensor is None else f"shape {show(list(tensor.shape))}"
