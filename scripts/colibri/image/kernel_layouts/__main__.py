# SPDX-License-Identifier: Apache-2.0
"""`python -m colibri.image.kernel_layouts > firmware/kernels/layouts.h`."""

import sys

from colibri.image.kernel_layouts import c_header

if __name__ == "__main__":
    sys.stdout.write(c_header())
