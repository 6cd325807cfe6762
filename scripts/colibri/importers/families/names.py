# SPDX-License-Identifier: Apache-2.0
"""From canonical names to a family's names: a table, and the parts of tensors that no table can say.

A table has the family's module for each canonical one: ``attn.q`` is ``self_attn.q_proj``, so ``layers.3.attn.q.weight`` is
``model.layers.3.self_attn.q_proj.weight``. Several alternatives stand as a tuple: the one that the checkpoint has counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from colibri.importers.bind import Binding, Copy, Part, Skip, Sources
from colibri.importers.families.blocks import bind_experts
from colibri.model import ModelConfig
from colibri.tensors import layer_tensors, norm_tensors

Table = Mapping[str, str | tuple[str, ...]]
Special = Callable[[ModelConfig, int, str, Sources], Iterator[Part]]
"""config, layer, the layer's prefix in the checkpoint, all names there: parts that stand before the table."""

LLAMA: Table = {
    "embed": "model.embed_tokens",
    "layers": "model.layers",
    "final_norm": "model.norm",
    "head": "lm_head",
    "attn_norm": "input_layernorm",
    "attn.q": "self_attn.q_proj",
    "attn.k": "self_attn.k_proj",
    "attn.v": "self_attn.v_proj",
    "attn.o": "self_attn.o_proj",
    "attn.q_norm": "self_attn.q_norm",
    "attn.k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn.gate": "mlp.gate_proj",
    "ffn.up": "mlp.up_proj",
    "ffn.down": "mlp.down_proj",
    "router": "mlp.gate",
    "router.correction": "mlp.gate.e_score_correction_bias",
    "experts": "mlp.experts",
    "shared.gate": "mlp.shared_experts.gate_proj",
    "shared.up": "mlp.shared_experts.up_proj",
    "shared.down": "mlp.shared_experts.down_proj",
}


def block(canonical: str, module: str, names: tuple[str, str, str] = ("gate_proj", "up_proj", "down_proj")) -> Table:
    """Return the table of one feed-forward block under `module`; `names` of gate, up and down."""
    return {f"{canonical}.{part}": f"{module}.{name}" for part, name in zip(("gate", "up", "down"), names, strict=True)}


def nothing_special(_config: ModelConfig, _n: int, _prefix: str, _sources: Sources) -> Iterator[Part]:
    """No part of a layer is other than the table says."""
    return iter(())


def bind_decoder(
    config: ModelConfig, sources: Sources, table: Table = LLAMA, special: Special = nothing_special
) -> Iterator[Binding]:
    """Yield where each canonical tensor of a decoder is, in order; lazy."""

    def whole(target: str, shape: tuple[int, ...], prefix: str = "", relative: str | None = None) -> Part:
        return Part(target, prefix + _source(relative or target, table, prefix, sources), shape)

    embedding = (config.vocab_size, config.hidden_size)
    yield whole("embed.weight", embedding)
    for n, layer in enumerate(config.layers):
        prefix = f"{table['layers']}.{n}."
        parts = {part.target: part for part in special(config, n, prefix, sources)}
        if layer.ffn.router is not None and f"layers.{n}.experts.0.up.weight" not in parts:
            module = prefix + _present(table["experts"], prefix, ".", sources)
            parts |= {part.target: part for part in bind_experts(config, n, module, sources)}
        for name, shape in layer_tensors(layer, config.hidden_size):
            target = f"layers.{n}.{name}"
            yield parts.get(target) or whole(target, shape, prefix, name)
    for name, shape in norm_tensors("final_norm", config.final_norm, config.hidden_size):
        yield whole(name, shape)
    head = _source("head.weight", table, "", sources)
    if not config.tied_head:
        yield whole("head.weight", embedding)
    elif head in sources:
        yield Copy("embed.weight", head, embedding)
    if config.head_bias:
        yield whole("head.bias", embedding[:1])


def skip_extra_layers(config: ModelConfig, table: Table, n_extra: int) -> Iterator[Skip]:
    """Skip the layers past the model's own, which predict further tokens in training (DeepSeek-V3 section 2.2)."""
    for n in range(len(config.layers), len(config.layers) + n_extra):
        yield Skip(f"{table['layers']}.{n}.", "multi-token prediction, not used when the model runs")


def _source(name: str, table: Table, prefix: str, sources: Sources) -> str:
    """Return the family's name of a canonical tensor, both without the layer."""
    if name in table:  # a tensor that is no module's weight or bias
        return _present(table[name], prefix, "", sources)
    module, _, leaf = name.rpartition(".")
    return f"{_present(table[module], prefix, f'.{leaf}', sources)}.{leaf}"


def _present(choice: str | tuple[str, ...], prefix: str, suffix: str, sources: Sources) -> str:
    """Return the alternative that the checkpoint has; the first where it has none. A suffix of "." means: has anything under."""
    if isinstance(choice, str):
        return choice
    for name in choice:
        start = prefix + name + suffix
        if start in sources or (suffix == "." and any(n.startswith(start) for n in sources)):
            return name
    return choice[0]
