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
from colibri.model import ModelConfig
from colibri.quantise import Policy
from image.packs import DEMO, ROOT, checkpoint
from verify.random_models import random_config

INCLUDE = ["-I", str(ROOT / "firmware" / "include"), "-I", str(ROOT / "firmware")]
PROBE = """
#include <stdio.h>
#include "colibri/colibri.h"
int main(void)
{
    colibri_state_t *s = 0;
    size_t kv = 0;
#if COLIBRI_CACHE_K > 0
    kv += sizeof s->k;
#endif
#if COLIBRI_CACHE_V > 0
    kv += sizeof s->v;
#endif
#if COLIBRI_KV_Q8 && COLIBRI_CACHE_K > 0
    kv += sizeof s->k_scale;
#endif
#if COLIBRI_KV_Q8 && COLIBRI_CACHE_V > 0
    kv += sizeof s->v_scale;
#endif
#if COLIBRI_CACHE_CONV > 0
    kv += sizeof s->conv;
#endif
    printf("%zu %zu\\n", sizeof *s, kv);
    return 0;
}
"""


def header(config: ModelConfig, quant: str, kv: Any, kernels: KernelLayout = PORTABLE) -> tuple[str, int, int]:
    """model_config.h, and the plan's bytes of state and of KV cache."""
    policy = Policy.parse(quant).resolve(config)
    state = state_layout(config, policy, kv, kernels)
    macros = config_macros(config, lay_out(config, policy, 64, kernels), state, kv)
    return config_header(macros, title="test", weights_address=0, prefix=None), state.bytes, state.kv_bytes


@pytest.mark.parametrize("kv", ["f32", "f16", "q8"])
@pytest.mark.parametrize(
    "name", ["mixtral_odd", "llama", "gpt_oss", "jetmoe", "deepseek_v3", "lfm2_moe", "llama4", DEMO]
)
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


def accepted(folder: Path, text: str) -> bool:
    """Whether the engine's own static assertion holds."""
    (folder / "model_config.h").write_text(text)
    (folder / "probe.c").write_text('#include "colibri/colibri.h"\n')
    command = ["gcc", "-fsyntax-only", *INCLUDE, "-I", str(folder), str(folder / "probe.c")]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_the_engine_agrees_about_odd_configurations(tmp_path: Path) -> None:
    rng = random.Random(3)
    for _ in range(40):
        config = random_config(rng)
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
