"""Every architecture's logits against transformers', from the same configuration and the same checkpoint on disk.

A sample has sizes that are all different, and together the samples of an architecture have all of its options: windows shorter
than the prompt, shares of heads, kinds of layer, experts. In float32, one pass step by step and one with fused attention, and
tokens decoded one by one.
"""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="`atlas run` needs the extra: pip install 'open-model-atlas[run]'")
pytest.importorskip("transformers", reason="its logits are the other side")

from atlas.execution.rope_forms import depends_on_length
from atlas.resolution import config
from atlas.spec.library import Library
from tests.run.parity import parity
from tests.run.test_keystone import SAMPLES

TOLERANCE = 1e-4


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("sample", SAMPLES)
def test_logits_are_those_of_transformers(sample: str, library: Library, tmp_path: Path) -> None:
    settings = SAMPLES[sample]
    for length, apart in parity(settings, tmp_path, library).items():
        assert apart.largest > 0.5
        assert apart.observed < TOLERANCE, length
        assert apart.fused < TOLERANCE, length
        # Where the frequencies change with the length, keys that are cached keep those of their own pass.
        if not depends_on_length(config.describe(settings, library, id=sample).rope):
            assert apart.decoded < TOLERANCE * max(1, apart.largest), length
