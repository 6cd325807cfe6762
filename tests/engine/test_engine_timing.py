# SPDX-License-Identifier: Apache-2.0
"""The instructions executed depend on the position only: counted in user-mode QEMU, on a core without a conditional move."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from engine_tiny import CASES, FIRMWARE, ROOT, Tiny, engine_sources, flags_of
from every_axis import EveryAxis, equally_wide, every_axis

CORES = {
    "RV64GC": ("riscv64-unknown-elf-", "qemu-riscv64", ["-march=rv64gc", "-mabi=lp64d", "-mcmodel=medany"]),
    "Thumb-2 with FPU": ("arm-none-eabi-", "qemu-arm", ["-march=armv7-a+vfpv4", "-mthumb", "-mfloat-abi=hard"]),
}
MARKS = ["mark_init", "mark_state", "mark_forward", "mark_end"]


class Counter:
    """Compiles the engine's objects once for a case; links and counts for each image and prompt."""

    def __init__(self, core: str, config: str, image: Callable[[int], bytes], folder: Path) -> None:
        self.prefix, self.qemu, self.flags = CORES[core]
        for tool in (f"{self.prefix}gcc", self.qemu):
            if shutil.which(tool) is None:
                pytest.skip(f"{tool} is not installed")
        self.folder, self.core = folder, core
        self.image = image
        (folder / "model_config.h").write_text(config)
        self.plugin = folder / "count.so"
        source = ROOT / "sim/colibri_sim/qemu/plugin/count.c"
        subprocess.run(["gcc", "-O2", "-fPIC", "-shared", "-o", str(self.plugin), str(source)], check=True)
        self._gcc("-c", *map(str, engine_sources()))

    def _gcc(self, *arguments: str) -> None:
        common = [*flags_of("gcc"), *self.flags, "-O2", f"-I{FIRMWARE / 'include'}", f"-I{self.folder}"]
        subprocess.run([f"{self.prefix}gcc", *common, *arguments], check=True, cwd=self.folder)

    def __call__(self, seed: int, ids: list[int]) -> dict[str, int]:
        (self.folder / "image.bin").write_bytes(self.image(seed))
        objects = [f"{source.stem}.o" for source in engine_sources()]
        main = str(Path(__file__).with_name("count_main.c"))
        self._gcc(
            f"-DCOUNT_IDS={{{','.join(map(str, ids))}}}",
            "-nostdlib",
            "-Wl,--no-relax,--no-warn-rwx-segments",
            main,
            *objects,
            "-lgcc",
            "-o",
            "program",
        )
        names = subprocess.run(
            [f"{self.prefix}nm", "program"], capture_output=True, text=True, check=True, cwd=self.folder
        ).stdout
        address = {name: int(value, 16) for value, name in re.findall(r"([0-9a-f]+) T (mark_\w+)", names)}
        marks = ",".join(f"at={address[name]:x}" for name in MARKS)
        run = [self.qemu, "-plugin", f"{self.plugin},out=counts.txt,{marks}", "program"]
        assert subprocess.run(run, cwd=self.folder, check=False).returncode == 0
        lines = (self.folder / "counts.txt").read_text().splitlines()
        counts = [int(line.split()[1]) for line in lines[:4]]
        return dict(
            zip(
                ["init", "state_init", "forward"],
                [b - a for a, b in itertools.pairwise(counts)],
                strict=True,
            )
        )


@pytest.mark.qemu
@pytest.mark.parametrize(
    ("core", "case"),
    [("RV64GC", "moe_q8"), ("RV64GC", "moe_16"), ("RV64GC", "moe_q4"), ("Thumb-2 with FPU", "moe_q8_group")],
)
def test_neither_weights_nor_ids_change_the_number_of_instructions(core: str, case: str, tmp_path: Path) -> None:
    chosen = next(c for c in CASES if c.name == case)
    count = Counter(core, Tiny(chosen).config, lambda seed: bytes(Tiny(chosen, seed).image), tmp_path)
    first = count(1, [1, 2, 3, 4, 5, 6])
    assert {first["forward"]} == {
        count(seed, ids)["forward"] for seed, ids in ((1, [30, 9, 9, 9, 0, 36]), (2, [8, 8, 1, 20, 3, 7]))
    }
    assert first["init"] <= 1000


@pytest.mark.qemu
@pytest.mark.parametrize("core", CORES)
def test_no_axis_lets_the_data_change_the_number_of_instructions(core: str, tmp_path: Path) -> None:
    every = EveryAxis("q8", equally_wide(every_axis()))
    count = Counter(core, every.config, every.image_of, tmp_path)
    counts = {count(seed, ids)["forward"] for seed, ids in ((1, [1, 2, 3, 4, 5, 6]), (2, [30, 9, 9, 9, 0, 36]))}
    assert len(counts) == 1
