# SPDX-License-Identifier: Apache-2.0
"""No arrow runs the wrong way; and each rule is shown to be able to fail, on a file that breaks it."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import c_rules, python_rules

ROOT = Path(__file__).parents[2]


def test_python_imports_point_the_right_way() -> None:
    assert python_rules.violations(ROOT) == []


def test_c_includes_point_the_right_way() -> None:
    assert c_rules.violations(ROOT / "firmware") == []


def test_every_python_component_has_a_rule() -> None:
    modules = [p.relative_to(ROOT / "scripts") for p in (ROOT / "scripts" / "colibri").rglob("*.py")]
    found = {python_rules.component(".".join(m.with_suffix("").parts).removesuffix(".__init__")) for m in modules}
    assert found - {"colibri.cli"} <= set(python_rules.ALLOWED)


def test_the_rules_have_no_cycle() -> None:
    """A cycle in the table itself would allow what it is there to forbid; colibri_sim's two halves are one program."""
    done: set[str] = set()
    left = {k: {a if a.startswith("colibri") else f"colibri.{a}" for a in v} for k, v in python_rules.ALLOWED.items()}
    left["colibri_sim.qemu"].discard("colibri_sim")
    while left:
        ready = [name for name, needs in left.items() if needs <= done]
        assert ready, left
        done |= set(ready)
        for name in ready:
            del left[name]


@pytest.mark.parametrize(
    ("path", "text", "problem"),
    [
        ("scripts/colibri/model.py", "from colibri.errors import X", "colibri.model imports colibri.errors"),
        ("scripts/colibri/image/x.py", "from colibri.layout.plan import Plan", "colibri.image imports colibri.layout"),
        ("scripts/colibri/image/x.py", "def f():\n    import colibri.build.firmware", "imports colibri.build"),
        (
            "scripts/colibri/quantise/x.py",
            "from ..image.matrix import Matrix",
            "colibri.quantise imports colibri.image",
        ),
        ("scripts/colibri/quantise/x.py", "from .. import image", "colibri.quantise imports colibri.image"),
        ("scripts/colibri/importers/families/x.py", "from colibri import quantise", "imports colibri.quantise"),
        ("scripts/colibri/layout/x.py", "import colibri_sim.golden", "colibri.layout imports colibri_sim.golden"),
        ("scripts/colibri/layout/x.py", "import colibri.cli.render", "colibri.layout imports colibri.cli"),
        ("scripts/colibri/packing.py", "import click", "colibri.packing imports click"),
        ("scripts/colibri/layout/x.py", "import subprocess", "colibri.layout imports subprocess"),
        ("scripts/colibri/new/x.py", "import colibri.errors", "colibri.new imports colibri.errors"),
        ("sim/colibri_sim/golden/x.py", "from colibri.image import reader", "colibri_sim.golden imports colibri.image"),
        ("sim/colibri_sim/golden/x.py", "from colibri.layout.plan import Plan", "imports colibri.layout"),
        ("sim/colibri_sim/golden/x.py", "from ..vectors import Prompt", "colibri_sim.golden imports colibri_sim"),
        ("sim/colibri_sim/x.py", "from colibri.folder import Folder", "colibri_sim imports colibri.folder"),
        ("sim/colibri_sim/x.py", "print(1)", "colibri_sim talks: print"),
        ("scripts/colibri/build/x.py", "import sys\nsys.exit(1)", "colibri.build talks: sys.exit"),
        ("scripts/colibri/build/x.py", "import sys\nsys.stderr.write('')", "colibri.build talks: sys.stderr"),
    ],
)
def test_a_python_arrow_the_wrong_way_is_seen(tmp_path: Path, path: str, text: str, problem: str) -> None:
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text(text + "\n")
    found = python_rules.violations(tmp_path)
    assert len(found) == 1
    assert found[0].startswith(f"{path}:{text.count(chr(10)) + 1}: ")
    assert problem in found[0]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("scripts/colibri/cli/x.py", "import click\nimport colibri_sim.golden\nprint(1)"),
        ("scripts/colibri/image/x.py", "if __name__ == '__main__':\n    print(1)"),
        ("sim/colibri_sim/golden/x.py", "from colibri import numerics\nfrom . import functions"),
    ],
)
def test_what_is_allowed_is_not_seen(tmp_path: Path, path: str, text: str) -> None:
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text(text + "\n")
    assert python_rules.violations(tmp_path) == []


HEADERS = (
    "engine/internal.h",
    "kernels/kernels.h",
    "kernels/isa.h",
    "kernels/portable/dot8.h",
    "include/colibri/colibri.h",
    "include/colibri/port.h",
    "include/colibri/config.h",
    "arch/arm-m/board.h",
    "arch/board.h",
    "arch/frames.h",
    "apps/common/app.h",
    "boards/common/cmsdk.h",
)


