# SPDX-License-Identifier: Apache-2.0
"""Every error a user can cause, split by who must act.

    ColibriError
    ├── NegativeVerdict   1   the answer is no: bits differ, a claim does not hold
    │   └── DoesNotFit    1   the model is larger than the board
    ├── UsageError        2   the command line is wrong
    ├── InputError        3   a file that was given is not acceptable
    │   ├── CheckpointError
    │   ├── ImageError
    │   ├── ElfError
    │   └── BoardError
    ├── ToolError         4   a compiler or simulator is missing or too old
    ├── NoVerdict         5   timeout, or the simulator died
    └── OutputError       6   the output cannot be written

Each is shown as ``error: WHERE: expected EXPECTED, got GOT`` and ``hint:  HINT``. The number is the
process exit code, a stable contract. A bug of ours is any other exception: exit code 70, with its traceback.
"""

from __future__ import annotations


class ColibriError(Exception):
    """Base of all errors a user can cause.

    where      the place: a file, a tensor in it, an option, a field
    expected   what the rule demands
    got        what was found
    hint       what the user does next
    """

    exit_code = 70
    code = "bug"

    def __init__(self, where: str, *, expected: str, got: str, hint: str) -> None:
        self.where = where
        self.expected = expected
        self.got = got
        self.hint = hint
        super().__init__(f"{where}: expected {expected}, got {got}")


class NegativeVerdict(ColibriError):
    """The question was answered, and the answer is no."""

    exit_code = 1
    code = "negative_verdict"


class DoesNotFit(NegativeVerdict):
    """The model needs more flash, RAM or address space than the board has."""

    code = "does_not_fit"


class UsageError(ColibriError):
    """An unknown or contradictory option, board or address."""

    exit_code = 2
    code = "usage"


class InputError(ColibriError):
    """A given file is not acceptable."""

    exit_code = 3
    code = "input"


class CheckpointError(InputError):
    """A checkpoint is damaged, contradicts itself or is of an unknown kind."""

    code = "checkpoint"


class ImageError(InputError):
    """A packed image or its folder is damaged or belongs to something else."""

    code = "image"


class ElfError(InputError):
    """An ELF cannot be read or is not one of ours."""

    code = "elf"


class BoardError(InputError):
    """A board description is incomplete or wrong."""

    code = "board"


class ToolError(ColibriError):
    """A compiler, simulator or probe is missing or too old."""

    exit_code = 4
    code = "tool"


class NoVerdict(ColibriError):
    """The question could not be answered: timeout, or the simulator or probe died."""

    exit_code = 5
    code = "no_verdict"


class OutputError(ColibriError):
    """An output cannot be written."""

    exit_code = 6
    code = "output"
