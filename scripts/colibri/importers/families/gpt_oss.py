# SPDX-License-Identifier: Apache-2.0
"""gpt-oss: attention sinks, a window in every other layer, clamped SwiGLU, biases everywhere, gate and up interleaved."""

from __future__ import annotations

from collections.abc import Iterator

from colibri.axes import Clamp, Ffn, Layer
from colibri.importers.bind import Binding, Part, Sources
from colibri.importers.config import ConfigReader
from colibri.importers.families.blocks import bind_stacked, halves
from colibri.importers.families.decoder import (
    COMMON_DEFAULTS,
    f32,
    read_attention,
    read_head_dim,
    read_model,
    read_norm,
    read_width,
    read_windows,
)
from colibri.importers.families.family import Family
from colibri.importers.families.names import LLAMA, Table, bind_decoder
from colibri.importers.families.routing import read_router
from colibri.importers.limits import MAX_SCALE
from colibri.importers.rope_config import read_rope
from colibri.model import ModelConfig

_TABLE: Table = {**LLAMA, "attn.sinks": "self_attn.sinks", "router": "mlp.router"}


def _config(config: ConfigReader) -> ModelConfig:
    rope = read_rope(config, read_head_dim(config)).rope
    bias, norm = config.flag("attention_bias"), read_norm(config)
    clamp = Clamp(
        f32(config.number("swiglu_limit", 2.0**-40, MAX_SCALE)), f32(config.number("swiglu_alpha", 0.0, MAX_SCALE))
    )
    ffn = Ffn(read_width(config), clamp=clamp, bias=True, router=read_router(config, bias=True))
    layers = (
        Layer(
            read_attention(config, rope, window=window, qkv_bias=bias, o_bias=bias, sinks=True),
            ffn,
            attn_norm=norm,
            ffn_norm=norm,
        )
        for window in read_windows(config, lambda n, _: n % 2 == 0)
    )
    return read_model(config, "gpt_oss", layers, norm)


def _experts(config: ModelConfig, n: int, prefix: str, sources: Sources) -> Iterator[Part]:
    h, ffn = config.hidden_size, config.layers[n].ffn
    assert ffn.router is not None
    module, n_experts = f"{prefix}mlp.experts", ffn.router.n_experts
    # As MXFP4 the rows are output features; in the other floats they are columns.
    is_packed = f"{module}.gate_up_proj_blocks" in sources
    yield from bind_stacked(
        config, n, f"{module}.gate_up_proj", f"{module}.down_proj", transposed=not is_packed, interleaved=True
    )
    for j in range(n_experts):
        target = f"layers.{n}.experts.{j}."
        for name, rows in zip(("gate", "up"), halves(ffn.width, interleaved=True), strict=True):
            yield Part(f"{target}{name}.bias", f"{module}.gate_up_proj_bias", (n_experts, 2 * ffn.width), (j, rows))
        yield Part(f"{target}down.bias", f"{module}.down_proj_bias", (n_experts, h), (j,))


def _bindings(config: ModelConfig, sources: Sources, _reader: ConfigReader) -> Iterator[Binding]:
    return bind_decoder(config, sources, _TABLE, _experts)


FAMILY = Family(
    name="gpt_oss",
    title="gpt-oss",
    architectures=("GptOssForCausalLM",),
    defaults={
        **COMMON_DEFAULTS,
        "vocab_size": 201088,
        "hidden_size": 2880,
        "intermediate_size": 2880,
        "num_hidden_layers": 36,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "max_position_embeddings": 131072,
        "rms_norm_eps": 1e-5,
        "sliding_window": 128,
        "rope_theta": 150000.0,
        "rope_parameters": {
            "rope_type": "yarn",
            "factor": 32.0,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "truncate": False,
            "original_max_position_embeddings": 4096,
        },
        "attention_bias": True,
        "num_local_experts": 128,
        "num_experts_per_tok": 4,
        "swiglu_limit": 7.0,
        "swiglu_alpha": 1.702,
        "bos_token_id": None,
        "eos_token_id": None,
    },
    config=_config,
    bindings=_bindings,
)
