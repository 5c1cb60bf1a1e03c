"""The causes for which a checkpoint can differ from its description. Each is a function that finds its cause and removes what it explains.

The order matters: a missing file explains its tensors before a layer is reported as missing, and a missing layer before each of its
tensors. Tensors that no cause explains are reported at the end.
"""

from __future__ import annotations

from collections.abc import Iterator

from atlas.checkpoint.findings import Finding
from atlas.verification.causes import (
    dtypes,
    files,
    layers,
    model_parallel,
    modules,
    names,
    optional,
    quantised,
    shapes,
    tensor_parallel,
    tied,
    unexplained,
)
from atlas.verification.comparison import Comparison


def findings(comparison: Comparison) -> Iterator[Finding]:
    """One finding for each cause of a difference."""
    for cause in (
        shapes.impossible,
        shapes.empty,
        quantised.undeclared,
        modules.unmerged_adapter,
        names.of_another_model,
        names.prefixed,
        names.of_the_other_convention,
        files.absent,
        files.not_listed,
        modules.fused,
        model_parallel.wrong_shares,
        tensor_parallel.shares,
        tied.absent,
        optional.on_but_absent,
        optional.bias_absent,
        optional.off_but_stored,
        layers.miscounted,
        shapes.stale,
        shapes.transposed,
        shapes.other,
        unexplained.missing,
        model_parallel.unexpected_in_some,
        unexplained.unexpected,
        dtypes.other,
        tied.only_copy,
        tied.copies,
        unexplained.buffers,
        unexplained.apart,
    ):
        yield from cause(comparison)
