# SPDX-License-Identifier: Apache-2.0
"""A family file as a whole: model, layers and tensors."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from colibri.axes import Convolution, Ffn, Layer, Mixer, Norm, Router, Shared
from colibri.errors import CheckpointError, UsageError
from colibri.importers.axes_check import AxesError, check_axes
from colibri.importers.bind import Binding, Skip, Sources
from colibri.importers.described.table import build, build_attention, build_latent, build_norm, error
from colibri.importers.described.tensors import Rule, bind_rules, read_rules
from colibri.importers.files import read_whole
from colibri.importers.limits import MAX_LAYERS, MAX_TENSORS
from colibri.importers.strict_json import Json
from colibri.importers.text import described, place, quoted
from colibri.model import ModelConfig

MAX_BYTES = 1 << 20
_FROM_CONFIG = "config."
_MIXERS = ("attention", "latent", "convolution")
_SECTIONS = ("name", "model", *_MIXERS, "ffn", "router", "shared", "layer", "layers", "tensors", "ignore")
_MODEL = ("vocab_size", "hidden_size", "max_seq", "n_layers", "norm", "final_norm", "tied_head", "head_bias")
_MODEL_OPTIONAL = ("embedding_scale", "logits_scale", "bos_id", "eos_ids")
Table = Mapping[str, Any]


@dataclass(frozen=True)
class DescribedFamily:
    """What a family file says.

    values  the file's contents
    """

    path: Path
    values: Table

    @property
    def where(self) -> str:
        """The file, for messages."""
        return place(self.path)

    def config(self, config_json: Mapping[str, Json]) -> ModelConfig:
        """Return the axes; texts ``config.KEY`` stand for a key of the checkpoint's config.json. Raises CheckpointError."""
        values = _resolved(self.values, config_json, self.where)
        _check_keys(values, _SECTIONS, self.where)
        if not isinstance(values.get("name", ""), str):
            raise error(f"{self.where}: name", "text", described(values["name"]))
        try:
            config = _model(values, self.where)
            check_axes(config)
            experts = sum(layer.ffn.router.n_experts for layer in config.layers if layer.ffn.router is not None)
            if experts > MAX_TENSORS:
                raise AxesError("router.n_experts", f"at most {MAX_TENSORS} experts in all layers", experts)
        except AxesError as e:
            raise error(f"{self.where}: {e.axis}", e.expected, e.got) from None
        return config

    def bindings(self, config: ModelConfig, sources: Sources) -> Iterator[Binding]:
        """Yield where each tensor is. Raises CheckpointError."""
        rules: tuple[Rule, ...] = read_rules(self.values.get("tensors"), f"{self.where}: tensors")
        ignored = self.values.get("ignore", [])
        if not isinstance(ignored, list) or not all(isinstance(prefix, str) and prefix for prefix in ignored):
            raise error(f"{self.where}: ignore", "a list of beginnings of names", described(ignored))
        yield from (Skip(prefix, "ignored by the family file") for prefix in ignored)
        yield from bind_rules(config, rules, sources)


