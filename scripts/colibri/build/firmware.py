# SPDX-License-Identifier: Apache-2.0
"""One application for one packed folder: compile the engine against its model_config.h, link at the board's addresses."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from colibri.boards import Board, linker_script
from colibri.build.products import write_products
from colibri.build.toolchain import OptLevel, Toolchain, find_toolchain, run
from colibri.data import data_path
from colibri.errors import UsageError
from colibri.folder import BUILD, IMAGE, Folder
from colibri.layout.budget import budget_key
from colibri.output import replaced_folder

App = Literal["generate", "text", "verify", "bench", "kernels", "lib"]
"""`kernels` is for `colibri bench --kernels` alone: no firmware of a model."""
SCHEMA_VERSION = 1


@dataclass(frozen=True)
class BuildOptions:
    """Options of `colibri build`. simulator: semihosting console and exit; without it, the board's UART."""

    app: App = "generate"
    toolchain: Literal["gcc", "llvm"] = "gcc"
    opt: OptLevel = "2"
    jobs: int = 2
    simulator: bool = True


def build(folder: Folder, board: Board, options: BuildOptions) -> Path:
    """Build one application; returns DIR/APP-TOOLCHAIN, complete or as it was.

    Raises ToolError, OutputError; UsageError for a hardware build of a mapped board, and for `text` without a tokenizer;
    NegativeVerdict where the ELF contradicts the plan.
    """
    if board.image == "mapped" and not options.simulator:
        raise UsageError(
            "--hardware",
            expected="a board with a UART",
            got=f"{board.name}, whose programs use standard input and output",
            hint="leave the option out: the program is for that machine as it is",
        )
    if options.app == "text" and folder.text_bytes is None:
        raise _no_tokenizer(folder)
    toolchain = find_toolchain(board, options.toolchain)
    target = folder.path / output_name(options)
    with replaced_folder(target, BUILD) as work:
        objects = _compile(work, folder, board, toolchain, options)
        if options.app == "lib":
            record = _archive(work, toolchain, objects)
        else:
            _link(work, folder, board, toolchain, options, objects)
            if options.app == "kernels":  # no model, so no plan to hold it against
                record = {}
            else:
                record = write_products(work, folder, board, budget_key(toolchain.version, options.opt), options.app)
        for item in objects:
            item.unlink()
        record = {**_identity(folder, board, toolchain, options), **record}
        (work / BUILD).write_text(json.dumps(record, indent=1) + "\n")
    return target


def _no_tokenizer(folder: Folder) -> UsageError:
    """Why an image cannot be the application text's, and what would help."""
    device = folder.manifest["device_tokenizer"]
    if device is None:
        got, hint = (
            "one of a checkpoint without a tokenizer",
            "put the model's tokenizer.json into its folder, then pack",
        )
    elif "unsupported" in device:
        got, hint = (
            f"one whose tokenizer has {device['unsupported']}",
            "build generate: colibri run tokenises on the host",
        )
    else:
        got, hint = "one without", "pack the checkpoint again with --text 512: for prompts of up to 512 bytes"
    return UsageError(f"--app text: {folder.path}", expected="an image with the tokenizer", got=got, hint=hint)


def output_name(options: BuildOptions) -> str:
    """APP-TOOLCHAIN; another optimisation level than 2, and hardware, are part of the name: no build hides another."""
    suffix = ("" if options.opt == "2" else f"-O{options.opt}") + ("" if options.simulator else "-hw")
    return f"{options.app}-{options.toolchain}{suffix}"


def _identity(folder: Folder, board: Board, toolchain: Toolchain, options: BuildOptions) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "app": options.app,
        "board": board.name,
        "toolchain": toolchain.name,
        "compiler": toolchain.version,
        "opt": options.opt,
        "simulator": options.simulator,
        "config_hash": folder.manifest["config_hash"],
        "image_sha256": folder.manifest["image"]["sha256"],
    }


