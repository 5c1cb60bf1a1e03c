"""`atlas memory`, `flops` and `params` as they are typed: sizes with units, what fits, exit codes, formats and names."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.verify.checkpoints import CONFIG

from .conftest import run

WEIGHTS = 2 * 8_030_261_248
WHOLE = WEIGHTS + 131_072 * 131_072 + 128_256 * 6
"""The 8B with its whole context: weights, cache, logits in float32 and the scores they are cast from."""


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG), encoding="utf-8")
    return str(path)


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_what_does_not_fit_is_said_in_one_line() -> None:
    """24 GiB less 1 GiB: what the whole context lacks of it, and the devices it takes."""
    ran = run("memory", "llama3.1-8b", "--fit", "24GiB", "--reserve", "1GiB")
    assert ran.code == 0, ran.err
    (line,) = [line for line in ran.out.splitlines() if line.startswith("fit ")]
    short = WHOLE - 23 * 2**30
    assert (
        f"24.00 GiB (25,769,803,776 bytes), 1.00 GiB of it reserved: 131,072 positions do not fit, {short / 2**30:.2f} GiB short"
        in line
    )
    assert "over 2 devices they fit" in line
    assert "longest context " in line
    unreserved = run("memory", "llama3.1-8b", "--fit", "24GiB")
    assert "nothing reserved" in unreserved.out


def test_exit_code_is_1_where_it_does_not_fit() -> None:
    """8,192 positions take 17.1 × 10⁹ bytes: 24 GB hold them, and 24 GB at a share of 0.7 (16.8 × 10⁹) do not."""
    fits = run("memory", "llama3.1-8b", "--context", "8k", "--fit", "24GB", "--exit-code", "--json")
    assert (fits.code, fits.json["context"], fits.json["fit"][0]["fits"]) == (0, 8_192, True)
    short = run(
        "memory",
        "llama3.1-8b",
        "--context",
        "8k",
        "--fit",
        "24GB",
        "--utilization",
        "0.7",
        "--exit-code",
        "--json",
    )
    needed = WEIGHTS + 2**30 + 128_256 * 6
    assert short.code == 1
    assert short.json["fit"][0]["short_bytes"] == needed - 168 * 10**8
    both = run("memory", "llama3.1-8b", "--context", "8k", "--fit", "24GB", "--fit", "16GB", "--exit-code")
    assert both.code == 1


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["memory", "llama3.1-8b", "--fit", "24"], "--fit '24' has no unit"),
        (["memory", "llama3.1-8b", "--fit", "24GB", "--reserve", "1"], "--reserve '1' has no unit"),
        (["memory", "llama3.1-8b", "--exit-code"], "--exit-code goes with --fit"),
        (["memory", "llama3.1-8b", "--utilization", "0.9"], "--utilization goes with --fit"),
        (["flops", "llama3.1-8b", "--flops", "989", "--bandwidth", "3.35TB"], "--flops '989' is not a rate"),
        (
            ["flops", "llama3.1-8b", "--flops", "989T", "--bandwidth", "3.35"],
            "--bandwidth '3.35' is not a rate",
        ),
        (["flops", "llama3.1-8b", "--attention", "none"], "--attention"),
        (["params", "llama3.1-8b", "--names", "gguf"], "no names in the convention 'gguf'"),
        (["params", "llama3.1-8b", "--layer", "32"], "--layer is 32, expected 0 to 31"),
        (["memory", "llama3.1-8b", "--csv", "--json"], "exclude each other"),
    ],
)
def test_misuse(command: list[str], words: str) -> None:
    ran = run(*command)
    assert ran.code == 2
    assert words in ran.err + ran.out
    assert len(ran.err.strip().splitlines()) <= 1


def test_a_quantised_configuration_has_all_figures_but_the_weights(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG | {"quantization_config": {"quant_method": "awq", "bits": 4}}))
    ran = run("memory", str(path), "--json")
    assert ran.code == 0, ran.err
    assert ran.json["weights_bytes"] is ran.json["total_bytes"] is None
    assert "quantised" in ran.json["weights_reason"]
    assert ran.json["kv_bytes"] == 64 * 3 * 2 * 6 * 4 * 2
    shown = run("memory", str(path), "--fit", "1GB").out
    assert "not known: the weights are stored quantised" in shown
    assert "not known, since the weights' size is not" in shown
    assert run("memory", str(path), "--fit", "1GB", "--exit-code").code == 2
    assert run("memory", str(path), "--fit", "1GB", "--exit-code", "--dtype", "F4").code == 0
    assert (
        run("flops", str(path), "--flops", "1T", "--bandwidth", "1TB", "--json").json["seconds_at_least"]
        is None
    )


def test_csv_is_for_programs(config: str) -> None:
    """Plain integers, shapes as 80x48, dtype and bytes; 3 layers, 48 wide, 80 inside, 100 tokens."""
    rows = table(run("params", config, "--by", "tensor", "--csv").out)
    assert len(rows) == 3 + 3 * 9
    gate = next(row for row in rows if row["component"] == "feed_forward.w1")
    assert gate == {
        "name_hf": "model.layers.0.mlp.gate_proj.weight",
        "name_meta": "layers.0.feed_forward.w1.weight",
        "shape": "80x48",
        "parameters": "3840",
        "dtype": "BF16",
        "bytes": "7680",
        "component": "feed_forward.w1",
        "tied_to": "",
        "same_order": "true",
    }
    components = table(run("params", config, "--csv").out)
    assert {row["name"]: row["bytes"] for row in components}["mlp.gate_proj"] == str(3 * 7_680)
    layers = table(run("params", config, "--by", "layer", "--csv").out)
    assert [row["layer"] for row in layers] == [
        "embed_tokens",
        "layers.0",
        "layers.1",
        "layers.2",
        "norm",
        "lm_head",
    ]
    figures = {row["figure"]: row for row in table(run("memory", config, "--csv").out)}
    assert figures["kv_bytes_per_token"] == {"figure": "kv_bytes_per_token", "dtype": "BF16", "bytes": "288"}
    rates = table(run("flops", config, "--csv").out)
    assert {row["component"]: row["flops"] for row in rates}["output"] == str(2 * 48 * 100)
    for command in (["params"], ["params", "--by", "tensor"], ["memory"], ["flops"]):
        assert run(command[0], config, *command[1:], "--csv").out.isascii()


def test_markdown_of_each_table(config: str) -> None:
    for command in ("memory", "flops", "params"):
        lines = run(command, config, "--markdown").out.splitlines()
        assert len({line.count("|") for line in lines}) == 1, command
        assert set(lines[1]) <= set("|-: ")


def test_a_configuration_of_the_hub_shows_the_hubs_names_first(config: str) -> None:
    for command in ("params", "flops"):
        shown = run(command, config).out.splitlines()
        line = next(line for line in shown if "feed_forward.w1" in line)
        assert line.startswith("mlp.gate_proj "), command
        meta = run(command, config, "--names", "meta").out
        assert "feed_forward.w1" in meta
        assert "gate_proj" not in meta
        catalogued = run(command, "llama3.2-1b", "--names", "hf").out
        assert "mlp.gate_proj" in catalogued
        assert "feed_forward.w1" not in catalogued
    tensors = run("params", config, "--by", "tensor", "--layer", "1").out.splitlines()
    assert tensors[0].endswith("layer 1")
    assert tensors[2].startswith("name (hf)")
    assert next(line for line in tensors if "q_proj" in line).split()[2] == "permuted"


def test_flops_are_rounded_for_people_and_exact_for_programs() -> None:
    """158,140,695,838,720 FLOPs at 989 TFLOP/s are 159.900 ms; without the masked pairs 142.114 ms."""
    machine = ["--positions", "8k", "--flops", "989TFLOPS", "--bandwidth", "3.35TB/s"]
    shown = run("flops", "llama3.1-8b", *machine).out
    assert "158.14 TFLOPs" in shown
    assert "at least   159.900 ms at 100 % of peak, for all of these FLOPs; 142.114 ms" in shown
    eager = run("flops", "llama3.1-8b", *machine, "--attention", "eager").out
    assert "at least   207.980 ms at 100 % of peak" in eager
    exact: dict[str, Any] = run("flops", "llama3.1-8b", *machine, "--json").json
    assert exact["total_flops"] == 158_140_695_838_720
