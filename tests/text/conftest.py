# SPDX-License-Identifier: Apache-2.0
from image.packs import packs

__all__ = ["packs"]
