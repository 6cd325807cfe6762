# SPDX-License-Identifier: Apache-2.0
"""The golden model: docs/NUMERICS.md in NumPy, the definition of every bit the engine produces."""

from .checks import ContractViolation, RangeExceeded
from .model import GoldenModel, Result
from .sampler import Pcg32, Sampling, generate, sample
from .trace import SourceRecorder, TraceName, TraceRecorder, TraceSink, crc32, source_trace_names, trace_names

__all__ = [
    "ContractViolation",
    "GoldenModel",
    "Pcg32",
    "RangeExceeded",
    "Result",
    "Sampling",
    "SourceRecorder",
    "TraceName",
    "TraceRecorder",
    "TraceSink",
    "crc32",
    "generate",
    "sample",
    "source_trace_names",
    "trace_names",
]
