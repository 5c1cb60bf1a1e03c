"""A MODEL that is a path: regular files within a bound are read, all else is refused at once, and `atlas.load` takes paths."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import atlas
from atlas.errors import ConfigError, UnknownModel, UsageError
from atlas.execution.options import Options
from atlas.resolution.model import messages
from atlas.resolution.resolve import from_path, resolve
from atlas.resolution.settings import MOST_BYTES
from atlas.spec.library import Library


@pytest.mark.parametrize("name", ["config.json", "params.json", "model"])
@pytest.mark.parametrize("kind", ["fifo", "device", "circle", "broken", "large"])
def test_what_is_no_configuration_file(kind: str, name: str, tmp_path: Path, library: Library) -> None:
    path = tmp_path / name
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "large":
        with path.open("wb") as file:
            file.truncate(2**40)
    else:
        path.symlink_to({"device": "/dev/zero", "circle": path, "broken": tmp_path / "none"}[kind])
    places = [path] if name == "model" else [path, tmp_path]
    for place in places:
        with pytest.raises(ConfigError) as caught:
            from_path(place, library)
        assert str(path) in caught.value.message
        assert f"{MOST_BYTES:,}" in caught.value.message or kind != "large"


@pytest.mark.parametrize(
    "name",
    ["~\0", "~no-such-user\0/x", "a\0b", "a" * 300, "/" + "a" * 300, "/" + "a/" * 3000, "\udcff/\udcff/x"],
)
def test_names_that_no_file_has(name: str, library: Library) -> None:
    with pytest.raises((ConfigError, UnknownModel)):
        resolve(name, library)


def test_a_path_object_is_a_path(
    write_config: Callable[..., Path], small: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_config(small)
    expected = atlas.load(str(path)).params().total_parameters
    assert atlas.load(path).params().total_parameters == expected
    (tmp_path / "llama3.1-8b").mkdir()
    (tmp_path / "llama3.1-8b" / "config.json").write_text(json.dumps(small))
    monkeypatch.chdir(tmp_path)
    assert atlas.load(Path("llama3.1-8b")).params().total_parameters == expected
    assert (
        atlas.load("llama3.1-8b").params().total_parameters == 8_030_261_248
    )  # the catalogue's, as the README says


@pytest.mark.parametrize(
    "value",
    [1.5, float("nan"), float("inf"), True, "2", -1, 10**5000],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_count_is_refused(value: Any) -> None:
    model = atlas.load("llama3.2-1b")
    for ask in (
        lambda: model.params(devices=value),
        lambda: model.params(layer=value),
        lambda: model.trace(batch=value, positions=1),
        lambda: model.trace(batch=1, positions=value),
        lambda: model.trace(positions=1, past=value),
        lambda: model.trace(layer=value),
        lambda: model.memory(batch=value),
        lambda: model.memory(context=value),
        lambda: model.memory(devices=value),
        lambda: model.memory(fit=[value]),
        lambda: model.memory(fit="80GB", reserve=value),
        lambda: model.flops(positions=value),
        lambda: Options(max_new_tokens=value).check(),
        lambda: Options(seed=value).check(),
    ):
        with pytest.raises(UsageError, match=r"expected|has no unit"):
            ask()


def test_specs_may_be_one_folder(overlay: Callable[[Mapping[str, str]], Library]) -> None:
    folder = overlay({"axes.toml": '[zz]\nmeaning = "x"\nsymbol = "x"\n'}).folders[-1]
    for specs in (folder, str(folder), [folder]):
        assert "zz" in atlas.load("llama3.2-1b", specs=specs).library.axes


def test_thousands_of_unknown_keys_are_counted(
    write_config: Callable[..., Path], small: dict[str, Any], library: Library
) -> None:
    unknown = {f"unknown_{i}": i for i in range(5_000)}
    warnings = messages(from_path(write_config(small | unknown), library))
    assert len(warnings) == 21
    assert "4,980 more keys" in warnings[-1]
