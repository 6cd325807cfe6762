# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that were quantised by other tools: recognised, and refused with the reason."""

from __future__ import annotations

from collections.abc import Mapping

from colibri.errors import CheckpointError
from colibri.importers.safetensors import SourceTensor
from colibri.importers.stored import FP8_BLOCK
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

# What `stored` reads itself: the methods as config.json names them.
READ_METHODS = ("fp8", "mxfp4")

_HINT = "import the checkpoint from before it was quantised; Colibri quantises by itself"


def refuse_quantised(config_where: str, config: Mapping[str, Json], sources: Mapping[str, SourceTensor]) -> None:
    """Raise CheckpointError where the config or the name of a tensor says that weights are quantised in a way not read here."""
    for key in ("quantization_config", "compression_config"):
        said = config.get(key)
        if said is not None:
            _check_method(f"{config_where}: {key}", said)
    for source in sources.values():
        for suffix, tools in _SUFFIXES.items():
            if source.name.endswith("." + suffix) or (suffix[:5] == "proj_" and source.name.endswith(suffix)):
                if _is_read(source.name, sources):
                    continue
                raise CheckpointError(
                    source.where, expected="unquantised weights", got=f"a tensor that {tools} writes", hint=_HINT
                )


def _check_method(where: str, said: Json) -> None:
    method = said.get("quant_method") if isinstance(said, dict) else said
    block = said.get("weight_block_size") if isinstance(said, dict) else None
    if method not in READ_METHODS:
        raise CheckpointError(where, expected="unquantised weights", got=f"method {described(method)}", hint=_HINT)
    if method == "fp8" and block != [FP8_BLOCK, FP8_BLOCK]:
        raise CheckpointError(
            where, expected=f"weight_block_size of {FP8_BLOCK} x {FP8_BLOCK}", got=described(block), hint=_HINT
        )


def _is_read(name: str, sources: Mapping[str, SourceTensor]) -> bool:
    """Whether a tensor of scales or codes stands beside the one it belongs to."""
    if name.endswith("_scale_inv"):
        scaled = sources.get(name.removesuffix("_scale_inv"))
        return scaled is not None and scaled.dtype == "F8_E4M3"
    for one, other in (("_blocks", "_scales"), ("_scales", "_blocks")):
        if name.endswith(one):
            return name.removesuffix(one) + other in sources
    return False
