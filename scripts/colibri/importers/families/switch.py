# SPDX-License-Identifier: Apache-2.0
"""Switch Transformer: T5's encoder and decoder, and one expert a token in every few layers (arXiv 2101.03961)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from colibri.axes import NO_FFN, Attention, Ffn, Layer, Norm, RelativeBias, Router
from colibri.importers.bind import Binding, Copy, Part, Sources
from colibri.importers.config import ConfigReader
from colibri.importers.families.decoder import f32, read_activation, read_norm
from colibri.importers.families.family import Family
from colibri.importers.limits import MAX_LAYERS, MAX_POSITIONS, MAX_ROW_ELEMS, MAX_VOCAB
from colibri.model import Encoder, ModelConfig
from colibri.tensors import layer_tensors

_SUBLAYERS = {"past": ("SelfAttention", 0), "source": ("SelfAttention", 0), "encoded": ("EncDecAttention", 1)}
_BLOCK = {"up": "wi", "down": "wo"}


def _config(config: ConfigReader) -> ModelConfig:
    if not config.flag("is_encoder_decoder"):
        raise config.error("is_encoder_decoder", "true: encoder and decoder together")
    if config.text("router_dtype") != "float32":
        raise config.error("router_dtype", "float32, in which routers are computed here")
    hidden = config.integer("d_model", 1, MAX_ROW_ELEMS)
    vocab = config.integer("vocab_size", 1, MAX_VOCAB)
    context = config.integer("n_positions", 1, MAX_POSITIONS)
    norm = read_norm(config, "layer_norm_epsilon")
    tied = config.flag("tie_word_embeddings")
    encoder = tuple(_encoder(config, norm, context))
    start = config.ids("decoder_start_token_id", vocab) or config.ids("pad_token_id", vocab)
    if len(start) > 1:
        raise config.error("decoder_start_token_id", "one token id")
    return ModelConfig(
        family="switch_transformers",
        vocab_size=vocab,
        hidden_size=hidden,
        max_seq=context,
        layers=(*encoder, *_decoder(config, norm)),
        final_norm=norm,
        tied_head=tied,
        logits_scale=f32(hidden**-0.5) if tied else 1.0,
        bos_id=start[0] if start else None,
        eos_ids=config.ids("eos_token_id", vocab),
        encoder=Encoder(len(encoder), context, norm),
    )


def _encoder(config: ConfigReader, norm: Norm, context: int) -> Iterator[Layer]:
    attention = replace(_attention(config), over="source", relative_bias=_bias(config, "source"))
    capacity = config.integer("expert_capacity", 1, MAX_POSITIONS)
    for sparse in _sparse(config, "encoder", _n_layers(config, "num_layers")):
        # Where no expert can be full, none counts.
        yield Layer(attention, _ffn(config, sparse, capacity if capacity < context else None), norm, norm)


def _decoder(config: ConfigReader, norm: Norm) -> Iterator[Layer]:
    """Two of our layers for each of T5's. One token at a time, no expert is ever full: there is no capacity."""
    own = replace(_attention(config), relative_bias=_bias(config, "past"))
    n_layers = _n_layers(config, "num_layers" if config.get("num_decoder_layers") is None else "num_decoder_layers")
    for sparse in _sparse(config, "decoder", n_layers):
        yield Layer(own, NO_FFN, norm, None)
        yield Layer(replace(_attention(config), over="encoded"), _ffn(config, sparse, None), norm, norm)


