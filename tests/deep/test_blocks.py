"""Blocks cover a file without a gap, and cut no element, whatever the dtypes and wherever the data starts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from atlas.checkpoint.header import Header, Tensor
from atlas.verification.deep.blocks import LARGE_PAGE_BYTES, MOST_BYTES, block_bytes, readable, split

SIZES = {"BF16": 2, "F32": 4, "F64": 8, "C64": 8, "U8": 1}


@st.composite
def headers(draw: st.DrawFn) -> Header:
    """A header as read, of a file that may be cut short."""
    tensors, end = {}, 0
    for i, dtype in enumerate(draw(st.lists(st.sampled_from(sorted(SIZES)), max_size=6))):
        elements = draw(st.integers(0, 30))
        begin, end = end, end + elements * SIZES[dtype]
        tensors[str(i)] = Tensor(str(i), dtype, (elements,), begin, end)
    header_bytes = draw(st.integers(2, 40))
    short = draw(st.just(0) | st.integers(0, end))
    return Header(tensors, {}, header_bytes, end, 8 + header_bytes + end - short)


@given(header=headers(), size=st.integers(8, 64), whole=st.booleans())
def test_blocks(header: Header, size: int, whole: bool) -> None:
    at = 0 if whole else header.data_start
    elements = dict.fromkeys(header.tensors, 0)
    for block in split(header, at, size):
        assert block.begin == at
        assert 0 < block.end - block.begin < size + 8
        for part in block.parts:
            name, unit = part.tensor.name, SIZES[part.tensor.dtype]
            assert 0 <= part.begin < part.end <= block.end - block.begin
            assert part.start == elements[name]
            assert block.begin + part.begin == header.data_start + part.tensor.begin + unit * part.start
            elements[name] += (part.end - part.begin) // unit
        at = block.end
    assert at == header.file_bytes
    for name, tensor in header.tensors.items():
        there = max(0, header.file_bytes - header.data_start - tensor.begin)
        assert elements[name] == min(there, tensor.end - tensor.begin) // SIZES[tensor.dtype]


def test_a_tensor_that_overlaps_or_contradicts_itself_is_not_read() -> None:
    tensors = [
        Tensor("sound", "F32", (2,), 0, 8),
        Tensor("overlaps", "F32", (2,), 4, 12),
        Tensor("shape", "F32", (3,), 12, 20),
        Tensor("empty", "F32", (0, 3), 20, 20),
        Tensor("after", "U8", (4,), 20, 24),
    ]
    header = Header({tensor.name: tensor for tensor in tensors}, {}, 40, 24, 72)
    assert [tensor.name for tensor in readable(header)] == ["sound", "after"]


def test_the_threads_share_what_memory_there_is() -> None:
    for threads in range(1, 65):
        assert block_bytes(threads) * threads <= MOST_BYTES
        assert block_bytes(threads) % LARGE_PAGE_BYTES == 0
    assert block_bytes(1) == block_bytes(4) == 32 * 2**20
    assert block_bytes(1000) == LARGE_PAGE_BYTES
