# SPDX-License-Identifier: Apache-2.0
"""colibri audit: what is claimed about a firmware, shown from its ELF."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from colibri.audit.claims import Claim, Subject, audit
from colibri.build.firmware import BuildOptions, build
from colibri.build.products import ELF
from colibri.cli import options, render, workflow
from colibri.errors import NegativeVerdict, UsageError
from colibri.folder import BUILD, Folder, is_folder, read_folder


@click.command("audit")
@click.argument("target", metavar="DIR|ELF|CHECKPOINT", type=click.Path(path_type=Path))
@options.BOARD
@options.settings_options
@options.WORK
@options.JSON
def command(target: Path, board: str | None, work: Path | None, as_json: bool, **values: Any) -> int:
    """Prove the claims about every application built in DIR, or about one ELF in it; one line each."""
    if target.name == ELF and target.is_file() and is_folder(target.parent.parent):
        folder = read_folder(target.parent.parent)
        return _show({target.parent.name: _audit(target.parent, folder)}, as_json)
    if target.is_file() and _is_elf(target):
        raise UsageError(
            str(target),
            expected=f"a {ELF} where `colibri build` wrote it: DIR/APP-TOOLCHAIN/{ELF}",
            got="an ELF in another place",
            hint="colibri audit DIR, with the folder that `colibri pack` wrote",
        )
    with workflow.packed(target, board, values, work) as folder:
        builds = sorted(path.parent for path in folder.path.glob(f"*/{BUILD}") if (path.parent / ELF).exists())
        if not builds:
            builds = [build(folder, workflow.board_of(folder), BuildOptions())]
        return _show({path.name: _audit(path, folder) for path in builds}, as_json)


def _is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def _audit(path: Path, folder: Folder) -> list[Claim]:
    return audit(Subject.read(path, folder, workflow.board_of(folder)))


def show(claims: dict[str, list[Claim]]) -> None:
    """Print one line a claim."""
    for build_name, lines in claims.items():
        for claim in lines:
            print(f"{'ok  ' if claim.holds else 'FAIL'} {build_name}: {claim.name} ({claim.evidence})")


def _show(claims: dict[str, list[Claim]], as_json: bool) -> int:
    if as_json:
        render.document(
            {"claims": [{"build": name, **vars(claim)} for name, lines in claims.items() for claim in lines]}
        )
    else:
        show(claims)
    return 0 if all(claim.holds for lines in claims.values() for claim in lines) else NegativeVerdict.exit_code
