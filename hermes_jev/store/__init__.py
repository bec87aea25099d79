"""The store of originals: exact, content-addressed, opened per operation.

`truth` is what callers use; `originals`, `database`, `migrations` and `values` are what it is made of.
"""

from .listing import Listed
from .originals import Call, Keep, Kept, Original
from .truth import FILE_NAME, Store, StoredReceipt, StoredVerdict
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
    "FILE_NAME",
    "encode",
    "decode",
    "content_hash",
    "pointer_hash",
    "pointer_id",
    "is_pointer_id",
]
