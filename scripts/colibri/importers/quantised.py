# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that were quantised by other tools: recognised, and refused with the reason."""

from __future__ import annotations

from collections.abc import Mapping

from colibri.errors import CheckpointError
from colibri.importers.safetensors import SourceTensor
from colibri.importers.strict_json import Json
from colibri.importers.text import described

# Ends of tensor names, and the tools that write them.
_SUFFIXES = {
    "weight_packed": "compressed-tensors",
    "weight_scale": "compressed-tensors or FP8",
    "weight_scale_inv": "block-scaled FP8",
    "qweight": "GPTQ or AWQ",
    "qzeros": "GPTQ or AWQ",
    "g_idx": "GPTQ",
    "SCB": "bitsandbytes",
    "weight_format": "bitsandbytes",
    "weight.absmax": "bitsandbytes",
    "weight.quant_map": "bitsandbytes",
    "proj_blocks": "MXFP4",
    "proj_scales": "MXFP4",
}

_HINT = "import the checkpoint from before it was quantised; Colibri quantises by itself"


def refuse_quantised(config_where: str, config: Mapping[str, Json], sources: Mapping[str, SourceTensor]) -> None:
    """Raise CheckpointError where the config or the name of a tensor says that weights are quantised."""
    for key in ("quantization_config", "compression_config"):
        said = config.get(key)
        if said is not None:
            method = said.get("quant_method") if isinstance(said, dict) else said
            raise CheckpointError(
                f"{config_where}: {key}", expected="unquantised weights", got=f"method {described(method)}", hint=_HINT
            )
    for source in sources.values():
        for suffix, tools in _SUFFIXES.items():
            if source.name.endswith("." + suffix) or (suffix[:5] == "proj_" and source.name.endswith(suffix)):
                raise CheckpointError(
                    source.where, expected="unquantised weights", got=f"a tensor that {tools} writes", hint=_HINT
                )
