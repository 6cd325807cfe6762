# SPDX-License-Identifier: Apache-2.0
"""colibri bench: what a token costs.

Instructions come from the simulator only, cycles from hardware only; what is estimated is called an estimate.
"""

from colibri.cli.bench.command import command

__all__ = ["command"]
