"""At 60 and 80 columns no id, name or number of a table is broken over two lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.verify.checkpoints import CONFIG, hub, save

from .conftest import run

WIDTHS = ["60", "80"]


def words_of(rows: list[dict[str, Any]], keys: tuple[str, ...]) -> set[str]:
    """The values of rows under some keys, or under those of the names that a row has in each convention."""
    names = [{**row, **(row["name"] if isinstance(row.get("name"), dict) else {})} for row in rows]
    return {row[key] for row in names for key in keys if row.get(key)}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    ("command", "part", "keys"),
    [
        ("params llama3.1-8b", "components", ("id",)),
        ("params llama3.2-1b --by tensor", "tensors", ("hf", "meta", "component")),
        ("memory llama3.1-8b --context 8192", None, ()),
        (
            "flops llama3.1-405b:bf16-mp8 --positions 4096 --flops 989T --bandwidth 3.35TB",
            "components",
            ("id",),
        ),
        ("diff llama3.1-8b llama3-70b", "components", ("id",)),
        ("diff llama3.1-8b llama3-70b", "dims", ("name",)),
        ("models --family llama3.1", "models", ("id", "hub_id")),
    ],
)
def test_ids_are_whole(command: str, part: str | None, keys: tuple[str, ...], width: str) -> None:
    text = run(*command.split(), COLUMNS=width).out
    answer = run(*command.split(), "--json").json
    wanted = words_of(answer[part], keys) if part else set()
    missing = {word for word in wanted if word not in text.split()}
    assert not missing
    numbers = [f"{value:,}" for value in answer.values() if isinstance(value, int) and value > 10**6]
    shown = run(*command.split()).out
    assert {number for number in numbers if number in shown} <= set(text.replace(":", " ").split())


@pytest.mark.parametrize("width", WIDTHS)
def test_step_ids_are_whole(width: str) -> None:
    """The wide table has one id a row; the narrow one has the same, each on a line of its own or first in its row."""
    wide = run("trace", "llama3.1-8b", COLUMNS="200").out.splitlines()
    ids = [
        line.split()[0] for line in wide if line.startswith(("layers", "tok_embeddings.", "norm.", "logits"))
    ]
    narrow = run("trace", "llama3.1-8b", COLUMNS=width).out
    firsts = {line.split()[0] for line in narrow.splitlines() if line[:1].strip()}
    assert len(ids) > 20
    assert set(ids) <= firsts


@pytest.mark.parametrize("width", WIDTHS)
def test_findings_and_their_components_are_whole(width: str, tmp_path: Path) -> None:
    tensors = {name: tensor for name, tensor in hub().items() if "layers.1.mlp" not in name}
    save(tmp_path, {"model.safetensors": tensors}, config=CONFIG)
    text = run("verify", str(tmp_path), COLUMNS=width).out
    answer = run("verify", str(tmp_path), "--json").json
    assert answer["verdict"] == "differs"
    for component in answer["components"]:
        if component["difference"]:
            assert component["id"] in text.split()
            assert f"{component['difference']:+,}" in text.split()


@pytest.mark.parametrize("width", ["40", *WIDTHS])
def test_next_tokens_and_their_numbers_are_whole(width: str, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="a forward pass needs torch")
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    options = ["--weights", "random", "--token-ids", "1,2,3"]
    text = run("run", str(tmp_path / "config.json"), *options, COLUMNS=width).out
    answer = run("run", str(tmp_path / "config.json"), *options, "--json").json
    for token in answer["next_tokens"]:
        assert str(token["id"]) in text.split()
        assert f"{token['logit']:.4f}" in text.split()
