# SPDX-License-Identifier: Apache-2.0
"""The router keys that families share, under all the names they go by."""

from __future__ import annotations

from typing import Any

from colibri.axes import Groups, Renormalise, Router, Shared
from colibri.importers.config import ConfigReader
from colibri.importers.families.decoder import f32
from colibri.importers.limits import MAX_LAYERS, MAX_ROW_ELEMS, MAX_SCALE

_N_EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
_TOP_K = ("num_experts_per_tok", "moe_k", "moe_topk", "num_selects", "top_k_experts")

SUM = Renormalise()


def read_router(config: ConfigReader, **axes: Any) -> Router:
    """Return a router with the config's number of experts, and of those chosen; `axes` are Router's own."""
    n_experts = config.shared_integer(_N_EXPERTS, 1, MAX_ROW_ELEMS)
    return Router(n_experts, config.shared_integer(_TOP_K, 1, n_experts), **axes)


def read_renormalise(config: ConfigReader, renormalise: Renormalise = SUM) -> Renormalise | None:
    """Return `renormalise` where norm_topk_prob is true."""
    return renormalise if config.flag("norm_topk_prob") else None


def read_scale(config: ConfigReader, key: str = "routed_scaling_factor") -> float:
    """Return what multiplies the weights."""
    return f32(config.number(key, 2.0**-40, MAX_SCALE))


def read_groups(config: ConfigReader, n_experts: int, top_k: int, *, score: str, fill: str) -> Groups | None:
    """Return group-limited routing; None where there is one group, or every group is eligible.

    With group_fill zero an expert outside the groups may still be chosen, so fewer eligible than top_k are no error there.
    """
    n_groups = config.integer("n_group", 1, n_experts) if config.get("n_group") is not None else 1
    top_groups = config.integer("topk_group", 1, n_groups) if config.get("topk_group") is not None else n_groups
    if n_experts % n_groups:
        raise config.error("n_group", f"a divisor of the number of experts, {n_experts}")
    size = n_experts // n_groups
    if top_groups == n_groups:
        return None
    if score == "top2" and size < 2:
        raise config.error("n_group", "groups of at least two experts, as two score a group")
    if fill == "excluded" and top_groups * size < top_k:
        raise config.error("topk_group", f"groups that hold {top_k} experts together")
    return Groups(n_groups, top_groups, score, fill)  # type: ignore[arg-type]  # the families' own literals


def read_shared(config: ConfigReader, width: int, key: str) -> Shared | None:
    """Return a shared block as wide as `key` experts; None where there are none."""
    n_shared = config.optional_integer(key, 0, MAX_ROW_ELEMS) or 0
    if n_shared * width > MAX_ROW_ELEMS:
        raise config.error(key, f"shared experts of at most {MAX_ROW_ELEMS} elements together")
    return Shared(n_shared * width) if n_shared else None


def first_dense(config: ConfigReader, key: str = "first_k_dense_replace") -> int:
    """Return how many layers, from the first on, have no experts."""
    return config.integer(key, 0, MAX_LAYERS)
