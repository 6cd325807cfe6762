# SPDX-License-Identifier: Apache-2.0
from colibri.export.folder import RECORD, export_c

__all__ = ["RECORD", "export_c"]
