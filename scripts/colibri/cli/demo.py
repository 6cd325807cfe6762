# SPDX-License-Identifier: Apache-2.0
"""colibri demo: from the checkpoint that ships with Colibri to a verified firmware that tells a story."""

from __future__ import annotations

from pathlib import Path

import click

from colibri.audit.claims import Subject, audit
from colibri.boards import load_board
from colibri.cli import audit as audit_command
from colibri.cli import options, render, targets, workflow
from colibri.cli.run import read_prompt, story
from colibri.data import data_path
from colibri.errors import NegativeVerdict
from colibri.folder import read_folder
from colibri.layout.settings import Settings
from colibri_sim.golden import Sampling
from colibri_sim.verify import verify

MODEL, BOARD, PROMPT = "stories-moe-3m", "mps3-an547", "Once upon a time"
SAMPLING = Sampling(temperature=0.7, top_k=0, top_p=0.9, seed=1)
_TOKENS = 300


@click.command("demo")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("colibri-demo"),
    show_default=True,
    help="Folder to write.",
)
@click.option("-p", "--prompt", default=PROMPT, show_default=True, help="How the story begins.")
@options.JOBS
@options.JSON
def command(output: Path, prompt: str, jobs: int, as_json: bool) -> None:
    """Pack, build, audit and verify the demo model for a simulated Cortex-M55, then let it tell a story."""
    source = workflow.read_checkpoint(data_path("weights") / MODEL)
    board = load_board(BOARD)
    workflow.pack(source, board, Settings(), output)
    folder = read_folder(output)
    elfs = {app: targets.built(folder, board, app, "gcc", "2", jobs) for app in ("verify", "generate")}
    claims = {elf.parent.name: audit(Subject.read(elf.parent, folder, board)) for elf in elfs.values()}
    if not as_json:
        audit_command.show(claims)
    broken = [claim for lines in claims.values() for claim in lines if not claim.holds]
    if broken:
        raise NegativeVerdict(
            "audit", expected=broken[0].name, got=broken[0].evidence, hint=f"see colibri audit {output}"
        )
    vectors = folder.vectors()
    limit = targets.timeout_for(folder, 2 * targets.vectors_positions(folder), None)
    verdict = verify(lambda request: targets.frames(folder, board, elfs["verify"], request, limit), vectors, None)
    if verdict.first_difference is not None:
        raise NegativeVerdict(
            f"verify on {BOARD}",
            expected="the golden model's bits",
            got=str(verdict.first_difference),
            hint="see colibri verify",
        )
    if as_json:
        render.document({"folder": str(output), "positions": verdict.positions, "bit_exact": True})
        return
    print(f"{BOARD}: every tensor of {verdict.positions} positions has the golden model's bits\n", flush=True)
    story(folder, board, elfs["generate"], read_prompt(folder, prompt), _TOKENS, SAMPLING, None, as_json=False)
