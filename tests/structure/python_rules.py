# SPDX-License-Identifier: Apache-2.0
"""Which Python module may import which: the direction of dependence, as data.

A component is `colibri.NAME`, `colibri_sim.golden`, `colibri_sim.qemu`, `colibri_sim.cycles` or, for the modules beside those,
`colibri_sim`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

_MODEL = {"axes", "model"}
_LEAVES = {"errors", "numerics", *_MODEL}
ALLOWED: dict[str, set[str]] = {
    "colibri": set(),
    "colibri.errors": set(),
    "colibri.axes": set(),
    "colibri.tensors": {"axes"},
    "colibri.model": {"axes", "tensors"},
    "colibri.numerics": set(),
    "colibri.combinations": _MODEL,
    "colibri.tables": _MODEL,
    "colibri.data": {"errors"},
    "colibri.output": {"errors"},
    "colibri.tokenizer": {"errors"},
    "colibri.text": set(),
    "colibri.importers": {"errors", "text", *_MODEL, "tensors", "combinations"},
    "colibri.quantise": {"errors", *_MODEL},
    "colibri.boards": {"errors", "data"},
    "colibri.folder": {"errors", *_MODEL},
    "colibri.image": {"errors", *_MODEL, "quantise", "tables"},
    "colibri.layout": {"errors", *_MODEL, "quantise", "boards", "image", "data", "text"},
    "colibri.audit": {"errors", "boards", "folder"},
    "colibri.build": {*_LEAVES, "quantise", "boards", "image", "layout", "audit", "folder", "output", "data"},
    "colibri.export": {"errors", *_MODEL, "boards", "build", "folder", "output", "data", "importers", "text"},
    "colibri.packing": {"text", *_LEAVES, "quantise", "boards", "image", "layout", "build", "folder"},
    "colibri_sim.golden": {
        *("colibri.axes", "colibri.combinations", "colibri.errors", "colibri.model", "colibri.numerics"),
        *("colibri.quantise", "colibri.tables"),
    },
    "colibri_sim.qemu": {"colibri.errors", "colibri.boards", "colibri.data", "colibri.output", "colibri_sim"},
    "colibri_sim.cycles": {"colibri.errors", "colibri_sim.qemu"},
    "colibri_sim": {
        *("colibri.axes", "colibri.errors", "colibri.model", "colibri.quantise", "colibri.tokenizer"),
        *("colibri_sim.golden", "colibri_sim.qemu"),
    },
}
"""A short name stands for colibri.NAME. colibri.cli may import everything."""

ONLY_IN: dict[str, set[str]] = {
    "click": {"colibri.cli"},
    "rich_click": {"colibri.cli"},
    "subprocess": {"colibri.cli", "colibri.build", "colibri_sim.qemu", "colibri_sim.cycles"},
    "elftools": {"colibri.audit", "colibri_sim.qemu"},
    "tokenizers": {"colibri.tokenizer"},
    "gguf": {"colibri.importers"},
    "argparse": set(),
    "logging": set(),
    "warnings": set(),
    "tkinter": set(),
}
_TALKS = {"print", "exit", "quit", "input", "breakpoint"}
_ENDS = {("sys", "exit"), ("os", "_exit"), ("os", "abort"), ("sys", "stdout"), ("sys", "stderr")}


def component(module: str) -> str:
    parts = module.split(".")
    if parts[0] == "colibri_sim":
        return ".".join(parts[:2]) if parts[1:2] in (["golden"], ["qemu"], ["cycles"]) else "colibri_sim"
    return ".".join(parts[:2])


def imports(tree: ast.Module, module: str, is_package: bool) -> Iterator[tuple[int, str]]:
    """Line and absolute name of everything imported, inside functions and TYPE_CHECKING too."""
    package = module.split(".") if is_package else module.split(".")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            name = ".".join([*base, *([node.module] if node.module else [])])
            # `from colibri import numerics` imports a module, not a name
            whole = name in ("colibri", "colibri_sim")
            yield from ((node.lineno, f"{name}.{alias.name}" if whole else name) for alias in node.names)


def violations(root: Path) -> list[str]:
    """Every arrow the wrong way under ROOT/scripts and ROOT/sim, as `file:line: what`."""
    found = []
    for path in sorted([*(root / "scripts").rglob("*.py"), *(root / "sim").rglob("*.py")]):
        relative = path.relative_to(root)
        module = ".".join(relative.with_suffix("").parts[1:]).removesuffix(".__init__")
        tree = ast.parse(path.read_text())
        for line, problem in _problems(tree, module, path.name == "__init__.py"):
            found.append(f"{relative}:{line}: {problem}")
    return found


def _problems(tree: ast.Module, module: str, is_package: bool) -> Iterator[tuple[int, str]]:
    own = component(module)
    for line, name in imports(tree, module, is_package):
        top = name.split(".")[0]
        if top in ONLY_IN and own not in ONLY_IN[top]:
            yield line, f"{own} imports {top}"
        if top in ("colibri", "colibri_sim") and own != "colibri.cli" and component(name) != own:
            allowed = {a if a.startswith("colibri") else f"colibri.{a}" for a in ALLOWED.get(own, set())}
            if component(name) not in allowed:
                yield line, f"{own} imports {component(name)}"
    if own != "colibri.cli":
        yield from ((node.lineno, f"{own} talks: {text}") for node, text in _talk(tree))


def _talk(tree: ast.Module) -> Iterator[tuple[ast.expr, str]]:
    main = [n for n in tree.body if isinstance(n, ast.If) and "__main__" in ast.unparse(n.test)]
    generators = {id(n) for block in main for n in ast.walk(block)}
    for node in ast.walk(tree):
        if id(node) in generators:
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _TALKS:
            yield node, node.func.id
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield from ((node, f"{a}.{b}") for a, b in _ENDS if (a, b) == (node.value.id, node.attr))