def _n_layers(config: ConfigReader, key: str) -> int:
    return config.integer(key, 1, MAX_LAYERS // 4)


def _attention(config: ConfigReader) -> Attention:
    """Without a scale: T5 has it in the initialisation of its queries."""
    n_heads, head_dim = config.integer("num_heads", 1, MAX_ROW_ELEMS), config.integer("d_kv", 1, MAX_ROW_ELEMS)
    if n_heads * head_dim > MAX_ROW_ELEMS:
        raise config.error("num_heads", f"at most {MAX_ROW_ELEMS} elements in all heads")
    return Attention(n_heads, n_heads, head_dim, scale=1.0, rope=None)


def _bias(config: ConfigReader, over: str) -> RelativeBias:
    n_buckets = config.integer("relative_attention_num_buckets", 4, MAX_ROW_ELEMS)
    least = n_buckets // 4 + 1 if over == "source" else n_buckets // 2 + 1
    return RelativeBias(n_buckets, config.integer("relative_attention_max_distance", least, MAX_POSITIONS))


def _sparse(config: ConfigReader, stack: str, n_layers: int) -> Iterator[bool]:
    """Which layers have experts: every step-th, the first of them the second layer."""
    key = f"{stack}_sparse_step"
    if config.has(key):
        step = config.integer(key, 0, MAX_LAYERS)
    else:
        step = n_layers // (config.integer(f"num_sparse_{stack}_layers", 0, n_layers) or 1)
    return (step > 0 and (step == 1 or n % step == 1) for n in range(n_layers))


def _ffn(config: ConfigReader, sparse: bool, capacity: int | None) -> Ffn:
    router = None
    if sparse:
        n_experts, bias = config.integer("num_experts", 1, MAX_ROW_ELEMS), config.flag("router_bias")
        router = Router(n_experts, 1, bias=bias, score="softmax", weights="score", capacity=capacity)
    activation = read_activation(config, "dense_act_fn")
    return Ffn(config.integer("d_ff", 1, MAX_ROW_ELEMS), activation, gated=False, router=router)


def _bindings(config: ModelConfig, sources: Sources, _reader: ConfigReader) -> Iterator[Binding]:
    embedding = (config.vocab_size, config.hidden_size)
    yield Part("embed.weight", "shared.weight", embedding)
    for stack in ("encoder", "decoder"):
        if (source := f"{stack}.embed_tokens.weight") in sources:
            yield Copy("embed.weight", source, embedding)
    for over, (bias, n_heads) in config.relative_biases.items():
        stack = "encoder" if over == "source" else "decoder"
        source = f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        yield Part(f"relative_bias.{over}", source, (bias.n_buckets, n_heads), transposed=True)
    for n, layer in enumerate(config.layers):
        prefix = _prefix(config, n)
        for name, shape in layer_tensors(layer, config.hidden_size):
            yield Part(f"layers.{n}.{name}", prefix + _source(layer, name), shape)
    yield Part("encoder_norm.weight", "encoder.final_layer_norm.weight", embedding[1:])
    yield Part("final_norm.weight", "decoder.final_layer_norm.weight", embedding[1:])
    if not config.tied_head:
        yield Part("head.weight", "lm_head.weight", embedding)
    elif "lm_head.weight" in sources:
        yield Copy("embed.weight", "lm_head.weight", embedding)


def _prefix(config: ModelConfig, n: int) -> str:
    if n < config.n_encoder:
        return f"encoder.block.{n}.layer."
    return f"decoder.block.{(n - config.n_encoder) // 2}.layer."


def _source(layer: Layer, name: str) -> str:
    """The name of a tensor from its layer's own sublayers on."""
    assert isinstance(layer.mixer, Attention)
    module, at = _SUBLAYERS[layer.mixer.over]
    if name.startswith("attn."):
        return f"{at}.{module}.{name.removeprefix('attn.')}"
    if name == "attn_norm.weight":
        return f"{at}.layer_norm.weight"
    block = f"{at + 1}."
    if name == "ffn_norm.weight":
        return f"{block}layer_norm.weight"
    if name.startswith("router."):
        return f"{block}mlp.router.classifier.{name.removeprefix('router.')}"
    *owner, matrix, leaf = name.split(".")
    expert = f"experts.expert_{owner[1]}." if owner[0] == "experts" else ""
    return f"{block}mlp.{expert}{_BLOCK[matrix]}.{leaf}"


FAMILY = Family(
    name="switch_transformers",
    title="Switch Transformer",
    architectures=("SwitchTransformersForConditionalGeneration",),
    defaults={
        "vocab_size": 32128,
        "d_model": 768,
        "d_kv": 64,
        "d_ff": 2048,
        "expert_capacity": 64,
        "num_layers": 12,
        "num_sparse_encoder_layers": 3,
        "num_decoder_layers": 12,
        "num_sparse_decoder_layers": 3,
        "num_heads": 12,
        "num_experts": 8,
        "router_bias": False,
        "router_dtype": "float32",
        "relative_attention_num_buckets": 32,
        "relative_attention_max_distance": 128,
        "layer_norm_epsilon": 1e-6,
        "dense_act_fn": "relu",
        "is_encoder_decoder": True,
        "n_positions": 512,  # what the published models were trained with; the class has no such key
        "pad_token_id": 0,
        "eos_token_id": 1,
        "tie_word_embeddings": True,
    },
    config=_config,
    bindings=_bindings,
)
