# SPDX-License-Identifier: Apache-2.0
"""A user's own model, described by a .toml file: its axes, and where each tensor is (docs/FAMILIES.md)."""

from colibri.importers.described.family import DescribedFamily, read_family

__all__ = ["DescribedFamily", "read_family"]
