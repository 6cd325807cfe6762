# SPDX-License-Identifier: Apache-2.0
"""What `colibri inspect` shows of a checkpoint: its axes, in the words that ``--set`` takes, its layers and its tensors."""

from __future__ import annotations

import dataclasses
from typing import Any

from colibri.cli import render
from colibri.model import Model

_MAX_ITEMS = 6


def found(model: Model) -> dict[str, Any]:
    """The document. A key of ``--set`` is a path in `config`."""
    config = dataclasses.asdict(model.config)
    layers = config.pop("layers")
    for layer, axes in zip(layers, model.config.layers, strict=True):
        layer["mixer"] = {"kind": type(axes.mixer).__name__, **layer["mixer"]}
    for path, value in model.settings.items():
        section, _, key = path.rpartition(".")
        (config.setdefault(section, {}) if section else config)[key] = value
    return {
        "kind": "checkpoint",
        "source_sha256": model.source_sha256,
        "config": {**config, "layers": layers},
        "settings": dict(model.settings),
        "tensors": [{"name": t.name, "shape": list(t.shape), "dtype": t.dtype, "source": t.source} for t in model],
        "skipped": [{"name": name, "reason": reason} for name, reason in model.skipped.items()],
    }


def text(document: dict[str, Any]) -> str:
    """The same for people."""
    config, settings = document["config"], document["settings"]
    plain = {
        key: value for key, value in config.items() if key not in ("layers", *settings) and not _is_section(value, key)
    }
    blocks = [
        "\n".join(_flat("", plain)),
        "What --set takes:\n" + "\n".join(f"  {key} = {_shown(value)}" for key, value in settings.items()),
        "\n".join(_flat("", {"layers": _distinct(config["layers"])})),
        render.table(
            ("tensor", "shape", "dtype"),
            [(t["name"], "x".join(map(str, t["shape"])), t["dtype"]) for t in document["tensors"]],
        ),
    ]
    if document["skipped"]:
        blocks.append(render.table(("skipped", "why"), [(s["name"], s["reason"]) for s in document["skipped"]]))
    return "\n\n".join(blocks)


def _is_section(value: Any, key: str) -> bool:
    return isinstance(value, dict) and key != "final_norm"


def _distinct(layers: list[dict[str, Any]]) -> dict[str, Any]:
    """Equal consecutive layers as one, named by their range."""
    named: dict[str, Any] = {}
    first = 0
    for n in range(1, len(layers) + 1):
        if n == len(layers) or layers[n] != layers[first]:
            named[f"{first}" if n - first == 1 else f"{first}-{n - 1}"] = layers[first]
            first = n
    return named


def _flat(prefix: str, value: Any) -> list[str]:
    if isinstance(value, dict):
        return [line for key, item in value.items() for line in _flat(f"{prefix}.{key}" if prefix else str(key), item)]
    return [f"{prefix} = {_shown(value)}"]


def _shown(value: Any) -> str:
    """A value as ``--set`` spells it; a long list is cut short."""
    if value is None or isinstance(value, bool):
        return {None: "none", True: "true", False: "false"}[value]
    if isinstance(value, list | tuple):
        more = f", ... ({len(value)})" if len(value) > _MAX_ITEMS else ""
        return "[" + ", ".join(_shown(item) for item in value[:_MAX_ITEMS]) + more + "]"
    return str(value)
