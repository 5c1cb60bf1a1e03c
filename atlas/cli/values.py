"""The values that a shell completes: models, families, nodes, dtypes and the like, found without a heavy import."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_type_hints

from typer.models import ParameterInfo

import atlas

Values = Callable[[Any, list[str], str], list[str]]


def attach(command: Callable[..., Any]) -> None:
    """Let the parameters of a command complete, by their metavar or option name (see `VALUES`)."""
    hints = get_type_hints(command, include_extras=True)
    for hint in hints.values():
        for info in getattr(hint, "__metadata__", ()):
            if isinstance(info, ParameterInfo):
                # Within Annotated the first name of an option is what Typer calls its default.
                names = (info.default, *(info.param_decls or ()), info.metavar)
                info.autocompletion = next(
                    (VALUES[name] for name in names if isinstance(name, str) and name in VALUES), None
                )
    command.__annotations__ = hints


def models(ctx: Any, args: list[str], incomplete: str) -> list[str]:
    """The ids of the catalogue. Hub ids are offered once a slash is typed."""
    wanted = incomplete.lower()
    ids = []
    for family in _families():
        for entry in family.get("models", ()):
            hub = [entry.get("hub_id"), *entry.get("aliases", ())] if "/" in incomplete else []
            ids += [entry["id"], *(name for name in hub if isinstance(name, str))]
    return [name for name in ids if name.lower().startswith(wanted)]


def families(ctx: Any, args: list[str], incomplete: str) -> list[str]:
    return [family["id"] for family in _families() if family["id"].startswith(incomplete.lower())]


def publishers(ctx: Any, args: list[str], incomplete: str) -> list[str]:
    names = dict.fromkeys(family.get("publisher", "") for family in _families())
    return [name for name in names if name.lower().startswith(incomplete.lower())]


def nodes(ctx: Any, args: list[str], incomplete: str) -> list[str]:
    """What has a page in the model that is already typed; nothing where that cannot be described."""
    from atlas.cli.options import library_of
    from atlas.errors import AtlasError
    from atlas.graph.binding import bind
    from atlas.pages import names
    from atlas.resolution.resolve import catalogue_entry, resolve

    model = ctx.params.get("model")
    model = model[0] if isinstance(model, list | tuple) and model else model
    try:
        library = library_of(None)
        # A Hub id outside the catalogue would open a socket, which a completion must not.
        if not isinstance(model, str) or not (catalogue_entry(model, library) or Path(model).exists()):
            return []
        found = names(bind(resolve(model, library), library))
    except (AtlasError, OSError, ValueError):
        return []
    return [name for name in found if name.startswith(incomplete)]


def dtypes(ctx: Any, args: list[str], incomplete: str) -> list[str]:
    from atlas.dtypes import BITS

    found = [code for code in BITS if code.startswith(incomplete.upper())]
    # A shell drops a completion that does not begin with what is typed.
    return [code.lower() for code in found] if incomplete.islower() else found


def schemas(ctx: Any, args: list[str], incomplete: str) -> list[str]:
    from atlas.cli.schema import RESULTS

    return [name for name in RESULTS if name.startswith(incomplete)]


def codes(ctx: Any, args: list[str], incomplete: str) -> list[str]:
    """Codes of findings, of which several may be typed with commas between."""
    from atlas.checkpoint.findings import CODES

    before, comma, last = incomplete.rpartition(",")
    return [before + comma + code for code in CODES if code.startswith(last)]


def _one_of(*words: str) -> Values:
    return lambda ctx, args, incomplete: [word for word in words if word.startswith(incomplete)]


VALUES: Mapping[str, Values] = {
    "MODEL": models,
    "MODEL…": models,
    "A": models,
    "B": models,
    "--model": models,
    "--only": models,
    "--family": families,
    "--publisher": publishers,
    "NODE": nodes,
    "--component": nodes,
    "--dtype": dtypes,
    "--kv-dtype": dtypes,
    "--ignore": codes,
    "--device": _one_of("auto", "cpu", "cuda", "mps"),
    "COMMAND": schemas,
}
"""The values of an argument, by its metavar, or of an option, by its name."""


def _families() -> Iterator[dict[str, Any]]:
    """The tables of `specs/models`, read without `atlas.spec`, whose classes take longer to make than all the rest."""
    package = Path(atlas.__file__).parent
    inside = package / "specs"
    for file in sorted((inside if inside.is_dir() else package.parent / "specs").glob("models/*.toml")):
        try:
            table = tomllib.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(table.get("id"), str):
            yield table
