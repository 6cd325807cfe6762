# SPDX-License-Identifier: Apache-2.0
"""Kernel layout 2, `armv7em`."""

from __future__ import annotations

from colibri.image.kernel_layouts.portable import PortableLayout


class Armv7emLayout(PortableLayout):
    """As `portable`, for now."""

    id = 2
    name = "armv7em"
