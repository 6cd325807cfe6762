# SPDX-License-Identifier: Apache-2.0
"""The axes a user may state against the checkpoint (``--set KEY=VALUE``), and their values as ``colibri inspect`` prints them.

A checkpoint may not say everything: GGUF has no key for a Mistral window, a fine-tune may renormalise though its parent
does not. No key here changes a tensor's shape. A key applies to every layer that has such an axis; a window, chunk or clip
to the layers that have one, or to all where none has.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from colibri.axes import Attention, LatentAttention, Layer, Renormalise, Router
from colibri.errors import UsageError
from colibri.importers.axes_check import AxesError, check_axes
from colibri.importers.limits import MAX_SCALE
from colibri.importers.text import quoted
from colibri.model import ModelConfig

Value = str | int | float | bool | None
Change = Callable[[Any], Any]
YARN_TRUNCATE = "rope.yarn_truncate"
"""A key that the importers themselves read: it goes into a table that the axes hold finished."""
LLAMA4_QK_NORM = "attention.qk_norm"
"""Another, of Llama 4 in GGUF: a norm without a weight, of which no tensor tells."""
ROPE_FACTOR = "rope.factor"


@dataclass(frozen=True)
class _Key:
    """One key.

    owner   which objects have it: the model, or one of _OWNERS
    get     its value in one
    put     an object with another value
    parse   text to value; raises ValueError
    says    what it takes, for messages
    """

    owner: str
    get: Callable[[Any], Value]
    put: Callable[[Any, Any], Any]
    parse: Callable[[str], Any]
    says: str


def _number(text: str) -> float:
    value = float(text)
    if not abs(value) <= MAX_SCALE:  # NaN too
        raise ValueError
    return float(np.float32(value))


def _or_none(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    return lambda text: None if text in ("none", "null") else parse(text)


def _one_of(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in words:
            raise ValueError
        return text

    return parse


def boolean(text: str) -> bool:
    """Read true or false; raises ValueError."""
    return {"true": True, "false": False}[_one_of("true", "false")(text)]


def _field(owner: str, field: str, parse: Callable[[str], Any], says: str) -> _Key:
    return _Key(owner, lambda o: getattr(o, field), lambda o, v: replace(o, **{field: v}), parse, says)


def _words(owner: str, field: str, *words: str) -> _Key:
    return _field(owner, field, _one_of(*words), " or ".join(words))


def _renormalise(text: str) -> str:
    return {"true": "sum", "false": "none"}.get(text) or _one_of("sum", "l2", "none")(text)


def _put_renormalise(router: Router, norm: Any) -> Router:
    if norm == "none":
        return replace(router, renormalise=None)
    return replace(router, renormalise=replace(router.renormalise or Renormalise(), norm=norm))


_INTEGER, _NUMBER = "a whole number", "a number"
_KEYS: dict[str, _Key] = {
    "embedding_scale": _field("model", "embedding_scale", _number, _NUMBER),
    "logits_scale": _field("model", "logits_scale", _number, _NUMBER),
    "residual": _field("layer", "residual", _number, _NUMBER),
    "attention.scale": _field("attention", "scale", _number, _NUMBER),
    "attention.sliding_window": _field("attention", "window", _or_none(int), f"{_INTEGER} or none"),
    "attention.chunk": _field("grouped", "chunk", _or_none(int), f"{_INTEGER} or none"),
    "attention.clip": _field("grouped", "clip", _or_none(_number), f"{_NUMBER} or none"),
    "attention.temperature_interval": _field("temperature", "interval", int, _INTEGER),
    "attention.temperature_scale": _field("temperature", "scale", _number, _NUMBER),
    "attention.kv_map": _words("grouped", "kv_map", "interleave", "tile"),
    "rope.pairing": _words("rope", "pairing", "half", "adjacent"),
    ROPE_FACTOR: _field("rope", "factor", _number, _NUMBER),
    "router.score": _words("router", "score", "raw", "softmax", "sigmoid"),
    "router.weights": _words("router", "weights", "score", "softmax", "sigmoid", "one"),
    "router.renormalise": _Key(
        "router",
        lambda r: "none" if r.renormalise is None else r.renormalise.norm,
        _put_renormalise,
        _renormalise,
        "true (sum), l2 or false",
    ),
    "router.scale": _field("router", "scale", _number, _NUMBER),
    "router.jitter": _field("sparsemixer", "jitter", _number, _NUMBER),
    "router.top_p": _field("router", "top_p", _or_none(_number), f"{_NUMBER} or none"),
    "router.side": _words("router", "side", "output", "input"),
    "router.group_score": _words("groups", "score", "max", "top2"),
    "router.group_fill": _words("groups", "fill", "zero", "excluded"),
    "experts.per_token": _field("router", "top_k", int, _INTEGER),
    "ffn.activation": _words("ffn", "activation", "silu", "gelu_tanh", "gelu_erf", "relu", "relu2"),
}


def describe(config: ModelConfig) -> dict[str, Any]:
    """Return the value of each key that this model has; a list, one a layer, where layers differ."""
    return {name: _summary(_values(config, key)) for name, key in _KEYS.items() if any(_values(config, key))}


def override(
    config: ModelConfig, wanted: Mapping[str, str], others: Iterable[str] = (), needed: Collection[str] = ()
) -> ModelConfig:
    """Return the axes with other values; raises UsageError for a key that is unknown or changes nothing, and a bad value.

    others  keys of this model that the importer has seen to
    needed  keys that had to be stated, and so may say what the axes have already
    """
    for name, text in wanted.items():
        key = _KEYS.get(name)
        if key is None or not any(_values(config, key)):
            raise unknown(name, [*describe(config), *others])
        try:
            value = key.parse(text)
        except (ValueError, OverflowError):
            raise UsageError(
                f"--set {name}", expected=key.says, got=quoted(text), hint="colibri inspect CHECKPOINT shows its value"
            ) from None
        changed = _changed(config, key, value)
        if changed == config and name not in needed:
            raise changes_nothing(name, text)
        config = changed
        try:
            check_axes(config)
        except AxesError as e:
            raise UsageError(
                f"--set {name}", expected=f"{e.axis}: {e.expected}", got=e.got, hint="choose another value"
            ) from None
    return config


def unknown(name: str, known: Iterable[str]) -> UsageError:
    """Return the error for a key that the model does not have."""
    return UsageError(
        "--set",
        expected=f"a key of this model: {', '.join(known)}",
        got=quoted(name),
        hint="colibri inspect CHECKPOINT shows the keys and their values",
    )


def changes_nothing(name: str, text: str) -> UsageError:
    """Return the error for a value that the checkpoint has already."""
    return UsageError(
        f"--set {name}",
        expected="another value than the checkpoint's",
        got=quoted(text),
        hint="leave it out: it changes nothing",
    )


def _values(config: ModelConfig, key: _Key) -> list[list[Value]]:
    """The key's values in each layer; the model's own once."""
    if key.owner == "model":
        return [[key.get(config)]]
    by_layer = {layer: _in_layer(layer, key) for layer in dict.fromkeys(config.layers)}
    return [by_layer[layer] for layer in config.layers]


def _in_layer(layer: Layer, key: _Key) -> list[Value]:
    found: list[Value] = []

    def look(owner: Any) -> Any:
        found.append(key.get(owner))
        return owner

    _OWNERS[key.owner](layer, look)
    return found


def _summary(values: list[list[Value]]) -> Any:
    flat = [v for found in values for v in found]
    if all(v == flat[0] for v in flat):
        return flat[0]
    return [found[0] if found else None for found in values]


def _changed(config: ModelConfig, key: _Key, value: Any) -> ModelConfig:
    if key.owner == "model":
        changed: ModelConfig = key.put(config, value)
        return changed
    layers = dict.fromkeys(config.layers)
    having = {layer for layer in layers if any(v is not None for v in _in_layer(layer, key))}
    change = _OWNERS[key.owner]
    done = {n: change(n, lambda o: key.put(o, value)) if n in having or not having else n for n in layers}
    return replace(config, layers=tuple(done[layer] for layer in config.layers))


# Each applies a change to the objects of a layer that are such owners, and leaves the layer as it is where there are none.


def _attention(layer: Layer, change: Change) -> Layer:
    return replace(layer, mixer=change(layer.mixer)) if isinstance(layer.mixer, Attention | LatentAttention) else layer


def _grouped(layer: Layer, change: Change) -> Layer:
    return replace(layer, mixer=change(layer.mixer)) if isinstance(layer.mixer, Attention) else layer


def _temperature(layer: Layer, change: Change) -> Layer:
    mixer = layer.mixer
    if not isinstance(mixer, Attention) or mixer.temperature is None:
        return layer
    return replace(layer, mixer=replace(mixer, temperature=change(mixer.temperature)))


def _rope(layer: Layer, change: Change) -> Layer:
    mixer = layer.mixer
    if not isinstance(mixer, Attention | LatentAttention) or mixer.rope is None:
        return layer
    return replace(layer, mixer=replace(mixer, rope=change(mixer.rope)))


def _router(layer: Layer, change: Change) -> Layer:
    mixer, ffn = layer.mixer, layer.ffn
    if isinstance(mixer, Attention) and mixer.router is not None:
        router = change(mixer.router)
        mixer = replace(mixer, router=router, n_heads=router.top_k * mixer.n_kv_heads)
    if ffn.router is not None:
        ffn = replace(ffn, router=change(ffn.router))
    return replace(layer, mixer=mixer, ffn=ffn)


def _sparsemixer(layer: Layer, change: Change) -> Layer:
    router = layer.ffn.router
    if router is None or router.method != "sparsemixer":
        return layer
    return replace(layer, ffn=replace(layer.ffn, router=change(router)))


def _groups(layer: Layer, change: Change) -> Layer:
    router = layer.ffn.router
    if router is None or router.groups is None:
        return layer
    return replace(layer, ffn=replace(layer.ffn, router=replace(router, groups=change(router.groups))))


_OWNERS: dict[str, Callable[[Layer, Change], Layer]] = {
    "layer": lambda layer, change: change(layer),
    "attention": _attention,
    "grouped": _grouped,
    "temperature": _temperature,
    "rope": _rope,
    "router": _router,
    "sparsemixer": _sparsemixer,
    "groups": _groups,
    "ffn": lambda layer, change: replace(layer, ffn=change(layer.ffn)) if layer.ffn.width else layer,
}
