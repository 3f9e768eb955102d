"""Arrow values from Python ones, for what every job does. `pa.array` and `pa.scalar` would do, but import pandas where
it is installed: 41 MB and half a second in every evaluator.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable

import pyarrow as pa


def integers(values: Iterable[int]) -> pa.Array:
    """64-bit integers."""
    content = array("q", values)
    return pa.Array.from_buffers(pa.int64(), len(content), [None, pa.py_buffer(content.tobytes())])


def text(value: str) -> pa.Scalar:
    """A string."""
    content = value.encode()
    offsets = struct.pack("=ii", 0, len(content))
    return pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(offsets), pa.py_buffer(content)])[0]
