r"""Which values, behind the name of a secret, are one.

Values that only refer to a secret (`$TOKEN`, `os.environ["TOKEN"]`, `password=password`, `str`) stay: they are code.
How much a value must look like a key depends on the strength of its name and on where it stands.
"""

from __future__ import annotations

import re
from typing import Literal

from ._redact_names import Strength, word_set, words_of

# Where an unquoted value stands: in a NAME=value line, behind a quoted name, behind --name, anywhere else.
Place = Literal["env", "field", "flag", "text"]

_LONGEST_CODE = 512

_STOP = word_set(
    """
    none null nil true false undefined string str text bytes bytearray int integer number float bool boolean any
    object array list dict tuple set map optional union literal callable self required missing invalid incorrect wrong
    expired empty unset not is are was were has have the a an and or to for from of in on off at by with when must
    should can cannot may will yes no enabled disabled ok failed failure error found unknown default auto basic bearer
    digest oauth oauth2 token password passwords mismatch changed reset updated please enter your expected unexpected
    end auth args kwargs value values data config settings options params input form user env env_var field type await
    new return lambda function async typeof if else pass const let var buffer uint8array secretstr char varchar utf8
    utf-8 sha1 sha256 sha512 md5 base64 int8 int16 int32 int64 uint8 uint32 uint64 x509 ed25519 rs256 hs256 es256
    aes256 flag option redacted masked hidden
    """
)
_NOTHING = word_set("none null nil true false undefined")
_REFERENCE = re.compile(
    r"\$\{[^}]*\}?|\$\([^)]*\)?|\$[A-Z_][A-Z0-9_]*|\$[a-z_]+(?:[A-Z][a-z]+)*|\$\$?[0-9@*]?|%[A-Z_]+%|%\(\w*\)s|%[sdvqr]|"
    r"\{\{?[^{}]*\}\}?|<[A-Za-z][A-Za-z _\-]*>?|[*.x…•#]{3,}|X{3,}|--?[a-z][a-z\-]*|\[secret\]|\*+|…"
)
_VARIABLE = r"\$\{[^{}]{0,200}\}|\$\([^()]{0,200}\)|\$[A-Z_]+|\{\{? ?[A-Za-z_][A-Za-z_.()\[\]]{0,200} ?\}?\}"
_INTERPOLATION = re.compile(rf"(?:(?:{_VARIABLE})[ :/\-]?)+|<[A-Za-z][A-Za-z _\-]*>|\*+|%s|…|\.\.\.|\[secret\]")
_VARIABLE_PART = re.compile(_VARIABLE)
_CHAIN = re.compile(r"[&*$@!]?[A-Za-z_]\w*(?:(?:\?\.|\.|->|::)[A-Za-z_$]\w*)*")
_CAMEL_CHAIN = re.compile(r"[A-Z]?[a-z]*(?:[\W_][a-z]*|[A-Z][a-z]+)*")
_GENERIC = re.compile(r"[A-Z][A-Za-z]*[<\[]")
_ROOTS = word_set(
    """
    self this os sys process config cfg conf settings options opts args params req request res response ctx context
    event env environ app user body data props state form session client server module exports cls super credentials
    secrets creds auth account import_meta meta
    """
)
# What people choose themselves may be a plain word; a key or a token never is.
_GUESSABLE = re.compile(r"(?i)pass|pwd|pw$|secret|phrase")
_VARIABLES = word_set(
    """
    api key keys access token tokens auth password passwd pwd pw secret secrets credential credentials creds db user
    client the new old my private refresh session bearer hash str string type stream config provider manager hasher
    options params data info builder source store response request error value field cookie cookies jwt pin otp
    authorization header headers aws app admin encoded plain raw input env var
    """
)
_KEY_VARIABLE = re.compile(r"[a-z_]+_(?:key|keys|token|vars?)|[A-Z]+(?:_[A-Z]+)+")
_PATH = re.compile(
    r"(?:~|\.{1,2})/[\w./~@+\- ]*|/[a-z]{2}[a-z0-9._\-]*(?:/[\w.~@+\- ]*)+|[A-Za-z]:\\[\w.\\\- ]*|"
    r"[\w./\-]+\.(?:pem|key|json|ya?ml|crt|txt|env)"
)
_OPAQUE = re.compile(r"[A-Za-z0-9_\-+/=.~%]+")
_PLAIN_HASH = re.compile(r"[0-9a-f]+|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_SYMBOLS_AWAY = dict.fromkeys(map(ord, "!@#$^&*?"), None)
_DIGIT = re.compile(r"[0-9]")
_ALNUM = re.compile(r"[^\W_]")
_LETTER = re.compile(r"[A-Za-z]")
_MIXED_SEGMENT = re.compile(r"(?=[^/]*[a-z])(?=[^/]*[A-Z])(?=[^/]*[0-9])[^/.]{8,}")


def refers(value: str) -> bool:
    """Whether a value is a word of a language or of prose, a variable, or a mask: no secret in itself."""
    return value.lower().rstrip(".:!?") in _STOP or _REFERENCE.fullmatch(value) is not None


def _in_env_refers(value: str) -> bool:
    """The same in an environment file, where "password" and "changeme" are passwords."""
    return value.lower() in _NOTHING or _REFERENCE.fullmatch(value) is not None


def interpolates(value: str) -> bool:
    """Whether a quoted value is a variable in the syntax of a template, or a mask."""
    return _INTERPOLATION.fullmatch(value) is not None


def is_path(value: str) -> bool:
    """A file path without a segment that looks like a key."""
    return _PATH.fullmatch(value) is not None and not any(_MIXED_SEGMENT.match(part) for part in value.split("/"))


def _is_code(value: str, follower: str, place: Place) -> bool:
    """Whether an unquoted value is an expression: a call, a member, a variable."""
    if _GENERIC.match(value):
        return True
    if not _CHAIN.fullmatch(value):
        return False
    if follower in ("(", "["):
        return True
    if place == "env":
        return False
    first, *others = (part for part in re.split(r"\W+", value) if part)
    if others and first in _ROOTS:
        return True
    if _DIGIT.search(value) or not _CAMEL_CHAIN.fullmatch(value):
        return False
    if others and len(first) <= 3 and value.islower():
        return True
    return _VARIABLES.issuperset(words_of(others[-1] if others else value))


def _is_variable(name: str, value: str, follower: str, place: Place) -> bool:
    """Whether an unquoted plain word behind the name of a key or token is the name of a variable, or prose."""
    if place == "env" or not _CHAIN.fullmatch(value) or _DIGIT.search(value):
        return False
    if place == "flag":
        return value.isupper()  # `--token TOKEN` explains the flag
    guessable = _GUESSABLE.search(name) is not None
    if place == "field":
        return not guessable or "_" in value or "." in value
    if guessable:
        return False
    return value == name or _KEY_VARIABLE.fullmatch(value) is not None or (value.islower() and follower == " ")


def looks_random(value: str) -> bool:
    """Letters and digits mixed, six digits, symbols inside letters, or a long run in both cases."""
    bare = value.translate(_SYMBOLS_AWAY)
    if len(value) < 6 or not _OPAQUE.fullmatch(bare):
        return False
    letters, digits = _LETTER.search(value), _DIGIT.search(value)
    if digits and (letters or value.isdigit()):
        return True
    if letters and bare != value:
        return True
    return len(value) >= 20 and value.lower() != value != value.upper()


_NOT_HEX = re.compile(r"[^0-9a-fA-F]")


def is_dense(value: str) -> bool:
    """A run of at least 16 characters that is more like a key than like an identifier; hex digits count."""
    if len(value) < 16 or not looks_random(value) or is_path(value):
        return False
    mixed_case = value.lower() != value != value.upper()
    if "/" in value:
        return mixed_case and len(value) >= 32
    return mixed_case or _NOT_HEX.search(value) is None or sum(map(str.isdigit, value)) >= 4


def is_opaque(value: str, least: int) -> bool:
    """At least `least` characters of letters and digits that are no hash, UUID or path."""
    return (
        len(value) >= least
        and _OPAQUE.fullmatch(value) is not None
        and _PLAIN_HASH.fullmatch(value) is None
        and _DIGIT.search(value) is not None
        and _LETTER.search(value) is not None
        and not is_path(value)
    )


def _is_working_directory(name: str, value: str) -> bool:
    """`PWD` is a password in some files and a folder in every environment."""
    return name.lower() == "pwd" and re.match(r"[/~]|[A-Za-z]:\\", value) is not None


def field_is_secret(kind: Strength, name: str, value: object) -> bool:
    """Whether the value of a structured field is masked whole: always under a sure or likely name."""
    if isinstance(value, str):
        if not value or value.lower() in _NOTHING or _is_working_directory(name, value):
            return False
        return kind in ("sure", "likely") or (kind == "maybe" and _is_mixed_key(value))
    silent = value is None or isinstance(value, bool) or value in ([], {})
    return kind in ("sure", "likely") and not silent


def quoted_is_secret(kind: Strength, name: str, value: str) -> bool:
    """The same for a quoted value behind an unquoted name: code, configuration, a command line."""
    if not value or refers(value) or _is_template(value) or _is_working_directory(name, value):
        return False
    lowered = name.lower()
    if is_path(value) and not _GUESSABLE.search(name):
        return False
    if kind == "sure":
        return len(value) > 3 or value.isalnum()
    if kind == "likely":
        if "cookie" in lowered and "=" in value:
            return True
        return looks_random(value) or (
            len(value) >= 6 and not lowered.endswith("auth") and not re.search(r"[\s%{]", value)
        )
    return _is_mixed_key(value)


def _is_mixed_key(value: str) -> bool:
    return is_opaque(value, 20) and value.lower() != value


def _is_template(value: str) -> bool:
    """A string in which variables stand and next to nothing else."""
    rest = _VARIABLE_PART.sub("", value)
    return rest != value and sum(map(str.isalnum, rest)) < 4


def bare_is_secret(kind: Strength, name: str, value: str, follower: str, place: Place) -> bool:
    """The same for an unquoted value. `follower` is the character after it, or nothing."""
    if len(value) > _LONGEST_CODE:
        return True
    if not _ALNUM.search(value) and len(value) < 8:
        return False
    if _in_env_refers(value) if place == "env" else refers(value):
        return False
    if _is_code(value, follower, place) or _is_variable(name, value, follower, place):
        return False
    if (is_path(value) and not _GUESSABLE.search(name)) or _is_working_directory(name, value):
        return False
    if kind == "sure" or (kind == "likely" and place != "text"):
        return len(value) > 3 or not value.isalpha()
    if kind == "likely":
        return looks_random(value)
    return is_opaque(value, 8 if place == "env" else 20)
