# SPDX-License-Identifier: Apache-2.0
"""colibri export-gguf, the commands on a GGUF file, and the other spellings of --set."""

from __future__ import annotations

from pathlib import Path

from cli.command import CHECKPOINTS, MIXTRAL, call


def test_a_gguf_file_is_a_checkpoint_to_every_command(tmp_path: Path) -> None:
    file = tmp_path / "out.gguf"
    result = call("export-gguf", MIXTRAL, "-o", file, "--type", "q8_0")
    assert result.code == 0
    assert result.out.startswith(f"{file}: llama, ")
    assert call("plan", file, "-b", "mps3-an547", "-q", "q8:32").code == 0
    assert call("pack", file, "-b", "mps3-an547", "-q", "q8:32", "-o", tmp_path / "packed").code == 0
    assert call("golden", file, "--ids", "5,6").code == 0


def test_what_cannot_be_said_is_a_usage_error(tmp_path: Path) -> None:
    result = call("export-gguf", CHECKPOINTS / "mistral_swa", "-o", tmp_path / "out.gguf")
    assert result.code == 2
    assert "mixer.window" in result.error_lines()[0]
    # stated otherwise it can be
    args = (
        "export-gguf",
        CHECKPOINTS / "mistral_swa",
        "-o",
        tmp_path / "out.gguf",
        "--set",
        "attention.sliding_window=none",
    )
    assert call(*args).code == 0


def test_other_spellings_of_set() -> None:
    for options in (["--moe-top-k", 1], ["--set", "experts.per_token=1"]):
        result = call("inspect", MIXTRAL, "--json", *options)
        assert result.document["settings"]["experts.per_token"] == 1
    result = call("inspect", MIXTRAL, "--json", "--gating-softmax")
    assert result.document["settings"]["router.score"] == "softmax"
    for options in (["--moe-expert-count", 8], ["--gating-bias-zero"]):  # nothing that a config.json leaves open
        result = call("inspect", MIXTRAL, *options)
        assert result.code == 2
        assert "a key of this model" in result.error_lines()[0]
    assert call("inspect", MIXTRAL, "--moe-top-k", 1, "--set", "experts.per_token=1").code == 2
