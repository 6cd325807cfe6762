# SPDX-License-Identifier: Apache-2.0
"""Builds an application of this folder with one kernel set and the flags of colibri build; asks program.c for products."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from colibri.boards import Board, linker_script
from colibri.build.config_header import config_header, config_macros
from colibri.build.toolchain import find_toolchain
from colibri.data import data_path
from colibri.image.kernel_layouts import layout_of
from colibri.image.matrix import DTYPE_IDS, Matrix, matrix_bytes
from colibri.image.placement import lay_out
from colibri.layout.state_layout import Kv, state_layout
from colibri.quantise import Policy, Stored
from colibri_sim.qemu.counter import count
from colibri_sim.qemu.frames import END, encode
from colibri_sim.qemu.runner import run
from image.packs import checkpoint

F = np.float32
F32Array = npt.NDArray[np.float32]
UNWRITTEN = F(99)
MARKERS = ("kernel_begin", "kernel_quantised", "kernel_end")


@dataclass(frozen=True)
class Case:
    """A stored matrix, the vector it multiplies, and the row ranges to ask for. x None: its rows widened."""

    stored: Stored
    x: F32Array | None
    ranges: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Program:
    board: Board
    kernels: str
    elf: Path

    def request(self, case: Case) -> bytes:
        stored = case.stored
        m = Matrix(stored.rows, stored.cols, stored.format, layout_of(self.kernels))
        data = matrix_bytes(stored, m)
        words = [m.rows, m.cols, DTYPE_IDS[m.format.kind], m.format.group, m.layout.id, m.row_bytes, m.scales_offset]
        words += [len(data), len(case.ranges), *(n for pair in case.ranges for n in pair)]
        x = np.zeros(0 if case.x is None else -(-stored.cols // 8) * 8, F)
        if case.x is not None:
            x[: stored.cols] = case.x
        return encode("W" if case.x is None else "P", np.array(words, np.uint32).tobytes() + data + x.tobytes())

    def answers(self, cases: list[Case], timeout_s: float = 300.0) -> list[list[F32Array]]:
        """For each case and range: what was written, with one more element on either side."""
        request = b"".join(map(self.request, cases)) + END
        frames = iter([np.frombuffer(f.payload, F) for f in run(self.board, self.elf, None, request, timeout_s)])
        found = [[next(frames) for _ in case.ranges] for case in cases]
        assert next(frames, None) is None
        return found

    def instructions(self, cases: list[Case]) -> list[tuple[int, int]]:
        """For each case's first range: instructions of the quantisation and of the product, their calls included."""
        request = b"".join(map(self.request, cases)) + END
        counts = count(self.board, self.elf, request, MARKERS)
        assert [name for name, _ in counts] == [*MARKERS * len(cases), "end"]
        numbers = [n for _, n in counts]
        return [(q - b, e - q) for b, q, e in zip(numbers[::3], numbers[1::3], numbers[2::3], strict=False)]


def model_config(kernels: str, kv: Kv) -> str:
    """model_config.h with every format and one KV cache; the dimensions are of no importance here."""
    config, policy = checkpoint("mixtral").model.config, Policy.parse("q8")
    layout = layout_of(kernels)
    state = state_layout(config, policy, kv, layout)
    policy = policy.resolve(config)
    macros = config_macros(config, lay_out(config, policy, 64, layout), state, kv)
    macros = [m for m in macros if "COLIBRI_USE_" not in m]
    macros += [f"#define COLIBRI_USE_{f} 1" for f in ("F32", "BF16", "F16", "Q8", "Q8_GROUP", "Q4")]
    return config_header(macros, title="every format", weights_address=0, prefix=None)


def build_program(
    board: Board, kernels: str, toolchain: str, opt: str, folder: Path, main: str = "program.c", kv: Kv = "f32"
) -> Program:
    """Build an application of this folder."""
    found = find_toolchain(board, toolchain)  # type: ignore[arg-type]
    firmware = data_path("firmware")
    (folder / "model_config.h").write_text(model_config(kernels, kv))
    sets = dict.fromkeys(("portable", kernels))
    sources = [Path(__file__).with_name(main), *board.sources, *(firmware / "kernels").glob("*.c")]
    sources += [path for name in sets for path in (firmware / "kernels" / name).glob("*.[cS]")]

    def compiled(source: Path) -> str:
        target = folder / f"{source.parent.name}_{source.name}.o"
        own = ["-ffreestanding"]
        if source.name == "mem.c":
            own.append("-fno-tree-loop-distribute-patterns" if toolchain == "gcc" else "-fno-builtin")
        includes = [f"-I{firmware / 'include'}", f"-I{firmware}", f"-I{folder}"]
        flags = [*found.compile_flags(opt), *own, "-DCOLIBRI_SIMULATOR=1", *includes]  # type: ignore[arg-type]
        result = subprocess.run([found.compiler, *flags, "-c", str(source), "-o", str(target)],
                                capture_output=True, text=True, check=False)  # fmt: skip
        assert result.returncode == 0, result.stderr
        return str(target)

    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(compiled, sources))
    (folder / "board.ld").write_text(linker_script(board, None, "generate", None))
    elf = folder / "kernels.elf"
    command = [found.linker, *found.link_flags, "-nostdlib", "-Wl,--gc-sections", "-T", str(folder / "board.ld")]
    result = subprocess.run([*command, *objects, "-lgcc", "-o", str(elf)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return Program(board, kernels, elf)
