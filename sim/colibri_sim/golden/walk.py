# SPDX-License-Identifier: Apache-2.0
"""The walk through a model: docs/NUMERICS.md section 7.1."""

from __future__ import annotations

import numpy as np

from colibri.axes import Attention, Convolution, LatentAttention, Layer, Mixer, Norm

from . import functions as f
from .convolution import ConvolutionOperators
from .ffn import FfnOperators
from .fma import F32Array, fma
from .latent import LatentAttentionOperators
from .mixture_of_attention import MixtureOfAttentionOperators
from .operators import Call, I64Array
from .products import rows_of


class Walk(MixtureOfAttentionOperators, LatentAttentionOperators, ConvolutionOperators, FfnOperators):
    """Embedding, layers, head: x [T, H] is the residual stream."""

    def embed(self, call: Call, ids: I64Array) -> F32Array:
        """Rows of the embedding."""
        x = rows_of(self.stored("embed.weight"), ids).values()
        if self.config.embedding_scale != 1.0:
            with np.errstate(all="ignore"):
                x = f.snap(x * np.float32(self.config.embedding_scale))
        return self.emit(call, "embed", x, ranged=True)

    def layer(self, call: Call, layer: Layer, x: F32Array) -> F32Array:
        """One layer."""
        n = self.layer_norm(call, "attn_norm", layer.attn_norm, x)
        y = self.emit(call, "attn_out", self.mix(call, layer.mixer, n), ranged=layer.attn_post_norm is not None)
        y = self.layer_norm(call, "attn_post_norm", layer.attn_post_norm, y)
        x = self.emit(call, "attn_residual", self.residual(x, y, layer.residual), ranged=True)
        if layer.ffn.width == 0:
            call.experts.append(np.zeros((len(n), 0), dtype=np.int32))
            return x
        n = self.layer_norm(call, "ffn_norm", layer.ffn_norm, x)
        y = self.ffn(call, layer.ffn, n)
        if layer.ffn_post_norm is not None:
            self.check(call, "ffn_post_norm", y)
        y = self.layer_norm(call, "ffn_post_norm", layer.ffn_post_norm, y)
        return self.emit(call, "ffn_residual", self.residual(x, y, layer.residual), ranged=True)

    def layer_norm(self, call: Call, name: str, norm: Norm | None, x: F32Array) -> F32Array:
        """One of a layer's four norms; x itself where the layer does not have it."""
        return x if norm is None else self.emit(call, name, self.norm(x, call.name(name), norm), ranged=True)

    def mix(self, call: Call, mixer: Mixer, n: F32Array) -> F32Array:
        """What a token takes from those before it: n [T, H] to y [T, H]."""
        match mixer:
            case Attention(router=None):
                return self.attention(call, mixer, n)
            case Attention(router=router):
                assert router is not None
                return self.mixture_of_attention(call, mixer, router, n)
            case LatentAttention():
                return self.latent_attention(call, mixer, n)
            case Convolution():
                return self.convolution(call, mixer, n)

    def residual(self, x: F32Array, y: F32Array, factor: float) -> F32Array:
        """``snap(x + y)``, with a factor ``snap(fma(y, factor, x))``."""
        with np.errstate(all="ignore"):
            return f.snap(x + y if factor == 1.0 else fma(y, np.float32(factor), x))

    def encoder_norm(self, call: Call, norm: Norm, x: F32Array) -> F32Array:
        """The encoder's output."""
        return self.emit(call, "encoder_norm", self.norm(x, "encoder_norm", norm), ranged=True)

    def final_norm(self, call: Call, x: F32Array) -> F32Array:
        """The norm before the head."""
        return self.emit(call, "final_norm", self.norm(x, "final_norm", self.config.final_norm), ranged=True)

    def head(self, call: Call, n: F32Array) -> F32Array:
        """Logits [T, V]."""
        z = self.project(self.head_tensor(), n)
        if self.config.head_bias:
            z = self.add_bias("head.bias", z)
        if self.config.logits_scale != 1.0:
            with np.errstate(all="ignore"):
                z = f.snap(z * np.float32(self.config.logits_scale))
        return self.emit(call, "logits", z, ranged=True)

    def head_tensor(self) -> str:
        """Name of the matrix that makes logits."""
        return "embed.weight" if self.config.tied_head else "head.weight"
