"""Where an absent key means something else than null, and what else a first reader was misled by."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from atlas.analyse import counts, parameters
from atlas.analyse.memory import memory
from atlas.errors import ConfigError, NotDescribed, SpecError, UsageError
from atlas.graph.binding import bind
from atlas.graph.check import check
from atlas.resolution import config
from atlas.resolution.model import require_described
from atlas.resolution.resolve import resolve
from atlas.spec.library import Library

MISTRAL = {
    "model_type": "mistral",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 16,
    "vocab_size": 100,
    "max_position_embeddings": 64,
}


def heads(library: Library, **changes: Any) -> int:
    return bind(config.describe(MISTRAL | changes, library, id="m"), library).dims["n_kv_heads"]


def test_mistral_s_absent_keys_mean_what_transformers_takes_them_for(library: Library) -> None:
    transformers = pytest.importorskip("transformers", reason="its own defaults are the oracle")
    absent = transformers.MistralConfig(**{k: v for k, v in MISTRAL.items() if k != "model_type"})
    assert heads(library) == absent.num_key_value_heads == 8
    assert heads(library, num_key_value_heads=None) == 16
    model = config.describe(MISTRAL, library, id="m")
    assert any("num_key_value_heads is not stated; 8" in note for note in model.notes)
    assert absent.sliding_window == 4096
    assert model.numbers["window"] == 4096
    assert "window" not in config.describe(MISTRAL | {"sliding_window": None}, library, id="m").numbers


def test_what_changes_shapes_in_a_params_json_is_refused(library: Library) -> None:
    params = {"dim": 64, "n_layers": 2, "n_heads": 4, "vocab_size": 100, "head_dim": 24}
    with pytest.raises(ConfigError, match="head_dim is 24"):
        config.describe(params, library, id="p", file="params.json")


def test_positions_that_differ_between_layers_are_a_gap(library: Library) -> None:
    nested = {"full_attention": {"rope_type": "default", "rope_theta": 1e6}}
    model = config.describe(MISTRAL | {"sliding_window": None, "rope_parameters": nested}, library, id="m")
    with pytest.raises(NotDescribed, match="differs from layer to layer"):
        require_described(model, "run")


def test_fit_is_what_each_device_holds(library: Library) -> None:
    graph = bind(resolve("llama3.1-8b", library), library)
    each = memory(graph, context=8192, devices=8).per_device_bytes
    assert memory(graph, devices=8, fit=[each]).fit[0].context == 8192
    assert memory(graph, devices=8, fit=[each - 1]).fit[0].context == 8191


def test_options_of_memory_are_bounded(library: Library) -> None:
    graph = bind(resolve("llama3.1-8b", library), library)
    with pytest.raises(UsageError, match="--batch is"):
        memory(graph, batch=10**400)
    with pytest.raises(UsageError, match="--dtype is BOOL"):
        memory(graph, dtype="BOOL")


def test_no_bytes_are_claimed_of_quantised_weights(library: Library) -> None:
    quantised = MISTRAL | {"sliding_window": None, "quantization_config": {"quant_method": "gptq"}}
    assert (
        counts.count(bind(config.describe(quantised, library, id="q"), library), library).weight_bytes is None
    )


OWN = """
id = "mine"
name = "Mine"
publisher = "Me"
released = "2026-11"
kind = "dense decoder"
{family}
[[models]]
id = "{id}"
name = "Mine"
kind = "base"
architecture = "{architecture}"
aliases = ["{alias}"]
[models.config]
model_type = "llama"
hidden_size = 64
intermediate_size = 96
num_hidden_layers = 2
num_attention_heads = 4
vocab_size = 100
"""


def own(
    folder: Path, family: str = "", id: str = "mine-1b", architecture: str = "llama", alias: str = "me/mine"
) -> Library:
    (folder / "models").mkdir()
    text = OWN.format(family=family, id=id, architecture=architecture, alias=alias)
    (folder / "models" / "mine.toml").write_text(text)
    return Library(folder)


def test_a_model_of_one_s_own_states_its_settings_itself(tmp_path: Path) -> None:
    mine = own(tmp_path)
    graph = bind(resolve("ME/mine", mine), mine)
    # embedding and output 2 × 100 × 64, final norm 64; a layer: 4 × 64 × 64, 3 × 64 × 96, 2 × 64
    assert parameters.total(graph) == 12_800 + 64 + 2 * (16_384 + 18_432 + 128)
    assert check(mine).faults == ()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"family": 'follows = "nobody"'}, "follows = 'nobody'"),
        ({"family": 'follows = "mine"'}, "follows = 'mine'"),
        ({"id": "../../x"}, "expected lower-case letters"),
        ({"id": "llama3-8b"}, "is already a name of llama3-8b"),
        ({"alias": "meta-llama/Meta-Llama-3-8B"}, "already"),
        ({"architecture": "../../etc/passwd"}, "its settings describe llama"),
    ],
)
def test_specs_check_says_what_does_not_hold_together(
    changes: dict[str, str], words: str, tmp_path: Path
) -> None:
    assert any(words in fault for fault in check(own(tmp_path, **changes)).faults)


def test_a_tie_to_what_is_itself_tied_would_lose_the_matrix(tmp_path: Path) -> None:
    text = (Library().folders[0] / "architectures" / "decoder.toml").read_text()
    one = '"output.weight" = "tok_embeddings.weight" }'
    assert one in text
    (tmp_path / "architectures").mkdir()
    both = one.replace(" }", ', "tok_embeddings.weight" = "output.weight" }')
    (tmp_path / "architectures" / "decoder.toml").write_text(text.replace(one, both))
    tied = Library(tmp_path)
    with pytest.raises(SpecError, match="itself tied"):
        bind(resolve("llama3.2-1b", tied), tied)


def test_the_example_of_contributing_is_a_model(tmp_path: Path) -> None:
    guide = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text()
    examples = [example.partition("```")[0] for example in guide.split("```toml\n")[1:]]
    [block] = [example for example in examples if "[[models]]" in example]
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "mine.toml").write_text("\n".join(line.strip() for line in block.splitlines()))
    mine = Library(tmp_path)
    assert check(mine).faults == ()
    # Llama 3.2 1B's sizes, not tied: 1,235,814,400 and once more 128,256 × 2,048
    assert parameters.total(bind(resolve("mine-1b", mine), mine)) == 1_235_814_400 + 128_256 * 2_048


@pytest.mark.parametrize("word", ["n_layrs", "batch_limit"])
def test_a_key_that_gives_something_nothing_reads_is_a_fault(word: str, tmp_path: Path) -> None:
    text = (Library().folders[0] / "architectures" / "decoder.toml").read_text()
    one = 'num_hidden_layers       = "n_layers"\n'
    assert one in text
    (tmp_path / "architectures").mkdir()
    (tmp_path / "architectures" / "decoder.toml").write_text(text.replace(one, f'{one}layers = "{word}"\n'))
    faults = check(Library(tmp_path)).faults
    assert any(f"configs.llama.used: layers gives '{word}', which nothing reads" in fault for fault in faults)
