# SPDX-License-Identifier: Apache-2.0
"""The one error for a model that a GGUF file of these architectures cannot say."""

from __future__ import annotations

from colibri.errors import UsageError


def refused(expected: str, got: str) -> UsageError:
    """Return the error: what such a file can say, and what the model has."""
    return UsageError(
        "export-gguf",
        expected=f"a model that one of llama.cpp's architectures can say: {expected}",
        got=got,
        hint="colibri inspect CHECKPOINT shows its axes; llama.cpp's own converter knows more architectures",
    )
