# SPDX-License-Identifier: Apache-2.0
"""The one intermediate representation: a frozen configuration and lazily read named tensors.

Importers produce a `Model`; everything after them knows no file format and no family name. Each axis on which
architectures differ is data here, so that an engine or a golden model never branches on a family.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from colibri.axes import Attention, Layer, Norm, RelativeBias
from colibri.tensors import layer_tensors, norm_tensors

F32Array = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Encoder:
    """What runs over the whole source at once, before the first token of the sequence.

    n_layers    the first of the model's layers; the others are the decoder's
    max_source  the longest source, in tokens
    final_norm  of the encoder's output, which the decoder's cross-attention reads
    """

    n_layers: int
    max_source: int
    final_norm: Norm


@dataclass(frozen=True)
class ModelConfig:
    """Everything about a model but its numbers.

    layers           all of them, the encoder's first
    max_seq          context length in tokens
    embedding_scale  multiplies the embedded token;  logits_scale: multiplies the logits
    head_bias        a bias on the logits, before their scale
    """

    family: str
    vocab_size: int
    hidden_size: int
    max_seq: int
    layers: tuple[Layer, ...]
    final_norm: Norm
    tied_head: bool
    embedding_scale: float = 1.0
    logits_scale: float = 1.0
    head_bias: bool = False
    bos_id: int | None = None
    eos_ids: tuple[int, ...] = ()
    encoder: Encoder | None = None

    @property
    def n_encoder(self) -> int:
        """Layers of the encoder; 0: there is none."""
        return 0 if self.encoder is None else self.encoder.n_layers

    @property
    def relative_biases(self) -> dict[str, tuple[RelativeBias, int]]:
        """What is attended to, past or source -> the bias of its scores and the number of heads."""
        found: dict[str, tuple[RelativeBias, int]] = {}
        for layer in self.layers:
            if isinstance(a := layer.mixer, Attention) and a.relative_bias is not None:
                found[a.over] = (a.relative_bias, a.n_heads)
        return found

    def tensor_shapes(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of every tensor (colibri.tensors), in the order of execution."""
        h, v = self.hidden_size, self.vocab_size
        shapes: dict[str, tuple[int, ...]] = {"embed.weight": (v, h)}
        shapes |= {f"relative_bias.{over}": (n, bias.n_buckets) for over, (bias, n) in self.relative_biases.items()}
        for n, layer in enumerate(self.layers):
            shapes |= {f"layers.{n}.{name}": shape for name, shape in layer_tensors(layer, h)}
        if self.encoder is not None:
            shapes |= dict(norm_tensors("encoder_norm", self.encoder.final_norm, h))
        shapes |= dict(norm_tensors("final_norm", self.final_norm, h))
        if not self.tied_head:
            shapes["head.weight"] = (v, h)
        if self.head_bias:
            shapes["head.bias"] = (v,)
        return shapes


@dataclass(frozen=True)
class Tensor:
    """A named tensor that is read when asked for.

    source  where it comes from, for messages: file and the name in it
    dtype   of the file: f32, f16, bf16, f8_e4m3, mxfp4, or a block type of GGUF: q8_0, ...
    read    returns float32, shape `shape`, a new array at each call
    groups  where the file has integers q, -128 to 128, and one scale, not negative, for each 32 of a row: those,
            [rows, cols] and [rows, cols / 32]; a value is ``float32(q) * scale``
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    source: str
    read: Callable[[], F32Array]
    groups: Callable[[], tuple[npt.NDArray[np.int16], F32Array]] | None = None


@dataclass(frozen=True)
class Generation:
    """Sampling defaults of the checkpoint's generation_config.json."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0


@dataclass(frozen=True)
class Reading:
    """What the user says against the checkpoint.

    family     the name of a family, or the path of a family file (.toml)
    overrides  values of axes as `colibri inspect` prints them, in the order given (``--set KEY=VALUE``)
    """

    family: str | None = None
    overrides: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Model:
    """A checkpoint as the rest of Colibri sees it.

    source_sha256  over names, shapes, dtypes and bytes of all source tensors and the config: identifies the input
    tokenizer_json the Hugging Face tokenizer.json, where the checkpoint has one
    skipped        tensors of the checkpoint that are no part of the model, and why
    reading        what the user said against it
    settings       the keys that `reading` can override, and their values
    """

    config: ModelConfig
    tensors: Mapping[str, Tensor]
    path: Path
    source_sha256: str
    generation: Generation = field(default_factory=Generation)
    tokenizer_json: bytes | None = None
    skipped: Mapping[str, str] = field(default_factory=dict)
    reading: Reading = field(default_factory=Reading)
    settings: Mapping[str, object] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Tensor]:
        return (self.tensors[name] for name in self.config.tensor_shapes())
