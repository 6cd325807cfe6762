# SPDX-License-Identifier: Apache-2.0
"""How large the axes may be."""

MAX_ROW_ELEMS = 65536  # docs/NUMERICS: int32 accumulators hold the sum of a row of int8 products
MAX_POSITIONS = 2**24  # up to there float32 holds every position exactly
MIN_NORM_EPS = 2.0**-40  # smaller values are zero in the engine's arithmetic
MAX_SCALE = 2.0**40  # of factors and limits; what they multiply stays far from overflow
MAX_LAYERS = 65536
MAX_VOCAB = 2**31 - 1
MAX_TAPS = 64  # of a short convolution
MAX_EXTRA_LAYERS = 64  # that predict further tokens
MAX_TENSORS = 2**20  # of a model that is described by a file
