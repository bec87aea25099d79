"""The errors of the package, and who sees them.

    JevError
    ├── ConfigError        a setting that cannot be used              → the user
    ├── InputError         a transcript or argument that cannot be read → the user
    ├── StoreError         an original that cannot be kept or read    → the pass: that result stays whole
    │   └── NotStored      nothing is stored under that pointer       → expand, restore
    └── JudgeError         a question that got no usable answer       → the pass: no verdict, and doubt keeps
        ├── JudgeAuth         the key is missing or refused, or has no credit
        ├── JudgeTooLarge     the request is over the service's limit
        ├── JudgeTransient    the service, the network or the deadline
        ├── JudgeBadRequest   the service does not understand the request
        └── JudgeBadResponse  the client does not understand the answer

Messages name what is wrong, where, and what to do. They never hold text of a transcript or a key.
"""

from __future__ import annotations


class JevError(Exception):
    """Base of every error this package raises on purpose."""


class ConfigError(JevError):
    """A setting is unknown, of the wrong type, or impossible."""


class InputError(JevError):
    """A transcript or an argument cannot be used as it is."""


class StoreError(JevError):
    """The store could not keep or give back an original."""


class NotStored(StoreError):
    """The store holds nothing under this pointer for this session."""


class JudgeError(JevError):
    """A judge gave no usable answer.

    `code` is a short stable word for receipts: auth, too_large, transient, bad_request, bad_response.
    """

    code = "judge"


class JudgeAuth(JudgeError):
    """The service refused the key, there is none, or nothing is left to pay with."""

    code = "auth"


class JudgeTooLarge(JudgeError):
    """The request is longer than the service reads."""

    code = "too_large"


class JudgeTransient(JudgeError):
    """A failure that may pass: rate, overload, time-out, connection."""

    code = "transient"


class JudgeBadRequest(JudgeError):
    """The service refused the request for a reason a retry does not mend."""

    code = "bad_request"


class JudgeBadResponse(JudgeError):
    """The answer is not in the service's format."""

    code = "bad_response"
