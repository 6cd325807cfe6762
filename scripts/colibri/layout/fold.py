# SPDX-License-Identifier: Apache-2.0
"""Constant tables of model_config.h that cost nothing where they say nothing.

A table has rows (one a layer, a kind of layer, ...) and fields. C code reads `COLIBRI_LAYER_AT(i)`. Where all rows agree, that is
the value itself; where an offset grows evenly, a product; only what is left becomes a column of a table in flash.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

Value = int | float


@dataclass(frozen=True)
class Table:
    """name: in lower case, singular. Fields that end in `at` are offsets (size_t); float values are float; others uint32_t."""

    name: str
    rows: Sequence[Mapping[str, Value]]

    @property
    def columns(self) -> list[str]:
        """The fields that need memory."""
        return [field for field in self.rows[0] if self._folded(field) is None] if self.rows else []

    def macros(self) -> dict[str, object]:
        """Name -> text of every macro, without the prefix COLIBRI_."""
        upper = self.name.upper()
        columns = self.columns
        found: dict[str, object] = {f"N_{upper}S": len(self.rows), f"HAS_{upper}_TABLE": int(bool(columns))}
        for field in self.rows[0] if self.rows else ():
            text = self._folded(field) or f"(colibri_{self.name}s[i].{field})"
            found[f"{upper}_{field.upper()}(i)"] = text
        if columns:
            found[f"{upper}_FIELDS"] = " ".join(f"{self._type(field)} {field};" for field in columns)
            found[f"{upper}S"] = braces(braces(literal(row[field]) for field in columns) for row in self.rows)
        return found

    @property
    def bytes(self) -> int:
        """Flash of the table on a 32-bit core."""
        return 4 * len(self.columns) * len(self.rows)

    def _type(self, field: str) -> str:
        if _is_offset(field):
            return "size_t"
        return "float" if isinstance(self.rows[0][field], float) else "uint32_t"

    def _folded(self, field: str) -> str | None:
        values = [row[field] for row in self.rows]
        first = values[0]
        if all(v == first for v in values):
            text = literal(first)
            return f"((void)(i), {f'(size_t){text}' if _is_offset(field) else text})"
        if _is_offset(field):
            step = values[1] - first
            if step > 0 and all(b - a == step for a, b in pairwise(values)):
                return f"((size_t)(i) * {literal(step)} + {literal(first)})"
        return None


def literal(value: Value) -> str:
    """A C constant: unsigned, or a float."""
    return c_float(value) if isinstance(value, float) else f"{value}u"


def c_float(value: float) -> str:
    """A C float constant: the shortest decimal that reads back to the same float32."""
    return f"{np.format_float_scientific(np.float32(value), unique=True, trim='0')}f"


def braces(items: Iterable[str]) -> str:
    """An initialiser."""
    return "{ " + ", ".join(items) + " }"


def _is_offset(field: str) -> bool:
    return field == "at" or field.endswith("_at")
