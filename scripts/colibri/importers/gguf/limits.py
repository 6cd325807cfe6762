# SPDX-License-Identifier: Apache-2.0
"""How much of a GGUF file is believed before it is checked."""

MAX_ENTRIES = 65536  # of key-value pairs, and of tensors
MAX_KEY_BYTES = 65535  # the format's own limit
MAX_HEADER_BYTES = 512 << 20  # everything before the data; vocabularies of 2**18 tokens need some 16 MiB
MAX_STRINGS = 1 << 22  # in one array
MAX_NAME_BYTES = 63  # of a tensor: llama.cpp's 64 with the terminator
MAX_DIMS = 4
MAX_DIM = 2**31
MIN_ALIGNMENT, MAX_ALIGNMENT = 8, 65536
MAX_SHARDS = 65535
MAX_BLOCKS = 512  # llama.cpp's number of layers
MAX_EXPERTS = 1024
MAX_VOCAB = 2**24