def sources(board: Board, app: App, kernels: str) -> list[Path]:
    """Every C and assembly source of an application, with the kernel set `kernels` and the portable one, on which each builds."""
    firmware = data_path("firmware")
    sets = dict.fromkeys(("portable", kernels))
    patterns = ["kernels/*.c", *(f"kernels/{name}/*.[cS]" for name in sets)]
    if app == "kernels":
        patterns += ["apps/kernels/*.c"]
    else:
        patterns = ["engine/*.c", *patterns]
    if app in ("text", "lib"):
        patterns += ["tokenizer/*.c"]
    if app not in ("kernels", "lib"):
        patterns += [f"apps/{app}.c", "apps/common/*.c"]
    found = [path for pattern in patterns for path in sorted(firmware.glob(pattern))]
    if app != "lib":
        found += board.sources
        found += [firmware / "arch" / "weights.S"] if board.image == "linked" else []
    return found


def _compile(work: Path, folder: Folder, board: Board, toolchain: Toolchain, options: BuildOptions) -> list[Path]:
    firmware = data_path("firmware")
    common = [
        toolchain.compiler,
        *toolchain.compile_flags(options.opt),
        # No path of this machine in the ELF: this one is renamed, and the model's is the current folder (toolchain.run).
        # The second option is the one that reaches the assembler.
        f"-ffile-prefix-map={firmware}=firmware",
        f"-fdebug-prefix-map={firmware}=firmware",
        f"-I{firmware / 'include'}",
        f"-I{firmware}",
        "-I.",
        f'-DCOLIBRI_WEIGHTS_FILE="{IMAGE}"',
        *(["-DCOLIBRI_SIMULATOR=1"] if options.simulator else []),
    ]

    def one(source: Path) -> Path:
        name = source.relative_to(firmware) if source.is_relative_to(firmware) else Path(source.name)
        target = work / ("_".join(name.parts) + ".o")
        extra = ["-ffreestanding"]
        if name.name == "mem.c":  # a loop that becomes a call of memcpy must not be memcpy itself
            extra += {"gcc": ["-fno-tree-loop-distribute-patterns"], "llvm": ["-fno-builtin"]}[toolchain.name]
        if name.name == "weights.S":  # data only, for which clang would record its temporary file
            extra.append("-g0")
        run([*common, *extra, "-c", str(source), "-o", str(target)], f"compiling {name}", cwd=folder.path)
        return target

    with ThreadPoolExecutor(max_workers=options.jobs) as pool:
        return list(pool.map(one, sources(board, options.app, folder.kernels)))


def _link(
    work: Path, folder: Folder, board: Board, toolchain: Toolchain, options: BuildOptions, objects: list[Path]
) -> None:
    command = [
        toolchain.linker,
        *toolchain.link_flags,
        "-nostdlib",
        "-nostartfiles",
        "-Wl,--gc-sections",
        "-Wl,-Map,firmware.map",
        "-Wl,--fatal-warnings,--build-id=none",
        "-Wl,-z,noexecstack",
    ]
    if board.linker_script is not None:
        address = int(folder.manifest["settings"]["weights_address"])
        (work / "board.ld").write_text(
            linker_script(board, address, "bench" if options.app == "kernels" else options.app)
        )
        command += ["-T", "board.ld"]
    run([*command, *(path.name for path in objects), "-lgcc", "-o", "firmware.elf"], "linking", cwd=work)
    if board.image == "mapped":  # the kernel's side is in the ELF too: the engine by itself is what the audit looks at
        engine = [path.name for path in objects if path.name.startswith(("engine_", "kernels_"))]
        run(
            [toolchain.linker, *toolchain.link_flags, "-nostdlib", "-r", *engine, "-o", "engine.o"], "linking", cwd=work
        )


def _archive(work: Path, toolchain: Toolchain, objects: list[Path]) -> dict[str, Any]:
    """libcolibri.a, deterministic (no dates, no owners)."""
    archiver = run([toolchain.linker, "-print-prog-name=ar"], "finding ar").strip()
    run([archiver, "rcsD", "libcolibri.a", *(path.name for path in objects)], "archiving", cwd=work)
    return {}
