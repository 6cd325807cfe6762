# SPDX-License-Identifier: Apache-2.0
"""The supported model families: one file each, and one name here."""

from __future__ import annotations

from collections.abc import Mapping

from colibri.errors import CheckpointError, UsageError
from colibri.importers.families import (
    afmoe,
    dbrx,
    deepseek,
    deepspeed_moe,
    dynamic_moe,
    ernie,
    glam,
    glm4,
    gpt_oss,
    granite,
    hierarchical_moe,
    hunyuan,
    jetmoe,
    lfm2,
    llama,
    llama4,
    llama_moe,
    minimax,
    mistral,
    mixtral,
    olmoe,
    phimoe,
    qwen2,
    qwen_moe,
    switch,
)
from colibri.importers.families.family import Family
from colibri.importers.strict_json import Json
from colibri.importers.text import described, quoted

FAMILIES: dict[str, Family] = {
    f.name: f
    for f in (
        *(llama.FAMILY, mistral.FAMILY, qwen2.QWEN2, qwen2.QWEN3),
        *(mixtral.FAMILY, qwen_moe.QWEN2_MOE, qwen_moe.QWEN3_MOE, olmoe.OLMOE, olmoe.FLEX_OLMO),
        *(deepseek.V1, deepseek.V2, deepseek.V3, granite.PLAIN, granite.SHARED, phimoe.FAMILY, gpt_oss.FAMILY),
        *(llama4.FAMILY, lfm2.FAMILY, ernie.FAMILY, glm4.FAMILY, minimax.FAMILY, afmoe.FAMILY, hunyuan.FAMILY),
        *(dbrx.FAMILY, jetmoe.FAMILY, llama_moe.FAMILY, switch.FAMILY),
        *(glam.FAMILY, deepspeed_moe.FAMILY, hierarchical_moe.FAMILY, dynamic_moe.FAMILY),
    )
}


def find_family(where: str, config: Mapping[str, Json], name: str | None) -> Family:
    """Return the family a config names, or the one called `name`.

    where  config.json, for messages
    Raises CheckpointError for a config of another family or of a model with another head; UsageError for an unknown name.
    """
    known = ", ".join(FAMILIES)
    if name is not None:
        if name not in FAMILIES:
            raise UsageError(
                "--family",
                expected=f"a .toml file or one of {known}",
                got=quoted(name),
                hint="docs/FAMILIES.md says which is which",
            )
        return FAMILIES[name]
    model_type, architectures = config.get("model_type"), config.get("architectures")
    named = architectures if isinstance(architectures, list) else []
    if model_type is None:
        found = next((f for f in FAMILIES.values() if set(f.architectures) & {str(a) for a in named}), None)
    else:
        found = FAMILIES.get(model_type) if isinstance(model_type, str) else None
        found = found or next((f for f in FAMILIES.values() if f.nested and f.nested[0] == model_type), None)
    if found is None:
        raise CheckpointError(
            f"{where}: model_type",
            expected=f"one of {known}",
            got=described(model_type) if "model_type" in config else "no such key",
            hint="a checkpoint that differs in name only can be read with --family",
        )
    if architectures is not None and (len(named) != 1 or named[0] not in found.architectures):
        raise CheckpointError(
            f"{where}: architectures",
            expected=f"{found.architectures[0]}, as model_type is {found.name}",
            got=", ".join(described(a) for a in named[:3]) or described(architectures),
            hint="only language models with their head are read; if it is one, name its family with --family",
        )
    return found
