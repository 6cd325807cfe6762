# SPDX-License-Identifier: Apache-2.0
"""Cores whose pipelines LLVM describes: each block's cycles, repeated until they are steady, from llvm-mca."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable

from colibri.errors import NoVerdict
from colibri_sim.cycles.disassembly import PACKAGE, Code
from colibri_sim.qemu.counter import Block
from colibri_sim.qemu.machine import find_tool

_ARM, _AARCH64 = "thumbv8.1m.main-none-eabi", "aarch64-none-elf"
_TRIPLES = {"Cortex-M7": _ARM, "Cortex-M55": _ARM, "Cortex-A53": _AARCH64, "Cortex-A72": _AARCH64}
SOURCES = {cpu: f"llvm-mca of LLVM 19, -mcpu={cpu.lower()}" for cpu in _TRIPLES}
ITERATIONS = 100


def cycles_of_blocks(cpu: str, code: Code, blocks: Iterable[Block]) -> dict[tuple[int, int], float]:
    """Cycles of one execution of each block, by its start and instructions. What the model lacks (loop ends) counts one."""
    tool = find_tool("llvm-mca-19", PACKAGE)
    wanted = {(b.start, b.n_insns): code.of(b) for b in blocks}
    regions = [
        "\n".join([f"# LLVM-MCA-BEGIN {start:x}-{n:x}", *(i.text for i in insns), "# LLVM-MCA-END"])
        for (start, n), insns in wanted.items()
    ]
    command = [
        *(tool, f"-mtriple={_TRIPLES[cpu]}", f"-mcpu={cpu.lower()}", f"-iterations={ITERATIONS}"),
        *("-skip-unsupported-instructions=any", "-call-latency=1", "--json", "-"),  # its default is 100 for every call
    ]
    result = subprocess.run(command, input="\n".join(regions) + "\n", capture_output=True, text=True, check=False)
    try:
        found = {region["Name"]: region["SummaryView"] for region in json.loads(result.stdout)["CodeRegions"]}
    except (ValueError, KeyError) as error:
        raise NoVerdict(
            tool,
            expected="a report on every block",
            got=(result.stderr.strip().splitlines() or ["none"])[0],
            hint=f"is it LLVM 19's? apt-get install --no-install-recommends {PACKAGE}",
        ) from error
    cycles = {}
    for (start, n), insns in wanted.items():
        view = found.get(f"{start:x}-{n:x}", {"TotalCycles": 0, "Instructions": 0})
        unknown = len(insns) - view["Instructions"] / ITERATIONS
        cycles[start, n] = view["TotalCycles"] / ITERATIONS + unknown
    return cycles
