# SPDX-License-Identifier: Apache-2.0
"""What is known of a model: what its GGUF file says, what its tensors show, and what the user states where neither does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from colibri.errors import CheckpointError, UsageError
from colibri.importers.bind import Sources
from colibri.importers.gguf import limits
from colibri.importers.gguf.metadata import Metadata
from colibri.importers.limits import MAX_ROW_ELEMS
from colibri.importers.overrides import boolean
from colibri.importers.text import quoted

_SOFTMAX, _SIGMOID = 1, 2
_GATING = {_SOFTMAX: "softmax", _SIGMOID: "sigmoid"}


@dataclass
class Facts:
    """Keys are given without the architecture in front.

    wanted  ``--set``: what the importer itself takes is taken out
    needed  keys of ``--set`` that the file made necessary, so that they may say what the axes have already
    stated  keys that the importer took, and their values
    """

    metadata: Metadata
    architecture: str
    sources: Sources
    wanted: dict[str, str]
    needed: set[str] = field(default_factory=set)
    stated: dict[str, object] = field(default_factory=dict)

    def key(self, name: str) -> str:
        """Return the whole key."""
        return f"{self.architecture}.{name}"

    def has(self, name: str) -> bool:
        """Whether the file has the key."""
        return self.metadata.has(self.key(name))

    def integer(self, name: str, low: int, high: int, default: int | None = None) -> int:
        """Return an integer."""
        return self.metadata.integer(self.key(name), low, high, default)

    def number(self, name: str, low: float, high: float, default: float | None = None) -> float:
        """Return a float."""
        return self.metadata.number(self.key(name), low, high, default)

    def flag(self, name: str, *, default: bool) -> bool:
        """Return true or false."""
        return self.metadata.flag(self.key(name), default=default)

    def error(self, name: str, expected: str, got: str | None = None) -> CheckpointError:
        """Return the error that says what a key should have been."""
        return self.metadata.error(self.key(name), expected, got)

    def n_blocks(self) -> tuple[int, int]:
        """Return the number of layers, and of those after them that only training uses."""
        n = self.integer("block_count", 1, limits.MAX_BLOCKS)
        extra = self.integer("nextn_predict_layers", 0, n, 0)
        if extra == n:
            raise self.error("nextn_predict_layers", f"fewer than all {n} blocks")
        return n - extra, extra

    def n_experts(self) -> int:
        """Return the number of experts in a layer, 0 for none."""
        if not self.has("expert_count") and self.is_there("ffn_gate_inp.weight"):
            return self.stated_integer("experts.count", limits.MAX_EXPERTS, "the layers have routers")
        return self.integer("expert_count", 0, limits.MAX_EXPERTS, 0)

    def top_k(self) -> int:
        """Return how many experts are chosen; the key has two spellings."""
        names = ("expert_used_count", "expert_used_per_token")
        said = [name for name in names if self.has(name)]
        if not said:
            return self.stated_integer("experts.per_token", self.n_experts(), "how many experts are chosen")
        values = [self.integer(name, 1, self.n_experts()) for name in said]
        if len(set(values)) != 1:
            raise self.error(said[1], f"the same as {said[0]}")
        return values[0]

    def groups(self) -> tuple[int, int]:
        """Return the number of groups of experts, and of those that are eligible."""
        n = self.integer("expert_group_count", 0, self.n_experts(), 0) or 1
        top = self.integer("expert_group_used_count", 0, n, 0) or n
        if self.n_experts() % n or (n > 1 and self.n_experts() // n < 2):
            raise self.error(
                "expert_group_count", f"a divisor of {self.n_experts()} experts into groups of two or more"
            )
        return n, top

    def width(self, name: str, *tensors: str) -> int:
        """Return a feed-forward's width: the key's, and without one that of the first tensor of one of these names."""
        if self.has(name) and self.metadata.entries[self.key(name)].value != 0:
            return self.integer(name, 1, MAX_ROW_ELEMS)
        ends = tuple(f".{tensor}.weight" for tensor in tensors)
        shapes = [t.shape for key, t in sorted(self.sources.items()) if key.endswith(ends)]
        if not shapes or len(shapes[0]) < 2:
            raise self.error(name, "a width")
        return shapes[0][-2]

    def gating(self) -> str | None:
        """Return the router's score where the file says it."""
        if not self.has("expert_gating_func"):
            return None
        number = self.integer("expert_gating_func", 0, 255)
        if number not in _GATING:
            raise self.error("expert_gating_func", "1 (softmax) or 2 (sigmoid)")
        return _GATING[number]

    def is_there(self, tensor: str) -> bool:
        """Whether any layer has a tensor of this name."""
        return any(name.endswith(f".{tensor}") for name in self.sources)

    def required(self, name: str, values: str, why: str) -> str:
        """Return what ``--set`` says of a fact that the file leaves open; raises CheckpointError with the option to add."""
        if name not in self.wanted:
            raise CheckpointError(
                self.metadata.where,
                expected=f"{name}, which GGUF files of {self.architecture} may leave open: {why}",
                got="nothing that says it",
                hint=f"add --set {name}={values}, as the model's config.json has it",
            )
        self.needed.add(name)
        return self.wanted[name]

    def stated_integer(self, name: str, most: int, why: str) -> int:
        """Return a number that only the user can tell; raises CheckpointError with the option to add."""
        text = self.required(name, "N", why)
        if not text.isdecimal() or not 1 <= int(text[:9]) <= most:
            raise UsageError(
                f"--set {name}", expected=f"a whole number from 1 to {most}", got=quoted(text), hint="choose another"
            )
        self.stated[name] = int(text)
        return int(text)

    def choice(self, name: str, default: bool | None, why: str) -> bool:
        """Return true or false: ``--set`` first, then the architecture's own; where that is not certain it must be stated."""
        if default is None:
            self.required(name, "true|false", why)
        text = self.wanted.pop(name, None)
        try:
            value = default if text is None else boolean(text)
        except ValueError:
            raise UsageError(
                f"--set {name}", expected="true or false", got=quoted(str(text)), hint="choose one"
            ) from None
        assert value is not None
        self.stated[name] = value
        return value


Values = Mapping[str, object]
