"""`jev doctor`: what is set up, what stands behind it, and what is wrong, in words.

`examine` puts the checks together: `judging` (service, key, cost), `storing`, `locate` and `look` (which Hermes, and
what it says itself), `selected` and `running` (whether it runs this engine, and what keeps that from its work), `logs`
(what it did last), `probe`.
"""

from .examine import Examined, examine
from .findings import Finding

__all__ = ["Examined", "Finding", "examine"]
