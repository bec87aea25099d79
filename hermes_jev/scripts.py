"""Scripts that are written without spaces between words, or with endings that spaces do not set apart.

Han, kana, hangul, Thai, Lao, Khmer, Burmese.
"""

from __future__ import annotations

import re

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u30ff\u3130-\u318f\u3400-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003ffff"
)
BY_SCRIPT = re.compile(rf"[{_UNSPACED}]+|[^{_UNSPACED}]+")
"""Runs of such scripts and runs of everything else, in turn."""

IS_UNSPACED = re.compile(rf"[{_UNSPACED}]")
"""One such character."""
