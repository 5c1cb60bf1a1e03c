"""What a release needs besides weights: a tokenizer, special ids and a generation_config.json that fit the model, a model card."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from atlas.checkpoint.findings import Finding, listing, note
from atlas.checkpoint.inventory import Inventory
from atlas.errors import AtlasError, CheckpointError, shown
from atlas.resolution.settings import decode
from atlas.text import beyond_limits

TOKENIZERS = ("tokenizer.json", "tokenizer.model", "tekken.json", "spiece.model", "vocab.txt")
"""Files that are a tokenizer by themselves; `vocab.json` is one with `merges.txt`."""

MOST_POINTER_BYTES = 1024
"""A Git LFS pointer is shorter."""

SPECIAL_IDS = ("bos_token_id", "eos_token_id", "pad_token_id", "unk_token_id", "decoder_start_token_id")

_POINTER = b"version https://git-lfs"


def check(
    inventory: Inventory, rows: int | None, *, required: bool, configuration: str | None
) -> Iterator[Finding]:
    """The findings `release`: notes, errors if a release is required to be complete.

    On the Hub small files are read only if a release is required; otherwise only their names are looked at.

    Args:
        rows: of the token embedding, stored or declared; None if unknown.
        configuration: the configuration file next to the weights.
    """
    made = partial(Finding, code="release") if required else partial(note, code="release")
    store, sizes = inventory.store, inventory.sizes
    read = required or store.kind != "hub"
    pointers = set(_pointers(inventory)) if store.kind != "hub" else set[str]()
    if pointers:
        names = sorted(pointers)
        yield made(
            file=names[0],
            count=len(names),
            message=f"{listing(names)} {'is a Git LFS pointer' if len(names) == 1 else 'are Git LFS pointers'}, not the file "
            "itself; run `git lfs pull`, or download again",
        )
    if not _has_tokenizer(sizes):
        yield made(
            message=f"{store.location}: there is no tokenizer (tokenizer.json or tokenizer.model) next to the weights"
        )
    if required and not any(name.lower() in ("readme.md", "model_card.md") for name in sizes):
        yield note(code="release", message=f"{store.location}: there is no model card (README.md)")
    if not read:
        return
    files: dict[str, Mapping[str, Any]] = {}
    for name in ("tokenizer.json", "vocab.json", "generation_config.json", configuration or ""):
        if name and sizes.get(name) is not None and name not in pointers:
            try:
                files[name] = _object(store.text(name), f"{store.location}/{name}")
            except AtlasError as error:
                if name != configuration:  # the configuration has a finding of its own
                    yield made(file=name, message=f"{error.message}{'; ' if error.hint else ''}{error.hint}")
    for name in ("tokenizer.json", "vocab.json"):
        if name in files and rows is not None:
            largest = _largest_id(files[name], vocabulary=name == "vocab.json")
            if largest is not None and largest[1] >= rows:
                token, id = largest
                yield made(
                    file=name,
                    expected=rows - 1,
                    found=id if id < 2**63 else str(id)[:20],
                    message=f"{name} gives the token {shown(token)} the id {id:,}, but the embedding has only {rows:,} rows (ids "
                    f"0 to {rows - 1:,}); resize the embedding, or use the tokenizer that belongs to the weights",
                )
    named = [name for name in (configuration, "generation_config.json") if name in files]
    if rows is not None:
        yield from _outside(files, [name for name in named if name], rows, made)
    if configuration in files and "generation_config.json" in files:
        yield from _disagreeing(files[configuration], files["generation_config.json"], configuration, made)


def _has_tokenizer(names: Mapping[str, object]) -> bool:
    return (
        any(name in names for name in TOKENIZERS)
        or {"vocab.json", "merges.txt"} <= names.keys()
        or any(name.endswith(".tiktoken") for name in names)
    )


def _pointers(inventory: Inventory) -> Iterator[str]:
    """Files other than the model's weights that are Git LFS pointers."""
    weights = {*inventory.headers, *inventory.unread}
    for name, size in inventory.sizes.items():
        if size is not None and len(_POINTER) <= size <= MOST_POINTER_BYTES and name not in weights:
            try:
                if inventory.store.text(name).startswith(_POINTER):
                    yield name
            except CheckpointError:  # a FIFO, or no permission: nothing that this check is about
                continue


def _object(data: bytes, where: str) -> dict[str, Any]:
    """A JSON object; a tokenizer's may be longer than a configuration's may.

    Raises:
        AtlasError: it is not one.
    """
    try:
        return decode(data, where)
    except AtlasError:
        if len(data) < 2**20:
            raise
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{where}: not JSON that can be read: {beyond_limits(error)}") from None
    if not isinstance(value, dict):
        raise CheckpointError(f"{where}: expected a JSON object, found {shown(value)}")
    return value


def _largest_id(tokenizer: Mapping[str, Any], *, vocabulary: bool) -> tuple[str, int] | None:
    """The token with the largest id, of a tokenizer.json or a vocab.json; None if it lists no tokens."""
    model = tokenizer.get("model")
    vocab: Any = tokenizer if vocabulary else model.get("vocab") if isinstance(model, dict) else None
    largest: tuple[str, int] | None = None
    if isinstance(vocab, dict):
        ids = {token: id for token, id in vocab.items() if type(id) is int}
        if ids:
            token = max(ids, key=ids.__getitem__)
            largest = token, ids[token]
    elif isinstance(vocab, list) and vocab:  # Unigram: a token's place is its id
        last = vocab[-1]
        largest = str(last[0] if isinstance(last, list) and last else last), len(vocab) - 1
    added = tokenizer.get("added_tokens") if not vocabulary else None
    for each in added if isinstance(added, list) else ():
        if (
            isinstance(each, dict)
            and type(each.get("id")) is int
            and (largest is None or each["id"] > largest[1])
        ):
            largest = str(each.get("content")), each["id"]
    return largest


def _ids(settings: Mapping[str, Any], key: str) -> list[int]:
    value = settings.get(key)
    values = value if isinstance(value, list) else [value]
    return [each for each in values if type(each) is int]


def _outside(
    files: Mapping[str, Mapping[str, Any]], names: list[str], rows: int, made: partial[Finding]
) -> Iterator[Finding]:
    """Special ids that are no row of the embedding; the same key and id in two files is one finding."""
    seen: set[tuple[str, int]] = set()
    for name in names:
        for key in SPECIAL_IDS:
            wrong = [id for id in _ids(files[name], key) if not 0 <= id < rows and (key, id) not in seen]
            seen.update((key, id) for id in wrong)
            if wrong:
                yield made(
                    file=name,
                    expected=rows - 1,
                    found=shown(wrong[0]),
                    message=f"{name}: {key} is {shown(wrong[0])}, but the embedding has only the rows 0 to {rows - 1:,}; correct the "
                    "id, or remove the key",
                )


def _disagreeing(
    config: Mapping[str, Any], generation: Mapping[str, Any], file: str | None, made: partial[Finding]
) -> Iterator[Finding]:
    """Special ids of which generation_config.json and the configuration state different ones. A list may hold more than the other."""
    for key in SPECIAL_IDS:
        ours, theirs = set(_ids(config, key)), set(_ids(generation, key))
        if ours and theirs and not (ours <= theirs or theirs <= ours):
            yield made(
                file="generation_config.json",
                expected=shown(config[key]),
                found=shown(generation[key]),
                message=f"generation_config.json states {key} {shown(generation[key])}, but {file} states {shown(config[key])}; "
                "generate uses the former: correct whichever is wrong",
            )
