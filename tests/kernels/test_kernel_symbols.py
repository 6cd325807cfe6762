# SPDX-License-Identifier: Apache-2.0
"""The external symbols of each kernel set: under the model's prefix, all of them in names.h and no other."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from colibri.boards import KERNEL_SETS, list_boards, load_board
from colibri.build.toolchain import find_toolchain
from colibri.data import data_path

from .program import model_config

pytestmark = pytest.mark.qemu  # needs a cross compiler
SETS = [name for name in KERNEL_SETS if name != "portable"]


@pytest.mark.parametrize("toolchain", ["gcc", "llvm"])
@pytest.mark.parametrize("kernels", SETS)
def test_names(kernels: str, toolchain: str, tmp_path: Path) -> None:
    firmware = data_path("firmware")
    board = next(b for b in map(load_board, list_boards()) if b.kernels == kernels)
    found = find_toolchain(board, toolchain)  # type: ignore[arg-type]
    defined: set[str] = set()
    sources = sorted((firmware / "kernels" / kernels).glob("*.[cS]"))
    for kv, source in [("f32", s) for s in sources] + [(s.stem[3:], s) for s in sources if s.stem.startswith("kv_")]:
        config = model_config(kernels, kv)  # type: ignore[arg-type]  # a model has one KV cache
        (tmp_path / "model_config.h").write_text(config + "#define COLIBRI_PREFIX stories\n")
        target = tmp_path / f"{source.name}.o"
        command = [
            found.compiler,
            *found.compile_flags("2"),
            "-ffreestanding",
            f"-I{firmware / 'include'}",
            f"-I{tmp_path}",
        ]
        subprocess.run([*command, "-c", str(source), "-o", str(target)], check=True)
        listed = subprocess.run(
            ["arm-none-eabi-nm", "-g", "--defined-only", str(target)], capture_output=True, text=True, check=True
        )
        defined |= set(re.findall(r"^[0-9a-f]+ [A-Z] (\w+)$", listed.stdout, re.MULTILINE))
    named = re.findall(r"#define colibri_(\w+)", (firmware / "include/colibri/names.h").read_text())
    assert defined == {f"stories_{name}" for name in named if name.endswith(f"_{kernels}")}
    assert defined
