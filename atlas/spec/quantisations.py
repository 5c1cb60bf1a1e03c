"""`quantisations/*.toml`: how a checkpoint declares that its weights are stored quantised."""

from atlas.spec.table import Some, Spec


class Quantisation(Spec):
    id: str
    title: str
    keys: list[str] = []
    """Configuration keys that declare it."""
    files: list[str] = []
    """Files next to the configuration that declare it."""
    dtypes: list[str] = []
    """Dtypes in which only quantised matrices are stored, for checkpoints that do not declare it."""
    tensors: list[str] = []
    """Ends of the names of tensors that only quantised checkpoints store: `.qweight`."""
    affects: Some[str]
    """The answers that depend on it: commands, or `weights` for the weights' bytes."""
