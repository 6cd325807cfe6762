# SPDX-License-Identifier: Apache-2.0
"""The golden model: docs/NUMERICS.md in NumPy, the definition of every bit the engine produces."""

from .checks import ContractViolation, RangeExceeded
from .model import GoldenModel, Result
from .sampler import Pcg32, Sampling, generate, sample
from .trace import TraceName, TraceRecorder, TraceSink, crc32, trace_names

__all__ = [
    "ContractViolation",
    "GoldenModel",
    "Pcg32",
    "RangeExceeded",
    "Result",
    "Sampling",
    "TraceName",
    "TraceRecorder",
    "TraceSink",
    "crc32",
    "generate",
    "sample",
    "trace_names",
]
