# SPDX-License-Identifier: Apache-2.0
"""Typed reading of a GGUF file's pairs: every value is checked where it is taken, and messages name its key.

Floats are float32 in the file; here each is the shortest decimal that means it (1e-05, not 9.999999747378752e-06), which is
what the config.json said that it was made from.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np

from colibri.errors import CheckpointError
from colibri.importers.text import described

ALIGNMENT = "general.alignment"
ARCHITECTURE = "general.architecture"
_HINT = "the file is damaged, or written by a tool that differs here; convert the checkpoint anew"


class ValueType(IntEnum):
    """Types of values, by their numbers in the file."""

    UINT8 = 0
    INT8 = 1
    UINT16 = 2
    INT16 = 3
    UINT32 = 4
    INT32 = 5
    FLOAT32 = 6
    BOOL = 7
    STRING = 8
    ARRAY = 9
    UINT64 = 10
    INT64 = 11
    FLOAT64 = 12


_FLOATS = (ValueType.FLOAT32, ValueType.FLOAT64)
_INTEGERS = tuple(t for t in ValueType if t not in (*_FLOATS, ValueType.BOOL, ValueType.STRING, ValueType.ARRAY))


@dataclass(frozen=True)
class Entry:
    """A value and its type; of an array the type of its items, and a list of them."""

    kind: ValueType
    value: Any
    is_array: bool = False


@dataclass
class Metadata:
    """The pairs of a file.

    where  the file, for messages
    read   keys that were looked at, so that one which nobody knows can be found
    """

    where: str
    entries: Mapping[str, Entry]
    read: set[str] = field(default_factory=set)

    def error(self, key: str, expected: str, got: str | None = None, hint: str = _HINT) -> CheckpointError:
        """Return the error that says what `key` should have been."""
        entry = self.entries.get(key)
        found = got or ("no such key" if entry is None else described(entry.value))
        return CheckpointError(f"{self.where}: {key}", expected=expected, got=found, hint=hint)

    def has(self, key: str) -> bool:
        """Whether the file has the key."""
        self.read.add(key)
        return key in self.entries

    def exactly(self, key: str, kind: ValueType) -> Any:
        """Return a scalar of one type."""
        entry = self._entry(key)
        if entry.is_array or entry.kind is not kind:
            raise self.error(key, f"a value of type {kind.name}")
        return entry.value

    def integer(self, key: str, low: int, high: int, default: int | None = None) -> int:
        """Return an integer of any width in [low, high]; of an array of equal ones, one."""
        if default is not None and not self.has(key):
            return default
        values = self.integers(key, low, high)
        if len(set(values)) != 1:
            raise self.error(key, "one number for all layers", f"{len(set(values))} different ones")
        return values[0]

    def integers(self, key: str, low: int, high: int) -> list[int]:
        """Return the integers of an array; of a scalar, a list of one."""
        entry = self._entry(key)
        values = entry.value if entry.is_array else [entry.value]
        if entry.kind not in _INTEGERS or not values or not all(low <= v <= high for v in values):
            raise self.error(key, f"an integer from {low} to {high}")
        return list(values)

    def number(self, key: str, low: float, high: float, default: float | None = None) -> float:
        """Return a finite float in [low, high]."""
        if default is not None and not self.has(key):
            return default
        entry = self._entry(key)
        if entry.is_array or entry.kind not in _FLOATS or not low <= entry.value <= high:
            raise self.error(key, f"a number from {low:g} to {high:g}")
        return _shortest(entry)

    def flag(self, key: str, *, default: bool) -> bool:
        """Return true or false."""
        return bool(self.exactly(key, ValueType.BOOL)) if self.has(key) else default

    def text(self, key: str) -> str:
        """Return a string."""
        return str(self.exactly(key, ValueType.STRING))

    def texts(self, key: str) -> list[str]:
        """Return an array of strings."""
        entry = self._entry(key)
        if not entry.is_array or entry.kind is not ValueType.STRING:
            raise self.error(key, "an array of strings")
        return list(entry.value)

    def numbers(self, key: str) -> list[float]:
        """Return an array of finite floats."""
        entry = self._entry(key)
        if not entry.is_array or entry.kind not in _FLOATS or not all(math.isfinite(v) for v in entry.value):
            raise self.error(key, "an array of finite numbers")
        return [float(v) for v in entry.value]

    def unread(self, prefix: str, known: Iterable[str]) -> list[str]:
        """Return the keys under a prefix that nobody looked at, but for `known` ones, sorted."""
        return sorted(k for k in self.entries.keys() - self.read - set(known) if k.startswith(prefix))

    def identity(self, prefix: str) -> dict[str, Any]:
        """Return the values under a prefix, as JSON has them."""
        return {key: entry.value for key, entry in self.entries.items() if key.startswith(prefix)}

    def _entry(self, key: str) -> Entry:
        if not self.has(key):
            raise self.error(key, "a value")
        return self.entries[key]


def _shortest(entry: Entry) -> float:
    return float(str(np.float32(entry.value))) if entry.kind is ValueType.FLOAT32 else float(entry.value)
