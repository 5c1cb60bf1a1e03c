"""LoRA and other adapters, found where a full model was expected: small matrices that are added to those of a base model."""

from __future__ import annotations

import json
from collections.abc import Collection

from atlas.checkpoint.findings import Finding, unreadable
from atlas.checkpoint.store import Store
from atlas.errors import CheckpointError

CONFIGURATION = "adapter_config.json"


def is_adapter(name: str) -> bool:
    """Whether a file's name is that of an adapter."""
    return name == CONFIGURATION or name.startswith("adapter_model.")


def holds_adapter(tensors: Collection[str]) -> bool:
    """Whether most of these tensors are low-rank matrices."""
    return sum(".lora_" in name for name in tensors) * 2 > len(tensors)


def finding(store: Store, names: Collection[str]) -> Finding:
    """The finding that names the kind of adapter and its base model."""
    settings = _settings(store) if CONFIGURATION in names else {}
    base, kind = settings.get("base_model_name_or_path"), settings.get("peft_type") or "LoRA"
    what = "a LoRA adapter" if str(kind).upper() == "LORA" else f"an adapter ({str(kind)[:40]})"
    whose = f"for {base}" if isinstance(base, str) and base else "for a base model that it does not name"
    return unreadable(
        code="adapter",
        file=next((name for name in names if name.startswith("adapter_model.")), None),
        found=base if isinstance(base, str) else None,
        message=f"{store.location}: this is {what} {whose}, not a full model; "
        "merge it or check the base model",
    )


def _settings(store: Store) -> dict[str, object]:
    try:
        settings = json.loads(store.text(CONFIGURATION))
    except (CheckpointError, ValueError, RecursionError):
        return {}
    return settings if isinstance(settings, dict) else {}
