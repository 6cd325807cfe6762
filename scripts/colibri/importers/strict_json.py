# SPDX-License-Identifier: Apache-2.0
"""JSON from files that are not trusted: no duplicate keys, no NaN, bounded integers, bounded depth."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn, TypeAlias

from colibri.errors import CheckpointError
from colibri.importers.text import quoted

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

MAX_DEPTH = 64
MAX_INTEGER = 2**53  # beyond it, readers that use binary64 disagree about the value


class _RuleError(ValueError):
    """A rule of this module is broken; carries what was expected and what was got."""

    def __init__(self, expected: str, got: str) -> None:
        super().__init__(expected)
        self.expected = expected
        self.got = got


def _integer(text: str) -> int:
    # Length first: converting a very long digit string is slow, and refused by Python itself.
    if len(text) > 17 or abs(int(text)) > MAX_INTEGER:
        raise _RuleError(f"integers of at most {MAX_INTEGER}", f"one of {len(text)} digits")
    return int(text)


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _RuleError("finite numbers", quoted(text))
    return value


def _constant(text: str) -> NoReturn:
    raise _RuleError("numbers as JSON has them", text)


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _RuleError("each key once", f"key {quoted(key)} twice")
            seen.add(key)
    return result


def _check_depth(value: Json) -> None:
    level: list[Json] = [value]
    for _ in range(MAX_DEPTH):
        inner: list[Json] = []
        for item in level:
            if isinstance(item, dict):
                inner.extend(item.values())
            elif isinstance(item, list):
                inner.extend(item)
        if not inner:
            return
        level = inner
    raise RecursionError


def parse_object(data: bytes, where: str, hint: str) -> dict[str, Json]:
    """Parse a JSON object.

    where, hint  for the messages
    Raises CheckpointError for anything that is not one UTF-8 JSON object within this module's bounds.
    """
    try:
        value: Json = json.loads(
            data.decode("utf-8"),
            parse_int=_integer,
            parse_float=_number,
            parse_constant=_constant,
            object_pairs_hook=_object,
        )
        _check_depth(value)
    except UnicodeDecodeError as e:
        raise CheckpointError(where, expected="UTF-8 text", got=f"byte {e.start} is not", hint=hint) from None
    except _RuleError as e:
        raise CheckpointError(where, expected=e.expected, got=e.got, hint=hint) from None
    except RecursionError:
        raise CheckpointError(
            where, expected=f"JSON nested at most {MAX_DEPTH} deep", got="deeper nesting", hint=hint
        ) from None
    except json.JSONDecodeError as e:
        got = f"{e.msg} at line {e.lineno} column {e.colno}" if data.strip() else "an empty file"
        raise CheckpointError(where, expected="valid JSON", got=got, hint=hint) from None
    if not isinstance(value, dict):
        raise CheckpointError(where, expected="a JSON object", got="another JSON value", hint=hint)
    return value


def json_value(value: Any) -> Json:
    """Return a document of another kind (TOML) as JSON has it: dates as text, a number beyond JSON's as text."""
    if isinstance(value, Mapping):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    is_plain = (
        value is None or isinstance(value, bool | str | int) or (isinstance(value, float) and math.isfinite(value))
    )
    return value if is_plain else str(value)
