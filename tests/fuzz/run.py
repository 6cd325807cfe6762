# SPDX-License-Identifier: Apache-2.0
"""`make fuzz`: every target for so long, as many at a time as there are cores; exit code 1 where one finds something.

    python -m fuzz.run [--seconds N] [--jobs N] [--keep-seeds] [TARGET ...]

What a target learned stays in out/fuzz/TARGET/corpus and is where its next run begins; an input that it fails on is printed, and
lies beside it. --keep-seeds rewrites tests/fuzz/seeds from what the runs learned.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from . import harness, programs, seeds

TESTS = Path(__file__).parents[1]
WORK = TESTS.parent / "out" / "fuzz"
TARGETS = (*harness.TARGETS, *programs.TARGETS)

_TIMEOUT_SECONDS = 60  # of one input, on a loaded machine
_LATE_SECONDS = 300
_MAX_INPUT_BYTES = 512
_STATISTICS = re.compile(r"^#(\d+)\s.*\bcov: (\d+) ft: (\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """What a run did. coverage: edges (C) or lines and branches (Python) that were met;  finding: the input that failed."""

    target: str
    runs: int
    coverage: int
    features: int
    finding: bytes | None
    log: str

    def __str__(self) -> str:
        said = f"{self.target}: {self.runs:,} inputs, coverage {self.coverage}, features {self.features}"
        if self.finding is None:
            return said
        tail = "\n".join(line for line in self.log.splitlines() if not line.startswith(("INFO", "#")))[-4000:]
        return f"{said}\n{tail}\nFOUND by {self.target} in {self.finding.hex()}"


def fuzzed(target: str, seconds: int, folder: Path) -> Outcome:
    """Run one target in a folder of its own, from its seeds and from what an earlier run left there."""
    corpus, given, found = folder / "corpus", folder / "seeds", folder / "found"
    for path in (corpus, given, found):
        path.mkdir(parents=True, exist_ok=True)
    for i, seed in enumerate(seeds.read(target)):
        (given / f"{i:04}").write_bytes(seed)
    before = set(found.iterdir())
    if target in programs.TARGETS:
        command = [str(programs.compiled(target, folder / "program"))]
    else:
        command = [sys.executable, "-m", "fuzz.harness", target]
    command += [
        f"-max_total_time={seconds}",
        f"-timeout={_TIMEOUT_SECONDS}",
        f"-max_len={_MAX_INPUT_BYTES}",
        "-len_control=0",
    ]
    command += [f"-report_slow_units={_TIMEOUT_SECONDS}", f"-artifact_prefix={found}{os.sep}", str(corpus), str(given)]
    path = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    # the tokenizers package prints its own panics, which are errors of ours by then
    env = {**os.environ, "PYTHONPATH": path, "RUST_BACKTRACE": "0"}
    ended = subprocess.run(command, env=env, capture_output=True, timeout=seconds + _LATE_SECONDS, check=False)
    log = (ended.stdout + ended.stderr).decode("utf-8", "replace")
    new = sorted(set(found.iterdir()) - before)
    finding = None if ended.returncode == 0 else new[0].read_bytes() if new else b""
    runs, coverage, features = (int(n) for n in (_STATISTICS.findall(log) or [(0, 0, 0)])[-1])
    return Outcome(target, runs, coverage, features, finding, log)


def main() -> None:
    parser = argparse.ArgumentParser(prog="fuzz.run")
    parser.add_argument("targets", nargs="*", default=list(TARGETS), metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--keep-seeds", action="store_true")
    given = parser.parse_args()
    unknown = sorted(set(given.targets) - set(TARGETS))
    if unknown:
        parser.error(f"no such target: {', '.join(unknown)}; there are {', '.join(TARGETS)}")
    failed = False
    with ThreadPoolExecutor(given.jobs) as pool:
        for outcome in pool.map(lambda target: fuzzed(target, given.seconds, WORK / target), given.targets):
            print(outcome, flush=True)
            failed |= outcome.finding is not None
    if given.keep_seeds:
        for target in given.targets:
            seeds.write(target, [path.read_bytes() for path in sorted((WORK / target / "corpus").iterdir())])
    sys.exit(failed)


if __name__ == "__main__":
    main()
