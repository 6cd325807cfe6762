# SPDX-License-Identifier: Apache-2.0
"""Feed-forward blocks, dense and of experts: docs/NUMERICS.md sections 7.7 and 7.8, 9 to 11."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from colibri.axes import Activation, Clamp, Ffn, Router, Shared

from . import functions as f
from . import vectors as v
from .checks import check_snapped
from .fma import F32Array, fma
from .operators import Call, I32Array, I64Array
from .router import RouterOperators

ACTIVATIONS: dict[Activation, Callable[[F32Array], F32Array]] = {
    "silu": f.silu,
    "gelu_tanh": f.gelu_tanh,
    "gelu_erf": f.gelu_erf,
    "relu": f.relu,
    "relu2": f.relu2,
}


class Block(NamedTuple):
    """A feed-forward block and the vectors that pass it: tensors NAME.gate ..., hidden elements, index of [T, slots]."""

    name: str
    width: int
    at: tuple[I64Array, ...]


class FfnOperators(RouterOperators):
    """Slots are a token's blocks in order: its experts, then the shared block; a dense block is slot 0."""

    def ffn(self, call: Call, ffn: Ffn, n: F32Array) -> F32Array:
        """The feed-forward part of a layer: n [T, H] to y [T, H]."""
        if ffn.router is not None:
            return self.experts(call, ffn, ffn.router, n)
        call.experts.append(np.zeros((len(n), 0), dtype=np.int32))
        return self.run_blocks(call, ffn, [self.everywhere(call.name("ffn"), ffn.width, n, 0)], n[:, None])[:, 0]

    def experts(self, call: Call, ffn: Ffn, router: Router, n: F32Array) -> F32Array:
        """Route, run the chosen experts and the shared block, add up: n [T, H] to y [T, H]."""
        ids, weights = self.route(call, router, "router", n)
        call.experts.append(ids)
        x = n[:, None].repeat(router.top_k, axis=1)
        if router.side == "input":
            x = self.weigh_input(weights, x)
            for slot in range(router.top_k):
                self.check(call, "gate" if ffn.gated else "up", x[:, slot], slot=slot)
            weights = np.ones_like(weights)
        blocks = self.expert_blocks(call, ffn, ids)
        if ffn.shared is None:
            y = self.combine(weights, self.run_blocks(call, ffn, blocks, x))
        else:
            blocks.append(self.everywhere(call.name("shared"), ffn.shared.width, n, router.top_k))
            outputs = self.run_blocks(call, ffn, blocks, np.concatenate([x, n[:, None]], axis=1))
            y = self.with_shared(call, ffn.shared, n, weights, outputs)
        check_snapped("sum of the experts", y, finite=False)
        return self.add_bias(call.name("ffn.bias"), y) if ffn.output_bias else y

    def everywhere(self, name: str, width: int, n: F32Array, slot: int) -> Block:
        """A block that every token passes, in one slot."""
        return Block(name, width, (np.arange(len(n)), np.full(len(n), slot)))

    def expert_blocks(self, call: Call, ffn: Ffn, ids: I32Array) -> list[Block]:
        """The chosen experts: ids [T, k]."""
        experts = [int(e) for e in np.unique(ids[ids >= 0])]
        return [Block(call.name(f"experts.{e}"), ffn.width_of(e), np.nonzero(ids == e)) for e in experts]

    def weigh_input(self, weights: F32Array, x: F32Array) -> F32Array:
        """``snap(w * n)``: weights [T, k], x [T, k, H]."""
        with np.errstate(all="ignore"):
            return f.snap(weights[..., None] * x)

    def with_shared(self, call: Call, shared: Shared, n: F32Array, weights: F32Array, outputs: F32Array) -> F32Array:
        """The sum of the experts and the shared block: weights [T, k], outputs [T, k + 1, H], the shared block's last."""
        if not shared.mix:
            return self.combine(np.concatenate([weights, self.shared_weight(call, shared, n)], axis=1), outputs)
        mix = self.shared_mix(call, n)
        with np.errstate(all="ignore"):
            y = f.snap(self.combine(weights, outputs[:, :-1]) * mix[:, :1])
            return f.snap(fma(mix[:, 1:], outputs[:, -1], y))

    def shared_mix(self, call: Call, n: F32Array) -> F32Array:
        """The weights of the experts' sum and of the shared block: [T, 2]."""
        z = self.float_product(call.name("shared_mix.weight"), n)
        return v.softmax(self.add_bias(call.name("shared_mix.bias"), z))

    def shared_weight(self, call: Call, shared: Shared, n: F32Array) -> F32Array:
        """The weight of the shared block: [T, 1]. Weighted by 1, ``fma(1, o, y)`` is ``y + o``."""
        if not shared.gated:
            return np.ones((len(n), 1), dtype=np.float32)
        return f.sigmoid(self.float_product(call.name("shared_gate.weight"), n))

    def run_blocks(self, call: Call, ffn: Ffn, blocks: list[Block], x: F32Array) -> F32Array:
        """Each block on its vectors: x [T, slots, H] to [T, slots, H], 0 in a slot without a block."""
        widths = np.zeros(x.shape[:2], dtype=np.int64)
        gate, up, act = (np.zeros((*x.shape[:2], max(b.width for b in blocks)), dtype=np.float32) for _ in range(3))
        down = np.zeros(x.shape, dtype=np.float32)
        for name, width, at in blocks:
            widths[at] = width
            u = self.linear(f"{name}.up", x[at], bias=ffn.bias)
            g = self.linear(f"{name}.gate", x[at], bias=ffn.bias) if ffn.gated else u
            for whole, part in ((gate, g), (up, u), (act, self.activate(ffn, g, u))):
                whole[at] = np.pad(part, ((0, 0), (0, whole.shape[2] - width)))
        for slot in range(x.shape[1]):
            if ffn.gated:
                self.emit(call, "gate", gate[:, slot], slot=slot, widths=widths[:, slot])
            self.emit(call, "up", up[:, slot], slot=slot, widths=widths[:, slot])
            self.emit(call, "act", act[:, slot], ranged=True, slot=slot, widths=widths[:, slot])
        for name, width, at in blocks:
            down[at] = self.linear(f"{name}.down", act[at][:, :width], bias=ffn.bias)
        for slot in range(x.shape[1]):
            rows = np.where(widths[:, slot] > 0, self.config.hidden_size, 0)
            self.emit(call, "down", down[:, slot], slot=slot, widths=rows)
        return down

    def activate(self, ffn: Ffn, gate: F32Array, up: F32Array) -> F32Array:
        """h of the two products; without a gate both are the same."""
        with np.errstate(all="ignore"):
            if ffn.clamp is not None:
                return self.clamped(ffn.clamp, gate, up)
            h = ACTIVATIONS[ffn.activation](gate)
            return f.snap(h * up) if ffn.gated else h

    def clamped(self, clamp: Clamp, gate: F32Array, up: F32Array) -> F32Array:
        """gpt-oss: ``(u + 1) * g * sigmoid(alpha * g)``, clamped."""
        limit = np.float32(clamp.limit)
        g, u = np.minimum(gate, limit), np.clip(up, -limit, limit)
        sigmoid = f.sigmoid(f.snap(g * np.float32(clamp.alpha)))
        return f.snap(f.snap(u + np.float32(1)) * f.snap(g * sigmoid))
