"""What several test files need: the library, bound models, the shared material, a small configuration, and Meta's modules.

Expected values in these tests come from somewhere else: the issue, arithmetic written out, a published index, transformers
or Meta's own code. `../shared` is not part of the repository, so tests that read it skip where it is absent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from atlas.graph.binding import bind
from atlas.graph.graph import Graph
from atlas.resolution import config
from atlas.resolution.resolve import resolve
from atlas.spec.library import Library
from tests.samples import SAMPLES, Sample
from tests.verify.checkpoints import CONFIG

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared"


@pytest.fixture(scope="session")
def library() -> Library:
    """The atlas's own descriptions."""
    return Library()


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of published indexes, configurations and pins that lies beside the repository."""
    if not SHARED.is_dir():
        pytest.skip(f"{SHARED} is not there: published indexes and configurations are not in the repository")
    return SHARED


@pytest.fixture(scope="session")
def graph_of(library: Library) -> Callable[[str], Graph]:
    """A name as on the command line -> the bound model; each is bound once in a session."""
    known: dict[str, Graph] = {}

    def bound(name: str) -> Graph:
        if name not in known:
            known[name] = bind(resolve(name, library), library)
        return known[name]

    return bound


@pytest.fixture(scope="session")
def bound(library: Library) -> Callable[..., Graph]:
    """A configuration's settings -> the bound model."""

    def make(settings: Mapping[str, Any], file: str = "config.json") -> Graph:
        return bind(config.describe(settings, library, id="a test's configuration", file=file), library)

    return make


@pytest.fixture(params=SAMPLES, ids=lambda sample: sample.name)
def sample(request: pytest.FixtureRequest) -> Sample:
    """Every sample of every architecture, one after the other."""
    found: Sample = request.param
    return found


@pytest.fixture
def small() -> dict[str, Any]:
    """A fresh config.json of a small Llama, every size different."""
    return dict(CONFIG)


@pytest.fixture
def write_config(tmp_path: Path) -> Callable[..., Path]:
    """Settings, or the very text of a file -> the path of a configuration file that holds them."""

    def write(settings: Mapping[str, Any] | str, name: str = "config.json") -> Path:
        path = tmp_path / name
        path.write_text(settings if isinstance(settings, str) else json.dumps(settings), encoding="utf-8")
        return path

    return write


@pytest.fixture
def overlay(tmp_path: Path) -> Callable[[Mapping[str, str]], Library]:
    """Files to lay over the atlas's own, path -> TOML -> the library."""

    def make(files: Mapping[str, str]) -> Library:
        folder = tmp_path / "specs"
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return Library(folder)

    return make


@pytest.fixture(scope="session")
def meta(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """Meta's own modules, `llama_models.llama3.model`, with one process standing for the model-parallel group."""
    distributed = pytest.importorskip("torch.distributed", reason="Meta's modules are built with torch")
    initialize = pytest.importorskip(
        "fairscale.nn.model_parallel.initialize", reason="Meta's modules are built with fairscale"
    )
    module = pytest.importorskip("llama_models.llama3.model", reason="llama-models holds Meta's modules")
    started_here = not distributed.is_initialized()
    if started_here:
        meeting_point = tmp_path_factory.mktemp("group") / "store"
        distributed.init_process_group("gloo", init_method=f"file://{meeting_point}", rank=0, world_size=1)
    if not initialize.model_parallel_is_initialized():
        initialize.initialize_model_parallel(1)
    yield module
    if started_here:
        initialize.destroy_model_parallel()
        distributed.destroy_process_group()
