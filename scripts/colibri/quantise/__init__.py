# SPDX-License-Identifier: Apache-2.0
"""From float weights to stored numbers: formats and the per-part policy."""

from colibri.quantise.formats import Format, Stored, snap, store
from colibri.quantise.policy import PARTS, Policy, parse_format, part_of

__all__ = ["PARTS", "Format", "Policy", "Stored", "parse_format", "part_of", "snap", "store"]
