# SPDX-License-Identifier: Apache-2.0
"""The golden model: the forward step of docs/NUMERICS.md section 7, the definition of every bit of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from colibri.axes import Attention, Ffn, Layer, Router
from colibri.model import ModelConfig
from colibri.numerics import RANGE_BITS
from colibri.quantise import Stored

from . import functions as f
from .cache import KvCache, KvFormat
from .checks import RangeExceeded, check_snapped, first_out_of_range
from .fma import F32Array
from .products import matmul
from .trace import TraceName, TraceSink

I32Array = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Result:
    """What one forward call gives for its T tokens.

    logits   float32 [T, vocab]; [1, vocab] (the last token) where only those were asked for
    experts  for each layer int32 [T, top_k], in the order of selection; [T, 0] for a dense layer
    """

    logits: F32Array
    experts: list[I32Array]


@dataclass
class _Call:
    """The tokens of one call: where they stand, and what is told to the outside."""

    positions: npt.NDArray[np.int64]
    trace: TraceSink | None
    layer: int | None = None
    experts: list[I32Array] = field(default_factory=list)


class GoldenModel:
    """A model with its sequence: forward appends, rewind takes back.

    config   ModelConfig
    weights  gives the stored tensor of a name; asked once for each
    kv       format of the KV cache

    The vectors of all T tokens of a call go through each operator together; the bits are those of one token at a time.
    Every method below the public ones is one operator of the contract, with its tensors as float32 [T, ...].
    """

    def __init__(self, config: ModelConfig, weights: Callable[[str], Stored], kv: KvFormat = "f32") -> None:
        self.config = config
        self._weights = weights
        self._stored: dict[str, Stored] = {}
        self._cache = KvCache(config, kv)
        self._position = 0
        self._usable = True

    @property
    def position(self) -> int:
        """Tokens in the sequence so far."""
        return self._position

    def rewind(self, position: int) -> None:
        """Forget the tokens at `position` and after. To 0 it also makes a model usable again that RangeExceeded ended.

        Raises ValueError outside 0 .. the present position, or on an unusable model.
        """
        if not 0 <= position <= self._position or (position and not self._usable):
            raise ValueError(f"cannot rewind from position {self._position} to {position}")
        self._position = position
        self._usable = True

    def forward(self, ids: Sequence[int], *, trace: TraceSink | None = None, last_only: bool = False) -> Result:
        """Append ids to the sequence and compute their logits; with last_only those of the last token alone.

        Raises ValueError, with nothing changed, for no ids, an id outside the vocabulary, or more than max_seq tokens
        in all. Raises RangeExceeded where the engine returns COLIBRI_ERR_RANGE, for the first position that does;
        after it the model must be rewound to 0.
        """
        if not self._usable:
            raise ValueError("the sequence ended with RangeExceeded; rewind(0) first")
        if not ids or min(ids) < 0 or max(ids) >= self.config.vocab_size:
            raise ValueError(f"ids: at least one, each in 0..{self.config.vocab_size - 1}")
        if self._position + len(ids) > self.config.max_seq:
            raise ValueError(f"{self._position} + {len(ids)} tokens exceed the context of {self.config.max_seq}")
        try:
            result = self._run(ids, trace, last_only)
        except RangeExceeded as error:
            self._usable = False
            before = error.position - self._position
            if before > 0:
                # A token before the one found may fail in a later layer: the engine would have met that first.
                self._run(ids[:before], trace, last_only, head=not last_only)
            raise
        self._position += len(ids)
        return result

    def _run(self, ids: Sequence[int], trace: TraceSink | None, last_only: bool, *, head: bool = True) -> Result:
        call = _Call(self._position + np.arange(len(ids)), trace)
        x = self.embed(call, np.asarray(ids, dtype=np.int64))
        for index, layer in enumerate(self.config.layers):
            call.layer = index
            x = self.layer(call, index, layer, x)
        call.layer = None
        if not head:
            return Result(np.zeros((0, self.config.vocab_size), dtype=np.float32), call.experts)
        if last_only:
            call.positions, x = call.positions[-1:], x[-1:]
        return Result(self.head(call, self.final_norm(call, x)), call.experts)

    # --- the operators, in the order of the contract

    def embed(self, call: _Call, ids: npt.NDArray[np.int64]) -> F32Array:
        """Rows of the embedding: x [T, H]."""
        table = self.stored("embed.weight")
        rows = Stored(
            table.name,
            table.format,
            len(ids),
            table.cols,
            table.data[ids],
            None if table.scales is None else table.scales[ids],
            None if table.multipliers is None else table.multipliers[ids],
        )
        return self.emit(call, "embed", rows.values(), ranged=True)

    def layer(self, call: _Call, index: int, layer: Layer, x: F32Array) -> F32Array:
        """One decoder layer: x [T, H] to x [T, H]."""
        prefix = f"layers.{index}."
        n = self.emit(call, "attn_norm", self.norm(x, prefix + "attn_norm.weight"), ranged=True)
        o = self.attention_block(call, index, layer.mixer, n)
        x = self.emit(call, "attn_residual", self.residual(x, o), ranged=True)
        n = self.emit(call, "ffn_norm", self.norm(x, prefix + "ffn_norm.weight"), ranged=True)
        y = self.ffn(call, prefix, layer.ffn, n)
        check_snapped("sum of the experts", y)
        return self.emit(call, "ffn_residual", self.residual(x, y), ranged=True)

    def norm(self, x: F32Array, weight: str) -> F32Array:
        """RMSNorm: [T, H]."""
        return f.rmsnorm(x, self.vector(weight), self.config.final_norm.eps)

    def residual(self, x: F32Array, y: F32Array) -> F32Array:
        """``snap(x + y)``."""
        return f.snap(x + y)

    def attention_block(self, call: _Call, index: int, attention: Attention, n: F32Array) -> F32Array:
        """Projections, RoPE, cache, attention, output projection: n [T, H] to [T, H]."""
        prefix, heads = f"layers.{index}.attn.", attention.n_heads
        q = self.emit(call, "q", self.project(prefix + "q.weight", n))
        k = self.emit(call, "k", self.project(prefix + "k.weight", n))
        limit = self._cache.limit_bits
        v = self.emit(call, "v", self.project(prefix + "v.weight", n), ranged=True, limit_bits=limit)
        q, k = self.rope(call, attention, self.split(q, heads), self.split(k, attention.n_kv_heads))
        q = self.scale_query(attention, q)
        self.emit(call, "q_rope", self.join(q), ranged=True)
        self.emit(call, "k_rope", self.join(k), ranged=True, limit_bits=limit)
        self._cache.append(index, int(call.positions[0]), k, self.split(v, attention.n_kv_heads))
        keys, values = self._cache.read(index, int(call.positions[-1]) + 1)
        attended = self.emit(call, "attn", self.join(self.attend(call, attention, q, keys, values)), ranged=True)
        return self.emit(call, "attn_out", self.project(prefix + "o.weight", attended))

    def rope(self, call: _Call, attention: Attention, q: F32Array, k: F32Array) -> tuple[F32Array, F32Array]:
        """Rotate q [T, heads, d] and k [T, kv heads, d] by their positions."""
        inv_freq = f.snap(np.asarray(attention.rope.inv_freq, dtype=np.float32))
        theta = call.positions.astype(np.float32)[:, None] * inv_freq
        sin, cos = f.sincos(theta)
        first, second = self.rotary_pairs(attention)
        return tuple(self.rotate(x, first, second, sin[:, None], cos[:, None]) for x in (q, k))  # type: ignore[return-value]  # two of two

    def rotary_pairs(self, attention: Attention) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Indices of the first and the second element of each rotated pair."""
        n = attention.rope.rotary_dim
        if attention.rope.pairing == "half":
            return np.arange(0, n // 2), np.arange(n // 2, n)
        return np.arange(0, n, 2), np.arange(1, n, 2)

    def rotate(
        self, x: F32Array, first: npt.NDArray[np.int64], second: npt.NDArray[np.int64], sin: F32Array, cos: F32Array
    ) -> F32Array:
        """Turn the pairs of x [T, heads, d]; sin and cos [T, 1, pairs]. Other elements stay."""
        out = x.copy()
        out[..., first], out[..., second] = f.rotate_pairs(x[..., first], x[..., second], sin, cos)
        return out

    def scale_query(self, attention: Attention, q: F32Array) -> F32Array:
        """``snap(q * scale)``."""
        return f.snap(q * np.float32(attention.scale))

    def attend(self, call: _Call, attention: Attention, q: F32Array, keys: F32Array, values: F32Array) -> F32Array:
        """Softmax attention: q [T, heads, d], keys and values [P, kv heads, d]; o [T, heads, d]."""
        visible = self.visible(attention, call.positions, keys.shape[0])
        out = np.empty(q.shape, dtype=np.float32)
        for h in range(attention.n_heads):
            kv = self.kv_head(attention, h)
            z = f.snap(f.dot8_matrix(keys[:, kv], q[:, h]))
            check_snapped("attention scores", z)
            e = f.softmax_numerators(z, visible)
            p = f.snap(e / f.sum_rising(e)[:, None])
            check_snapped("attention weights", p)
            out[:, h] = f.weighted_sum(p, values[:, kv])
        return out

    def visible(self, attention: Attention, positions: npt.NDArray[np.int64], end: int) -> npt.NDArray[np.bool_]:
        """Which of the positions 0 .. end - 1 each token attends to: bool [T, end]."""
        behind = positions[:, None] - np.arange(end)
        seen = behind >= 0
        return seen if attention.window is None else seen & (behind < attention.window)

    def kv_head(self, attention: Attention, head: int) -> int:
        """The KV head that a query head reads."""
        return head // (attention.n_heads // attention.n_kv_heads)

    def ffn(self, call: _Call, prefix: str, ffn: Ffn, n: F32Array) -> F32Array:
        """The feed-forward block of a layer, dense or of experts: n [T, H] to y [T, H]."""
        if ffn.router is None:
            call.experts.append(np.zeros((len(n), 0), dtype=np.int32))
            return self.experts(call, prefix + "ffn.", ffn, n, None)[:, 0]
        ids, weights = self.route(call, prefix, ffn.router, n)
        call.experts.append(ids)
        return self.combine(weights, self.experts(call, prefix, ffn, n, ids))

    def route(self, call: _Call, prefix: str, router: Router, n: F32Array) -> tuple[I32Array, F32Array]:
        """The chosen experts and their weights, [T, k] each."""
        z = self.emit(call, "router", self.router_logits(prefix, n))
        ids = self.select(router, z)
        self._show(call, TraceName(call.layer, "expert_ids", None), ids)
        return ids, self.emit(call, "expert_weights", self.expert_weights(z, ids))

    def router_logits(self, prefix: str, n: F32Array) -> F32Array:
        """Float dot products always: [T, n_experts]."""
        return f.snap(f.dot8_matrix(self.stored(prefix + "router.weight").values(), n))

    def select(self, router: Router, z: F32Array) -> I32Array:
        """The k largest logits, descending, ties to the lower index."""
        return np.argsort(-z, axis=-1, kind="stable")[:, : router.top_k].astype(np.int32)

    def expert_weights(self, z: F32Array, ids: I32Array) -> F32Array:
        """Softmax over the chosen logits."""
        chosen = np.take_along_axis(z, ids.astype(np.int64), axis=-1)
        a = f.exp_clamped(f.snap(chosen - chosen[:, :1]))
        return f.snap(a / f.sum_rising(a)[:, None])

    def experts(self, call: _Call, prefix: str, ffn: Ffn, n: F32Array, ids: I32Array | None) -> F32Array:
        """The output of each token's blocks, [T, slots, H]; ids [T, slots], None for a dense block."""
        if ids is None:
            groups = {prefix: np.nonzero(np.ones((len(n), 1)))}
            slots = 1
        else:
            groups = {f"{prefix}experts.{e}.": np.nonzero(ids == e) for e in np.unique(ids)}
            slots = ids.shape[1]
        gate, up, act = (np.zeros((len(n), slots, ffn.width), dtype=np.float32) for _ in range(3))
        down = np.zeros((len(n), slots, n.shape[1]), dtype=np.float32)
        for block, (tokens, slot) in groups.items():
            gate[tokens, slot] = self.project(block + "gate.weight", n[tokens])
            up[tokens, slot] = self.project(block + "up.weight", n[tokens])
            act[tokens, slot] = self.activate(gate[tokens, slot], up[tokens, slot])
        self._emit_slots(call, {"gate": gate, "up": up})
        self._emit_slots(call, {"act": act}, ranged=True)
        for block, (tokens, slot) in groups.items():
            down[tokens, slot] = self.project(block + "down.weight", act[tokens, slot])
        self._emit_slots(call, {"down": down})
        return down

    def activate(self, gate: F32Array, up: F32Array) -> F32Array:
        """``snap(silu(gate) * up)``."""
        with np.errstate(all="ignore"):
            return f.snap(f.silu(gate) * up)

    def combine(self, weights: F32Array, outputs: F32Array) -> F32Array:
        """Weighted sum of the experts' outputs: weights [T, k], outputs [T, k, H]."""
        return f.weighted_sum(weights, outputs)

    def final_norm(self, call: _Call, x: F32Array) -> F32Array:
        """The last RMSNorm."""
        return self.emit(call, "final_norm", self.norm(x, "final_norm.weight"), ranged=True)

    def head(self, call: _Call, n: F32Array) -> F32Array:
        """Logits [T, V]."""
        return self.emit(call, "logits", self.project(self.head_tensor(), n), ranged=True)

    def head_tensor(self) -> str:
        """Name of the matrix that makes logits."""
        return "embed.weight" if self.config.tied_head else "head.weight"

    def project(self, name: str, x: F32Array) -> F32Array:
        """``y = W x`` with the stored matrix of that name."""
        return matmul(self.stored(name), x)

    # --- weights, layout, trace

    def stored(self, name: str) -> Stored:
        """The stored tensor, kept once read."""
        if name not in self._stored:
            self._stored[name] = self._weights(name)
        return self._stored[name]

    def vector(self, name: str) -> F32Array:
        """A stored vector, [n]."""
        return self.stored(name).values().reshape(-1)

    def split(self, x: F32Array, heads: int) -> F32Array:
        """[T, heads * d] as [T, heads, d]."""
        return x.reshape(len(x), heads, -1)

    def join(self, x: F32Array) -> F32Array:
        """[T, heads, d] as [T, heads * d]."""
        return x.reshape(len(x), -1)

    def emit(
        self,
        call: _Call,
        tensor: str,
        values: F32Array,
        *,
        ranged: bool = False,
        limit_bits: int = RANGE_BITS,
        slot: int | None = None,
    ) -> F32Array:
        """Assert the contract on a finished tensor [T, n], range-check it if `ranged`, show it to the trace."""
        check_snapped(tensor, values, finite=not ranged)
        bad = first_out_of_range(values, limit_bits) if ranged else None
        if bad is not None:
            raise RangeExceeded(int(call.positions[bad]), tensor, call.layer, slot, limit_bits)
        self._show(call, TraceName(call.layer, tensor, slot), values)
        return values

    def _show(self, call: _Call, name: TraceName, values: F32Array | I32Array) -> None:
        if call.trace is not None:
            for position, row in zip(call.positions, values, strict=True):
                call.trace.put(name, int(position), row)

    def _emit_slots(self, call: _Call, tensors: dict[str, F32Array], *, ranged: bool = False) -> None:
        for slot in range(next(iter(tensors.values())).shape[1]):
            for tensor, values in tensors.items():
                self.emit(call, tensor, values[:, slot], ranged=ranged, slot=slot)