def read_family(path: Path) -> DescribedFamily:
    """Read a family file. Raises UsageError where there is none, CheckpointError where it is not TOML."""
    if not path.is_file():
        raise UsageError("--family", expected="a .toml file", got=f"no file {quoted(str(path))}", hint="check the path")
    try:
        values = tomllib.loads(read_whole(path, MAX_BYTES).decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as e:
        raise CheckpointError(place(path), expected="TOML", got=str(e), hint="correct the file") from None
    return DescribedFamily(path, values)


def _resolved(value: Any, config_json: Mapping[str, Json], where: str) -> Any:
    if isinstance(value, dict):
        return {key: _resolved(item, config_json, where) for key, item in value.items()}
    if isinstance(value, list):
        return [_resolved(item, config_json, where) for item in value]
    if isinstance(value, str) and value.startswith(_FROM_CONFIG):
        key = value.removeprefix(_FROM_CONFIG)
        if config_json.get(key) is None:
            raise error(f"{where}: {quoted(value)}", "a key of config.json", "no such key")
        return config_json[key]
    return value


def _check_keys(table: Table, known: tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in known:
            raise error(f"{where}: {key}", f"one of {', '.join(known)}", "an unknown key")


def _model(values: Table, where: str) -> ModelConfig:
    table = values.get("model")
    if not isinstance(table, Mapping):
        raise error(f"{where}: model", "a table", described(table) if "model" in values else "no such table")
    _check_keys(table, (*_MODEL, *_MODEL_OPTIONAL), f"{where}: model")
    n_layers = table.get("n_layers")
    if type(n_layers) is not int or not 1 <= n_layers <= MAX_LAYERS:
        raise error(f"{where}: model.n_layers", f"a whole number from 1 to {MAX_LAYERS}", described(n_layers))
    norm = build_norm(table.get("norm", {}), f"{where}: model.norm")
    final = build_norm(table["final_norm"], f"{where}: model.final_norm") if "final_norm" in table else norm
    rest = {key: value for key, value in table.items() if key not in ("n_layers", "norm", "final_norm")}
    return build(
        ModelConfig,
        rest,
        f"{where}: model",
        family=values.get("name", "described"),
        layers=tuple(_layer(_of_layer(values, n, where), norm, where) for n in range(n_layers)),
        final_norm=final,
    )


def _of_layer(values: Table, n: int, where: str) -> Table:
    """The sections as they are for layer n: [[layers]] whose `numbers` hold it replace keys of the common ones."""
    merged = {key: values[key] for key in (*_MIXERS, "ffn", "router", "shared", "layer") if key in values}
    special = values.get("layers", [])
    if not isinstance(special, list) or not all(isinstance(entry, dict) for entry in special):
        raise error(f"{where}: layers", "[[layers]] tables", described(special))
    for entry in special:
        _check_keys(entry, ("numbers", *_MIXERS, "ffn", "router", "shared", "layer"), f"{where}: layers")
        numbers = entry.get("numbers")
        if not isinstance(numbers, list) or not all(type(number) is int for number in numbers):
            raise error(f"{where}: layers.numbers", "a list of layers", described(numbers))
        if n not in numbers:
            continue
        if any(mixer in entry for mixer in _MIXERS):
            kept = {m for m in _MIXERS if m in entry}
            merged = {key: value for key, value in merged.items() if key not in _MIXERS or key in kept}
        for key, value in entry.items():
            if key != "numbers":
                both = isinstance(value, dict) and isinstance(merged.get(key), dict)
                merged[key] = {**merged[key], **value} if both else value
    return merged


def _layer(sections: Table, norm: Norm, where: str) -> Layer:
    own = sections.get("layer", {})
    if not isinstance(own, Mapping):
        raise error(f"{where}: layer", "a table", described(own))
    norms = {"attn_norm": norm, "ffn_norm": norm}
    given = {key: value for key, value in norms.items() if key not in own}
    return build(Layer, own, f"{where}: layer", mixer=_mixer(sections, where), ffn=_ffn(sections, where), **given)


def _mixer(sections: Table, where: str) -> Mixer:
    named = [m for m in _MIXERS if m in sections]
    if len(named) != 1 or not isinstance(sections[named[0]], Mapping):
        raise error(where, f"one table of {', '.join(_MIXERS)} for each layer", ", ".join(named) or "none")
    table, place_ = sections[named[0]], f"{where}: {named[0]}"
    if named[0] == "attention":
        return build_attention(table, place_)
    return build_latent(table, place_) if named[0] == "latent" else build(Convolution, table, place_)


def _ffn(sections: Table, where: str) -> Ffn:
    router, shared = sections.get("router", False), sections.get("shared", False)
    return build(
        Ffn,
        sections.get("ffn", {}),
        f"{where}: ffn",
        router=None if router is False else build(Router, router, f"{where}: router"),
        shared=None if shared is False else build(Shared, shared, f"{where}: shared"),
    )
