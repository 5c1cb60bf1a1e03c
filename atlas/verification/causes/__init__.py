"""What can be wrong with a checkpoint, cause by cause: each looks for itself, and takes out what it explains.

The order matters: a file that is not there explains its tensors before a layer is called missing, a whole layer explains
its tensors before each of them is, and what is left at the end is listed as it is.
"""

from __future__ import annotations

from collections.abc import Iterator

from atlas.checkpoint.findings import Finding
from atlas.verification.case import Case
from atlas.verification.causes import dtypes, files, layers, names, rest, shapes, shares, switches, tied


def findings(case: Case) -> Iterator[Finding]:
    """One finding for each cause of a difference."""
    for cause in (
        shapes.impossible,
        names.quantised,
        names.of_another_model,
        names.prefixed,
        names.of_the_other_convention,
        files.absent,
        files.not_listed,
        shares.unfit,
        tied.absent,
        switches.on_but_absent,
        switches.off_but_stored,
        layers.miscounted,
        shapes.stale,
        shapes.transposed,
        shapes.other,
        rest.missing,
        shares.strange,
        rest.unexpected,
        dtypes.other,
        tied.standing_in,
        tied.copies,
        rest.buffers,
    ):
        yield from cause(case)
