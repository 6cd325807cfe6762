# SPDX-License-Identifier: Apache-2.0
"""Text to ids and back on the device: a checkpoint's tokenizer as rules, and the rules as tables (docs/FORMAT.md 6)."""
