"""The store of originals: exact, content-addressed, opened per operation.

`truth` is what callers use. It is made of `originals`, `lineage` and `ledger` (its rows), `values` (exact bytes),
`database`, `faults` and `migrations` (its file); `retention` and `care` keep it small, `aside` and `salvage` are for a
damaged file.
"""

from .care import InUse, Stats, Stored
from .ledger import StoredReceipt, StoredVerdict
from .listing import Listed
from .originals import Call, Keep, Kept, Original
from .retention import Limits, Purged, Swept
from .services import Services, Spent
from .truth import FILE_NAME, Store
from .values import content_hash, decode, encode, is_pointer_id, pointer_hash, pointer_id

__all__ = [
    "Store",
    "Keep",
    "Kept",
    "Original",
    "Call",
    "Listed",
    "StoredVerdict",
    "StoredReceipt",
    "Services",
    "Spent",
    "InUse",
    "Limits",
    "Swept",
    "Purged",
    "Stats",
    "Stored",
    "FILE_NAME",
    "encode",
    "decode",
    "content_hash",
    "pointer_hash",
    "pointer_id",
    "is_pointer_id",
]
