"""Reads a checkpoint's own configuration as a Model, with the tables of its architecture.

The Hub's `config.json` and Meta's `params.json` are read alike. A key is used; or it changes shapes in a way that is not
described, and the configuration is refused; or it changes only the computation (a gap: parameters are counted, and commands
that depend on the key refuse); or it is ignored by name; or it is unknown. Absent and `null` both mean the default.

    config_table    the architecture and its table of keys, by `model_type`
    config_keys     the keys, one by one
    config_defaults what follows beyond them: defaults, lists of layers, the head
    layer_rules     lists that give a word to each layer
    dimensions      sizes: stated, derived, missing
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from atlas import spec
from atlas.errors import UndescribedConfigError, shown
from atlas.resolution import config_defaults, config_table, dimensions, rope
from atlas.resolution.config_keys import Reading, flattened
from atlas.resolution.model import Model
from atlas.spec.library import Library

_OUTSIDE = ("tie_word_embeddings", "torch_dtype", "dtype", "quantization_config", "compression_config")
"""Keys of a multimodal configuration that hold for its language model."""


def describe(config: Mapping[str, Any], library: Library, *, id: str, file: str = "config.json") -> Model:
    """The model that a configuration describes; of a multimodal one, the language model inside.

    Args:
        config: the file's top-level object.
        id: the model's id and title: a path or a Hub id.
        file: `config.json` or `params.json`, which selects the tables.

    Raises:
        ConfigError: a dimension is missing, is not a positive integer or does not divide as needed; or a setting changes
            shapes in a way that is not described. The message names the key.
    """
    part = _language_model(config, library) if file == "config.json" else None
    notes: list[str] = []
    if part is not None:
        stated = {key: config[key] for key in _OUTSIDE if config.get(key) is not None}
        inside = {key: value for key, value in config[part].items() if key != "architectures"}
        notes.append(
            f"This is the text part of a multimodal model ({part} of model_type {config.get('model_type')}); "
            "its other parts are not described"
        )
        config = {**inside, **stated}
    architecture, table = config_table.table(config, library, id, file)
    head, table = _with_head(config, table, id)
    config = flattened(config, table)
    reading = Reading(architecture, table, library, id)
    unstated = {key: value for key, value in table.absent.items() if key not in config}
    reading.notes += [
        f"{key} is not stated; {shown(value)} is used, the default{config_defaults.default_of(table.whose)}"
        for key, value in unstated.items()
    ]
    config = {**unstated, **config}
    reading.keys(config)
    config_defaults.fill_defaults(reading, config)
    reading.conditional(config)
    if head is not None:
        config_defaults.apply_head(reading, head, config)
    if file == "params.json":
        config_defaults.derive_meta(reading)
    if "rope_mscale" in architecture.numbers:
        reading.numbers["rope_mscale"] = rope.score_scale(reading.rope)
    optional = frozenset(table.optional)
    sizes, underived = dimensions.check(
        reading.dims, architecture, library.axes, reading.key_of, reading.where, optional
    )
    dimensions.agree(config, table.agrees, sizes, reading.key_of, reading.where)
    config_defaults.fill_layers(reading, sizes)
    config_defaults.fill_kinds_of_rope(reading)
    flags = architecture.flags
    return Model(
        id=id,
        name=id,
        architecture=architecture.id,
        dims=reading.dims,
        numbers={name: number for name, number in reading.numbers.items() if name not in flags},
        flags=flags | {k: v for k, v in {**reading.numbers, **reading.flags}.items() if k in flags},
        rope=reading.rope,
        ropes=reading.ropes,
        lists=reading.lists,
        dtype=reading.dtype or "BF16",
        dtype_stated=reading.dtype is not None,
        context_length=reading.context_length,
        names="hf" if file == "config.json" else "meta",
        rests_on=id,
        notes=(*notes, *reading.notes),
        warnings=tuple(reading.warnings),
        unknown=tuple(reading.unknown),
        gaps=tuple(dict.fromkeys(reading.gaps)),
        optional=optional,
        underived=underived,
        text_part=part is not None,
        settings=reading.beyond,
    )


def _language_model(config: Mapping[str, Any], library: Library) -> str | None:
    """The key of the language model inside a multimodal configuration: the one object with a described `model_type`."""
    own = config.get("model_type")
    if not isinstance(own, str) or own in library.claims:
        return None
    found = [
        key
        for key, value in config.items()
        if isinstance(value, Mapping)
        and isinstance(value.get("model_type"), str)
        and value["model_type"] in library.claims
    ]
    return found[0] if len(found) == 1 else None


def _with_head(
    config: Mapping[str, Any], table: spec.Config, where: str
) -> tuple[spec.Head | None, spec.Config]:
    """The head of the class in `architectures`, and the table with the keys that this head reads.

    Raises:
        ConfigError: the class is not one of those described.
    """
    stated = config.get("architectures")
    if not table.classes or stated is None or stated == []:
        return None, table
    names = [name for name in table.classes if stated == [name]]
    if not names:
        described = " or ".join(map(shown, [*([name] for name in table.classes), None]))
        raise UndescribedConfigError(
            f"{where}: architectures is {shown(stated)}, which changes the model's tensors and is not described; "
            f"expected {described}"
        )
    head = table.classes[names[0]]
    own = {*head.used, *head.counted}
    ignored = [key for key in table.ignored if key not in own or key in head.counted]
    return head, table.model_copy(update={"used": table.used | head.used, "ignored": ignored})
