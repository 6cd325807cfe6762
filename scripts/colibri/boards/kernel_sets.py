# SPDX-License-Identifier: Apache-2.0
"""The kernel sets: which there are, and which of them a core runs."""

from __future__ import annotations

from collections.abc import Mapping

KERNEL_SETS: Mapping[str, tuple[str, ...]] = {
    "portable": ("portable",),
    "armv7m": ("armv7m", "portable"),
    "armv7em": ("armv7em", "armv7m", "portable"),
    "mve": ("mve", "armv7em", "armv7m", "portable"),
}
"""Kernel set, a folder in firmware/kernels -> every set that a core with it runs, best first."""
