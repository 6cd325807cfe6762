# SPDX-License-Identifier: Apache-2.0
"""Typed reading of a config.json: every value is checked where it is taken, and messages name its key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from colibri.errors import CheckpointError
from colibri.importers.strict_json import Json
from colibri.importers.text import described

_HINT = "correct the file, or take it anew from where the checkpoint came from"


@dataclass(frozen=True)
class ConfigReader:
    """A JSON object with a table of defaults for keys that are absent.

    where     the file, for messages
    values    what the file says
    defaults  what a missing key means: the defaults of the family's configuration class
    inside    the key of the object this one is the value of, with its dot; empty for the file itself
    spelling  what this file calls a key, where it has a name of its own for it
    """

    where: str
    values: Mapping[str, Json]
    defaults: Mapping[str, Json]
    inside: str = ""
    spelling: Mapping[str, str] = field(default_factory=dict)

    def error(self, key: str, expected: str, got: str | None = None, hint: str = _HINT) -> CheckpointError:
        """Return the error that says what `key` should have been."""
        spelt = self.spelling.get(key, key)
        found = got or (described(self.get(key)) if spelt in self.values or spelt in self.defaults else "no such key")
        return CheckpointError(f"{self.where}: {self.inside}{spelt}", expected=expected, got=found, hint=hint)

    def spelt(self, spelling: Mapping[str, str]) -> ConfigReader:
        """Return a reader for a file that has other names for some keys."""
        return replace(self, spelling=spelling)

    def with_value(self, key: str, value: Json) -> ConfigReader:
        """Return a reader to which the file says `value` for `key`."""
        return replace(self, values={**self.values, self.spelling.get(key, key): value})

    def has(self, key: str) -> bool:
        """Whether the file itself gives the key a value other than null."""
        return self.values.get(self.spelling.get(key, key)) is not None

    def get(self, key: str) -> Json:
        """Return the raw value; null where neither file nor table has one."""
        spelt = self.spelling.get(key, key)
        return self.values[spelt] if spelt in self.values else self.defaults.get(spelt)

    def integer(self, key: str, low: int, high: int) -> int:
        """Return an integer in [low, high]; 64.0 and "64" are not integers."""
        value = self.get(key)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self.error(key, f"an integer from {low} to {high}")
        return value

    def optional_integer(self, key: str, low: int, high: int) -> int | None:
        """Return as `integer`, or None for null."""
        return None if self.get(key) is None else self.integer(key, low, high)

    def number(self, key: str, low: float, high: float) -> float:
        """Return a number in [low, high]."""
        value = self.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise self.error(key, f"a number from {low:g} to {high:g}")
        return float(value)

    def flag(self, key: str) -> bool:
        """Return true or false."""
        value = self.get(key)
        if not isinstance(value, bool):
            raise self.error(key, "true or false")
        return value

    def text(self, key: str) -> str:
        """Return a string."""
        value = self.get(key)
        if not isinstance(value, str):
            raise self.error(key, "a string")
        return value

    def shared_integer(self, keys: tuple[str, ...], low: int, high: int) -> int:
        """Return an integer that goes by several names; where the file has more than one they must agree."""
        said = [key for key in keys if self.has(key)]
        for other in said[1:]:
            if self.get(other) != self.get(said[0]):
                raise self.error(other, f"the same as {said[0]}")
        by_default = [key for key in keys if key in self.defaults]
        return self.integer((said or by_default or list(keys))[0], low, high)

    def list_of(self, key: str, kind: type[Json], length: int, expected: str) -> list[Json] | None:
        """Return a list of `length` items, each a `kind`; None for null. `expected` says what they are."""
        value = self.get(key)
        if value is None:
            return None
        if not isinstance(value, list) or len(value) != length or any(type(item) is not kind for item in value):
            raise self.error(key, f"{length} {expected}, one a layer")
        return value

    def within(self, key: str, defaults: Mapping[str, Json] | None = None) -> ConfigReader | None:
        """Return a reader of the object under `key`; None where it is null or absent."""
        value = self.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.error(key, "an object or null")
        return ConfigReader(self.where, value, defaults or {}, f"{self.inside}{key}.")

    def ids(self, key: str, vocab_size: int) -> tuple[int, ...]:
        """Return token ids: one, a list, or none for null; each once, in order.

        A default that the vocabulary is too small for means none; a stated one is an error.
        """
        value = self.get(key)
        listed = value if isinstance(value, list) else [] if value is None else [value]
        ids: dict[int, None] = {}
        for item in listed:
            if isinstance(item, bool) or not isinstance(item, int) or not 0 <= item < vocab_size:
                if self.spelling.get(key, key) not in self.values:
                    return ()
                raise self.error(key, f"token ids from 0 to {vocab_size - 1}", described(item))
            ids[item] = None
        return tuple(ids)
