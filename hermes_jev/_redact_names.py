"""Which names announce a secret.

A name is read as words, whatever its spelling: `dbPassword`, `DB_PASSWORD` and `db-password` are the same. How strongly
it announces a secret is its strength:

    sure     password, client_secret, api_key …     every value but a reference to one
    likely   token, auth, cookie, pin …             in a field every value; in prose and code, one that looks random
    maybe    key, pass, signature …                 only a long random value
    none     max_tokens, token_count, author …      nothing
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

Strength = Literal["none", "maybe", "likely", "sure"]

MASK = "[secret]"


def word_set(table: str) -> frozenset[str]:
    """The words of a table, which is easier to read than a list of strings."""
    return frozenset(table.split())


_LONGEST_NAME = 80
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")

_SECRET_KEYS = "api|access|secret|private|signing|encryption|decryption|ssh|license"
_KEY_OWNERS = (
    "sign|encrypt|account|shared|master|session|service|auth|authorization|subscription|deploy|hmac|jwt|webhook|admin|aes|"
    "rsa|pgp|gpg|app|application|consumer|client|root|server|integration|ingest|write|host|psk"
)
_TOKEN_OWNERS = (
    "access|refresh|auth|authentication|api|bearer|id|session|bot|secret|csrf|xsrf|oauth|app|client|device|deploy|"
    "personal|private|jwt|login|service|webhook|verification|reset|push|security|account|github|gitlab|gh|gl|slack|"
    "telegram|discord|npm|pypi|hf|huggingface|vault|admin|root|registry|user"
)
_PASS_OWNERS = (
    "db|database|user|smtp|mail|email|ftp|root|admin|mysql|pg|postgres|redis|mongo|proxy|http|ssh|wifi|login|sudo"
)

# Read over the words joined by "-": "db-password", "api-key", "apikey".
_SURE = re.compile(
    rf"(?:^|-)(?:[a-z]*(?:password|passwd|passphrase|passcode|secret|credential|apikey|secretkey|privatekey|accesskey)s?"
    rf"|pass-(?:word|wd|phrase|code)s?|passwort|pwd|pswd|pw|creds|psk|mnemonic|(?:seed|recovery|backup)-?phrase"
    rf"|authorization|(?:{_SECRET_KEYS})-?keys?|(?:{_KEY_OWNERS})-?key|(?:{_TOKEN_OWNERS})-?tokens?|(?:{_PASS_OWNERS})-?pass"
    rf"|amz-(?:signature|credential))(?:-|$)"
)
_LIKELY = re.compile(r"(?:[a-z]*token|auth|pin|otp|totp|cvv|cvc|cookies?|jwt|bearer|ssn|phpsessid|jsessionid)$")
_MAYBE = re.compile(r"(?:key|pass|sig|signature|sid|sessionid|pat)$")

# A last word that turns the name into a fact about the secret, not the secret.
_ABOUT = word_set(
    """
    age arn at bucket builder by bytes chars check checker class config configs configured count counts created date
    deadline description dir directory enabled endpoint endpoints engine env error errors exists expiration expired
    expires expiry factory failed failure field fields file filename files folder for form format found generator
    handler help helper hint id identity ids idx in index info input interval invalid keyword keywords kind kwarg
    label labels len length limit limits link lists manager match matches max message messages method min missing mode
    module msg name names page parser path paths pattern patterns period policies policy pool prefix present prompt
    provider providers re reason reasons ref reference refs regex required rotate rotation rule rules scan scanner
    scanning scheme scope scopes seconds service services settings size skew source sources state status storage store
    strategies strategy stream strength suffix text time timeout title ttl type types updated uri uris url urls usage
    used util utils valid validation validator var vars vault version words changed budget options placeholder rounds
    cost iterations algorithm algo salt
    """
)
# A first word that asks or says whether there is one.
_WHETHER = word_set(
    "has have is use uses need needs require requires should can show hide skip without enable disable no ask"
)
_DIGESTS = word_set("hash digest fingerprint checksum sha sha256 md5")
_NEUTRAL = word_set(
    """
    value string str data base base64 b64 hex plain raw encrypted prod production dev test staging live old new number
    no code header local
    """
)
# A word that makes "token" a piece of text or a position, not a credential.
_LEXICAL = word_set(
    """
    max min num total n next prev previous last first eos bos pad unk sep cls mask stop special added image per prompt
    completion output cached reasoning thinking parse current cur expected unexpected page continuation cancellation
    cancel peek lookahead
    """
)
_PUBLIC = word_set("public publishable pub")


def words_of(name: str) -> list[str]:
    """The words of a name in lower case, without a number at the end."""
    words = [word.lower() for word in _WORD.findall(name.replace("OAuth", "Oauth"))]
    while words and words[-1].isdigit():
        words.pop()
    return words


@lru_cache(maxsize=4096)
def strength(name: str) -> Strength:
    """How strongly a field, variable or header name announces a secret. Names over 80 characters never do."""
    words = words_of(name.replace(MASK, "")) if len(name) <= _LONGEST_NAME else []
    if not words or words[0] in _WHETHER or _PUBLIC.intersection(words):
        return "none"
    joined = "-".join(words)
    last = words[-1]
    if (last in _ABOUT and not joined.endswith("secret-id")) or (last in _DIGESTS and "pass" not in joined):
        return "none"
    if _SURE.search(joined):
        return "sure"
    while len(words) > 1 and words[-1] in _NEUTRAL:
        words.pop()
    if words[-1].endswith("token") and _LEXICAL.intersection(words):
        return "none"
    if _LIKELY.match(words[-1]):
        return "likely"
    return "maybe" if _MAYBE.match(words[-1]) else "none"


def strength_after(word: str, name: str) -> Strength:
    """The strength of a name in prose, with the word before it: "API key", "public key", but "use token"."""
    alone = strength(name)
    if alone == "sure" or word.lower() in _WHETHER:
        return alone
    joint = strength(f"{word}_{name}")
    return joint if joint in ("sure", "none") else alone
