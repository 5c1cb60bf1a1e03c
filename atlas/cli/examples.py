"""Examples of each command, shown under its help. The tests run every one of them."""

from __future__ import annotations

EXAMPLES: dict[str, tuple[str, ...]] = {
    "models": ("atlas models", "atlas models 3.1 instruct", "atlas models --family llama3.2 --csv"),
    "show": ("atlas show llama3.1-8b", "atlas show llama3-8b llama3.1-8b llama3.2-1b"),
    "params": (
        "atlas params llama3.1-8b",
        "atlas params llama3.2-1b --by tensor --csv",
        "atlas params path/to/config.json --markdown",
    ),
    "trace": (
        "atlas trace llama3.2-1b",
        "atlas trace llama3.1-8b --layer 0 --component attention --positions 128",
        "atlas trace path/to/config.json --json",
    ),
    "explain": (
        "atlas explain llama3.1-8b",
        "atlas explain llama3.1-8b attention.wq",
        "atlas explain llama3.1-8b logits --json",
    ),
    "memory": (
        "atlas memory llama3.1-8b --context 8192 --fit 24GiB",
        "atlas memory llama3.3-70b-instruct --devices 8",
        "atlas memory path/to/config.json --batch 16 --json",
    ),
    "flops": (
        "atlas flops llama3.1-8b --positions 128",
        "atlas flops llama3.1-8b --flops 989T --bandwidth 3.35TB",
        "atlas flops llama3.1-8b --past 8191 --json",
    ),
    "verify": (
        "atlas verify path/to/checkpoint",
        "atlas verify path/to/checkpoint --deep --receipt receipt.json",
        "atlas verify --repo meta-llama/Llama-3.1-8B",
    ),
    "run": (
        'atlas run --repo meta-llama/Llama-3.2-1B --prompt "The capital of France is"',
        "atlas run path/to/checkpoint --token-ids 1,2,3 --max-new-tokens 4",
        "atlas run path/to/config.json --weights random --token-ids 1,2,3 --trace",
    ),
    "diff": (
        "atlas diff llama3-8b llama3.1-8b",
        "atlas diff path/to/config.json llama3.2-1b --exit-code",
    ),
    "specs check": ("atlas specs check", "atlas specs check my-specs"),
    "specs import": (
        "atlas specs import path/to/llama_models",
        "atlas specs import path/to/llama_models --json",
    ),
    "evidence check": (
        "atlas evidence check",
        "atlas evidence check --offline --json",
        "atlas evidence check --source llama3=path/to/llama3",
    ),
    "schema": ("atlas schema params", "atlas schema verify", "atlas schema evidence check"),
}


def epilog(command: str) -> str | None:
    """The examples as the last lines of a command's help."""
    examples = EXAMPLES.get(command)
    return "\n  ".join(("Examples:", *examples)) if examples else None