@pytest.mark.parametrize(
    ("path", "text", "problem"),
    [
        ("engine/x.c", '#include "../kernels/portable/dot8.h"', "includes kernels/portable/dot8.h"),
        ("engine/x.c", '#include "../kernels/isa.h"', "includes kernels/isa.h"),
        ("engine/x.c", '#include "arch/frames.h"', "includes arch/frames.h"),
        ("engine/x.c", '#include "../apps/common/app.h"', "includes apps/common/app.h"),
        ("engine/x.c", "#include <string.h>", "includes the system's string.h"),
        ("engine/x.c", "#include <math.h>", "includes the system's math.h"),
        ("engine/x.c", '#include "model_config.h"', "includes model_config.h"),
        ("engine/x.c", "#if defined(__ARM_FEATURE_FMA)", "knows an instruction set: __ARM_FEATURE_FMA"),
        ("engine/x.c", "size_t a = COLIBRI_LAYER_BLOCKS_AT(0);", "uses COLIBRI_LAYER_BLOCKS_AT"),
        ("engine/x.c", "float f(void) { return colibri_port_cycles(); }", "uses colibri_port_cycles"),
        ("engine/x.c", "double d;", "uses double"),
        ("engine/x.c", "void *p = malloc (3);", "uses malloc ("),
        ("kernels/portable/x.c", '#include "../../engine/internal.h"', "includes engine/internal.h"),
        ("kernels/portable/x.c", '#include "colibri/colibri.h"', "includes include/colibri/colibri.h"),
        ("kernels/portable/x.c", '#include "boards/common/cmsdk.h"', "includes boards/common/cmsdk.h"),
        ("kernels/portable/x.c", "#ifdef __riscv_v", "tests an instruction set: __riscv_v"),
        ("kernels/mve/x.c", "int mps3_an547;", "knows a board: mps3_an547"),
        ("arch/arm-m/x.c", "#include <colibri/colibri.h>", "includes include/colibri/colibri.h"),
        ("arch/linux/x.c", "#include <sys/mman.h>", "includes the system's sys/mman.h"),
        ("arch/x.c", "int n = COLIBRI_N_LAYERS;", "knows a model: COLIBRI_N_LAYERS"),
        ("boards/b/board.c", "#include <colibri/colibri.h>", "includes include/colibri/colibri.h"),
        ("boards/b/board.c", "int n = COLIBRI_VOCAB_SIZE;", "knows a model: COLIBRI_VOCAB_SIZE"),
        ("apps/x.c", '#include "../engine/internal.h"', "includes engine/internal.h"),
        ("apps/x.c", '#include "boards/common/cmsdk.h"', "includes boards/common/cmsdk.h"),
        ("export/x.h", '#include "../engine/internal.h"', "includes engine/internal.h"),
        ("export/main.c", "#include <math.h>", "includes the system's math.h"),
        ("export/main.c", "void *p = malloc (3);", "uses malloc ("),
        ("engine/x.c", 'int x = printf("x");', "uses printf("),
        ("include/colibri/x.h", '#include "../../engine/internal.h"', "includes engine/internal.h"),
        ("glue/x.c", "int x;", "is in a folder without a rule"),
    ],
)
def test_a_c_arrow_the_wrong_way_is_seen(tmp_path: Path, path: str, text: str, problem: str) -> None:
    for header in HEADERS:
        (tmp_path / header).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / header).write_text("")
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_text(f"/* double, malloc(: a comment\n is not code */\n{text}\n")
    found = c_rules.violations(tmp_path)
    assert found
    assert problem in found[0]
    if "folder" not in problem:
        assert found[0].startswith(f"{path}:3: ")


def test_what_a_c_file_may_include_is_not_seen(tmp_path: Path) -> None:
    good = {
        "engine/x.c": '#include "internal.h"\n#include "../kernels/kernels.h"\n#include "colibri/colibri.h"\n',
        "engine/forward.c": '#include "colibri/port.h"\nint x = colibri_port_cycles();\n',
        "kernels/portable/x.c": '#include "dot8.h"\n#include "colibri/config.h"\n',
        "arch/linux/port.c": '#include "../board.h"\n#include <stdint.h>\n#include <colibri/port.h>\n',
        "boards/b/board.c": '#include "../common/cmsdk.h"\n#include "../../arch/arm-m/board.h"\n',
        "apps/x.c": '#include "common/app.h"\n#include <colibri/colibri.h>\n',
    }
    for path, text in {**dict.fromkeys(HEADERS, ""), **good}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert c_rules.violations(tmp_path) == []
