# SPDX-License-Identifier: Apache-2.0
"""Axes from tables of a family file: the keys of a table are the fields of a class of colibri.axes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from colibri.axes import Attention, LatentAttention, Norm, Renormalise, Rope
from colibri.errors import CheckpointError
from colibri.importers.config import ConfigReader
from colibri.importers.rope_config import read_rope
from colibri.importers.text import described

T = TypeVar("T")
HINT = "docs/FAMILIES.md says what a family file holds"
_MAX = 2.0**50  # of any number; what an axis takes is narrower (axes_check)
# What a rope table may hold beside Rope's own fields: the table itself is computed from these, as from a config.json.
_ROPE_KEYS = ("theta", "rotary_dim", "scaling")


def error(where: str, expected: str, got: str, hint: str = HINT) -> CheckpointError:
    """Return the error for a place in a family file."""
    return CheckpointError(where, expected=expected, got=got, hint=hint)


def build(kind: type[T], table: object, where: str, **given: Any) -> T:
    """Return a `kind` of the values in `table`; `given` are values that the table must not state.

    Raises CheckpointError naming the key: an unknown one, one that is missing, a value of another type.
    """
    if not isinstance(table, Mapping):
        raise error(where, "a table", described(table))
    assert is_dataclass(kind)
    hints = get_type_hints(kind)
    known = [f.name for f in fields(kind) if f.name not in given]
    for key in table:
        if key not in known:
            raise error(f"{where}.{key}", f"one of {', '.join(known)}", "an unknown key")
    values = dict(given)
    for field in fields(kind):
        if field.name in table:
            values[field.name] = _value(hints[field.name], table[field.name], f"{where}.{field.name}")
        elif field.name not in values and field.default is MISSING:
            raise error(f"{where}.{field.name}", "a value", "no such key")
    return kind(**values)


def _value(kind: Any, value: object, where: str) -> Any:
    options = list(get_args(kind)) if isinstance(kind, UnionType) or get_origin(kind) is Union else [kind]
    if NoneType in options:
        if value is False:  # TOML has no null
            return None
        options.remove(NoneType)
    (only,) = options
    if get_origin(only) is Literal:
        if value not in get_args(only):
            raise error(where, " or ".join(repr(word) for word in get_args(only)), described(value))
        return value
    if get_origin(only) is tuple:
        return _tuple(get_args(only)[0], value, where)
    if is_dataclass(only):
        return _part(only, value, where)
    return _scalar(only, value, where)


def _scalar(kind: Any, value: object, where: str) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind is float and is_number and -_MAX <= value <= _MAX:  # type: ignore[operator]  # a number; never NaN
        return float(np.float32(value))  # type: ignore[arg-type]  # a number
    if kind is not float and type(value) is kind:
        return value
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
    raise error(where, names[kind], described(value))


def _tuple(kind: Any, value: object, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise error(where, "a list", described(value))
    return tuple(_scalar(kind, item, f"{where}[{i}]") for i, item in enumerate(value))


def _part(kind: Any, value: object, where: str) -> Any:
    if kind is Renormalise and value is True:
        return Renormalise()
    if kind is Rope:
        raise error(where, "a rope beside the head's dimensions", "one elsewhere")
    return build(kind, value, where)


def build_norm(value: object, where: str) -> Norm:
    """Return a norm."""
    return build(Norm, value, where)


def build_attention(table: Mapping[str, object], where: str) -> Attention:
    """Return attention; its scale is head_dim ** -0.5 where the table has none."""
    head_dim = _integer(table, "head_dim", where)
    rest = {key: value for key, value in table.items() if key != "rope"}
    rest.setdefault("scale", head_dim**-0.5)
    return build(Attention, rest, where, rope=_rope(table, head_dim, where))


def build_latent(table: Mapping[str, object], where: str) -> LatentAttention:
    """Return latent attention; its scale is that of a head's dimensions where the table has none."""
    rope_dim = _integer(table, "rope_dim", where)
    rest = {key: value for key, value in table.items() if key != "rope"}
    rest.setdefault("scale", (rope_dim + _integer(table, "nope_dim", where)) ** -0.5)
    rope = _rope(table, rope_dim, where)
    if rope is None:
        raise error(f"{where}.rope", "a table: latent attention has a rotated key", described(table.get("rope")))
    return build(LatentAttention, rest, where, rope=rope)


def _integer(table: Mapping[str, object], key: str, where: str) -> int:
    value = table.get(key)
    if type(value) is not int or not 1 <= value <= 65536:
        raise error(
            f"{where}.{key}", "a whole number from 1 to 65536", described(value) if key in table else "no such key"
        )
    return value


def _rope(table: Mapping[str, object], n_dims: int, where: str) -> Rope | None:
    """Return the rotary embedding of a table's `rope`: its inv_freq, or theta with the scaling keys of a config.json."""
    given = table.get("rope")
    if given is False or given is None:
        return None
    where = f"{where}.rope"
    if not isinstance(given, Mapping):
        raise error(where, "a table, or false", described(given))
    if "inv_freq" in given:
        return build(Rope, given, where)
    rest = {key: value for key, value in given.items() if key not in _ROPE_KEYS}
    rotary = _integer(given, "rotary_dim", where) if "rotary_dim" in given else n_dims
    scaling = given.get("scaling", {})
    if not isinstance(scaling, dict):
        raise error(f"{where}.scaling", "a table", described(scaling))
    parameters = {"rope_theta": given.get("theta"), **scaling}
    reader = ConfigReader(where, {"rope_parameters": parameters}, {"max_position_embeddings": 1})
    read = read_rope(reader, rotary).rope
    rest.setdefault("factor", read.factor)
    return build(Rope, rest, where, inv_freq=read.inv_freq)
