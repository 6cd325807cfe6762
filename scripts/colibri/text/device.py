# SPDX-License-Identifier: Apache-2.0
"""A checkpoint's tokenizer for the device: its tables, or why there are none."""

from __future__ import annotations

from dataclasses import dataclass

from colibri.text.rules import Unsupported
from colibri.text.tables import tables_of
from colibri.text.tokenizer_json import rules_of


@dataclass(frozen=True)
class DeviceTokenizer:
    """tables for `colibri_tokenizer_init`; None: `reason` says what of the tokenizer they cannot express."""

    tables: bytes | None
    reason: str | None = None


def for_device(tokenizer_json: bytes) -> DeviceTokenizer:
    """The tables of a tokenizer.json. What the device cannot do the host still does."""
    try:
        return DeviceTokenizer(tables_of(rules_of(tokenizer_json)))
    except Unsupported as error:
        return DeviceTokenizer(None, str(error))
