# SPDX-License-Identifier: Apache-2.0
"""The planner's size of the state is the compiler's: sizeof, and what lies where in it."""

from __future__ import annotations

import random
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from colibri.build.config_header import config_header, config_macros
from colibri.image.kernel_layouts import LAYOUTS, PORTABLE, KernelLayout
from colibri.image.placement import lay_out
from colibri.layout.state_layout import state_layout
from colibri.model import Attention, Ffn, Layer, ModelConfig, Rope, Router
from colibri.quantise import Policy
from image.packs import DEMO, ROOT, checkpoint

INCLUDE = ["-I", str(ROOT / "firmware" / "include"), "-I", str(ROOT / "firmware")]
PROBE = """
#include <stdio.h>
#include "colibri/colibri.h"
int main(void)
{
    colibri_state_t *s = 0;
    size_t kv = sizeof s->k + sizeof s->v;
#if COLIBRI_KV_Q8
    kv += sizeof s->k_scale + sizeof s->v_scale;
#endif
    printf("%zu %zu\\n", sizeof *s, kv);
    return 0;
}
"""


def header(config: ModelConfig, quant: str, kv: Any, kernels: KernelLayout = PORTABLE) -> tuple[str, int, int]:
    """model_config.h, and the plan's bytes of state and of KV cache."""
    policy = Policy.parse(quant).resolve(config)
    state = state_layout(config, policy, kv, kernels)
    macros = config_macros(config, policy, lay_out(config, policy, 64, kernels), state, kv)
    return config_header(macros, title="test", weights_address=0, prefix=None), state.bytes, state.kv_bytes


@pytest.mark.parametrize("kv", ["f32", "f16", "q8"])
@pytest.mark.parametrize("name", ["mixtral", "mixtral_odd", "llama", "mistral_swa", "mixtral_long", DEMO])
def test_sizeof_is_what_was_planned(tmp_path: Path, name: str, kv: str) -> None:
    for number, quant in enumerate(("f32", "q8", "q8:32", "q4", "default=f32,head=q8:64")):
        folder = tmp_path / str(number)
        folder.mkdir()
        text, total, cached = header(checkpoint(name).model.config, quant, kv)
        (folder / "model_config.h").write_text(text)
        (folder / "probe.c").write_text(PROBE)
        program = folder / "probe"
        subprocess.run(["gcc", *INCLUDE, "-I", folder, folder / "probe.c", "-o", program], check=True)
        said = subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()
        assert [int(word) for word in said] == [total, cached]


def drawn(rng: random.Random) -> ModelConfig:
    """A configuration with no convenient number in it."""
    kv_heads = rng.randint(1, 3)
    head_dim = rng.choice([1, 2, 3, 5, 8, 12, 17, 32])
    pairs = rng.randint(0 if head_dim < 2 else 1, head_dim // 2)
    attention = Attention(kv_heads * rng.randint(1, 3), kv_heads, head_dim, 0.5, Rope("half", (1.0,) * pairs))
    experts = rng.choice([0, 1, 2, 5])
    router = Router(experts, rng.randint(1, experts)) if experts else None
    layer = Layer(attention, Ffn(rng.randint(1, 150), router=router))
    return ModelConfig(
        family="test",
        vocab_size=rng.randint(1, 300),
        hidden_size=rng.randint(1, 150),
        max_seq=rng.choice([1, 7, 33, 500]),
        norm_eps=1e-5,
        tied_head=rng.random() < 0.3,
        layers=(layer,) * rng.randint(1, 3),
    )


def accepted(folder: Path, text: str) -> bool:
    """Whether the engine's own static assertion holds."""
    (folder / "model_config.h").write_text(text)
    (folder / "probe.c").write_text('#include "colibri/colibri.h"\n')
    command = ["gcc", "-fsyntax-only", *INCLUDE, "-I", str(folder), str(folder / "probe.c")]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_the_engine_agrees_about_odd_configurations(tmp_path: Path) -> None:
    rng = random.Random(3)
    for _ in range(40):
        config = drawn(rng)
        quant = rng.choice(["f32", "bf16", "q8", "q8:32", "q4", "q4:row", "default=f16,experts=q8:128,dense=q8:32"])
        kv = rng.choice(["f32", "f16", "q8"])
        kernels = rng.choice(LAYOUTS)
        text, total, _ = header(config, quant, kv, kernels)
        assert accepted(tmp_path, text), (config, quant, kv, kernels.name)
        wrong = text.replace(f"COLIBRI_STATE_BYTES {total}u", f"COLIBRI_STATE_BYTES {total + 16}u")
        assert wrong != text
    assert not accepted(tmp_path, wrong)


def test_a_plan_with_another_context_is_refused_by_the_compiler(tmp_path: Path) -> None:
    config = checkpoint("mixtral_odd").model.config
    text, _, _ = header(config, "q8", "f32")
    other, _, _ = header(replace(config, max_seq=64), "q8", "f32")
    bytes_of = next(line for line in other.splitlines() if "COLIBRI_STATE_BYTES" in line)
    mixed = "\n".join(bytes_of if "COLIBRI_STATE_BYTES" in line else line for line in text.splitlines())
    assert accepted(tmp_path, text)
    assert not accepted(tmp_path, mixed + "\n")
