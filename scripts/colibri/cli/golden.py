# SPDX-License-Identifier: Apache-2.0
"""colibri golden: the golden model's logits and experts at every position, on the host."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from colibri.cli import options, render, workflow
from colibri.errors import NegativeVerdict, UsageError
from colibri.layout.cache_layout import Kv
from colibri.model import F32Array, ModelConfig
from colibri_sim.golden import RangeExceeded, Result
from colibri_sim.prompts import check_ids, parse_ids
from colibri_sim.vectors import golden_model

_SHOWN = 5


@click.command("golden")
@options.CHECKPOINT
@click.option("--ids", required=True, help="Token ids, e.g. 1,2,3; nothing is added to them.")
@click.option("--source", help="Token ids that an encoder reads; --ids are then the decoder's.")
@click.option("-q", "--quant", metavar="QUANT", default="f32", show_default=True, help="As for pack; f32: unquantised.")
@click.option(
    "--kv", type=click.Choice(["f32", "f16", "q8"]), default="f32", show_default=True, help="Format of the KV cache."
)
@options.reading_options
@options.JSON
def command(checkpoint: Path, ids: str, source: str | None, quant: str, kv: Kv, as_json: bool, **reading: Any) -> None:
    """Run the golden model on CHECKPOINT: the definition of every bit the firmware computes."""
    model = workflow.read_checkpoint(checkpoint, options.reading_from(reading)).model
    config = model.config
    encoded = _source(config, source)
    tokens = parse_ids(ids, "--ids")
    check_ids(tokens, "--ids", config.vocab_size, config.max_seq)
    values: dict[str, Any] = dict.fromkeys(options.SETTING_NAMES) | {"quant": quant, "kv": kv}
    settings = options.settings_from(values)
    policy = settings.policy.resolve(config)
    try:
        golden = golden_model(model, config, policy, settings.kv)
        if encoded is not None:
            golden.encode(list(encoded))
        result = golden.forward(list(tokens))
    except RangeExceeded as error:
        raise NegativeVerdict(
            f"{checkpoint}: position {error.position}",
            expected="values below 2**50",
            got=str(error),
            hint="the engine answers COLIBRI_ERR_RANGE here; check the weights",
        ) from error
    if as_json:
        render.document({"ids": list(tokens), "quant": str(policy), "kv": kv, **_json(result, len(tokens))})
    else:
        print(_text(result, tokens))


def _source(config: ModelConfig, text: str | None) -> tuple[int, ...] | None:
    """The ids of --source, which an encoder needs and nothing else takes. Raises UsageError."""
    if (text is None) != (config.encoder is None):
        raise UsageError(
            "--source",
            expected="none: the model has no encoder" if text else "token ids for the encoder",
            got=f"'{text}'" if text else "none",
            hint="leave it out" if text else "e.g. --source 17,93,1",
        )
    if text is None or config.encoder is None:
        return None
    ids = parse_ids(text, "--source")
    check_ids(ids, "--source", config.vocab_size, config.encoder.max_source, "--max-source")
    return ids


def _json(result: Result, n: int) -> dict[str, Any]:
    return {
        "logits": [[render.number(v) for v in row] for row in result.logits],
        "experts": [[layer[position].tolist() for layer in result.experts] for position in range(n)],
    }


def _text(result: Result, tokens: tuple[int, ...]) -> str:
    def best(row: F32Array) -> str:
        order = np.argsort(-row, kind="stable")[:_SHOWN]
        return "  ".join(f"{int(i)}: {float(row[i]):.4f}" for i in order)

    rows = [
        (position, token, " ".join(str(layer[position].tolist()) for layer in result.experts), best(row))
        for position, (token, row) in enumerate(zip(tokens, result.logits, strict=True))
    ]
    return render.table(("position", "id", "experts by layer", f"{_SHOWN} largest logits"), rows)
