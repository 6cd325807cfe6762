# SPDX-License-Identifier: Apache-2.0
"""The oracles' checkpoints as GGUF files, written with llama.cpp's own package: its keys, its names for the framework's tensors,
its converter's order of the rows of q and k."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from safetensors import deserialize

from colibri.axes import Attention
from colibri.importers import load

ORACLES = Path(__file__).parents[1] / "oracles" / "data"
_ADJACENT = ("llama", "deepseek")
_STACKED = {"gate": "gate_proj", "up": "up_proj", "down": "down_proj"}


@dataclass(frozen=True)
class Converted:
    """An oracle as a file of an architecture.

    keys    methods of the package's writer, without add_, and their arguments
    stated  what `--set` must say, since no key says it
    tables  tensors that the converter makes from the config
    """

    architecture: str
    keys: Mapping[str, Any] = field(default_factory=dict)
    stated: tuple[tuple[str, str], ...] = ()
    tables: Mapping[str, tuple[float, ...]] = field(default_factory=dict)


_LONG, _SHORT = (1.0, 2.0, 4.0, 6.0, 8.0), (1.0, 1.1, 1.25, 1.5, 2.0)
FILES: dict[str, Converted] = {
    "mixtral": Converted("llama", {"rope_freq_base": 1e6}),
    "mistral_swa": Converted("llama", stated=(("attention.sliding_window", "4"),)),
    "llama": Converted("llama"),
    "qwen3": Converted("qwen3"),
    "olmoe": Converted("olmoe", stated=(("attention.clip", "0.8"),)),
    "qwen3_moe_nonorm": Converted("qwen3moe", stated=(("router.renormalise", "false"),)),
    "deepseek": Converted(
        "deepseek", {"leading_dense_block_count": 1, "expert_shared_count": 2, "expert_weights_scale": 1.0}
    ),
    "minimax_m2": Converted(
        "minimax-m2",
        {"rope_freq_base": 5e6, "rope_dimension_count": 8, "expert_gating_func": gguf.ExpertGatingFuncType.SIGMOID},
    ),
    "hunyuan_v1_moe": Converted("hunyuan-moe", {"expert_shared_feed_forward_length": 20, "expert_shared_count": 1}),
    "phimoe": Converted("phimoe", {"rope_freq_base": 1e6, "sliding_window": 0}, stated=(("router.jitter", "0.2"),)),
    "phimoe_longrope": Converted(
        "phimoe",
        {"rope_scaling_orig_ctx_len": 64, "rope_scaling_attn_factors": 1.0801234},
        stated=(("rope.factor", "1.243"),),
        tables={"rope_factors_long.weight": _LONG, "rope_factors_short.weight": _SHORT},
    ),
}


def permuted(w: np.ndarray, n_heads: int) -> np.ndarray:
    """What llama.cpp's converter does to q and k where its code rotates adjacent pairs."""
    return w.reshape(n_heads, 2, w.shape[0] // n_heads // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def write(path: Path, name: str, **changed: Any) -> None:
    """Write an oracle's checkpoint as a file of FILES; with keys, or tables, that are changed."""
    file = FILES[name]
    tables = changed.pop("tables", file.tables)
    config = load(ORACLES / name).config
    mixer, ffn = config.layers[0].mixer, config.layers[-1].ffn
    assert isinstance(mixer, Attention)
    writer = gguf.GGUFWriter(path, file.architecture)
    writer.add_block_count(len(config.layers))
    writer.add_context_length(128)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.layers[0].ffn.width)
    writer.add_head_count(mixer.n_heads)
    writer.add_head_count_kv(mixer.n_kv_heads)
    writer.add_key_length(mixer.head_dim)
    writer.add_value_length(mixer.head_dim)
    writer.add_layer_norm_rms_eps(config.final_norm.eps)
    if ffn.router is not None:
        writer.add_expert_count(ffn.router.n_experts)
        writer.add_expert_used_count(ffn.router.top_k)
        writer.add_expert_feed_forward_length(ffn.width)
    for key, value in {**file.keys, **changed}.items():
        getattr(writer, f"add_{key}")(value)
    model_arch = next(a for a, text in gguf.MODEL_ARCH_NAMES.items() if text == file.architecture)
    names = gguf.get_tensor_name_map(model_arch, len(config.layers))
    stacks: dict[str, dict[int, np.ndarray]] = {}
    for tensor, array in _arrays(ORACLES / name):
        if file.architecture in _ADJACENT and ("q_proj" in tensor or "k_proj" in tensor):
            array = permuted(array, mixer.n_heads if "q_proj" in tensor else mixer.n_kv_heads)
        before, experts, after = tensor.partition(".experts.")
        if experts:
            j, _, rest = after.partition(".")
            stacks.setdefault(f"{before}.experts.{rest}", {})[int(j)] = array
        else:
            writer.add_tensor(_name(names, tensor), array)
    for tensor, by_index in stacks.items():
        writer.add_tensor(_name(names, tensor), np.stack([by_index[j] for j in range(len(by_index))]))
    for tensor, values in tables.items():
        writer.add_tensor(tensor, np.array(values, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _name(names: gguf.TensorNameMap, tensor: str) -> str:
    # The converter spells a parameter of no module as one of a module's.
    found = names.get_name(tensor.replace("correction_bias", "correction.bias"), (".weight", ".bias"))
    assert found is not None, tensor
    return found


def _arrays(folder: Path) -> Iterator[tuple[str, np.ndarray]]:
    """The framework's tensors; experts that it keeps in one, one by one."""
    for tensor, stored in deserialize((folder / "model.safetensors").read_bytes()):
        array = _values(stored)
        before, experts, matrix = tensor.partition(".experts.")
        if experts and matrix in ("gate_up_proj", "down_proj"):
            parts = {"gate": 0, "up": 1} if matrix == "gate_up_proj" else {"down": 0}
            for part, half in zip(parts, np.split(array, len(parts), axis=1), strict=True):
                yield from ((f"{before}.experts.{j}.{_STACKED[part]}.weight", w) for j, w in enumerate(half))
        else:
            yield tensor, array


def _values(stored: dict[str, Any]) -> np.ndarray:
    if stored["dtype"] == "BF16":
        values = (np.frombuffer(stored["data"], "<u2").astype(np.uint32) << 16).view(np.float32)
    else:
        values = np.frombuffer(stored["data"], {"F32": "<f4", "F16": "<f2"}[stored["dtype"]])
    return values.reshape(stored["shape"])
