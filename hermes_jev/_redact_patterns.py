r"""Secrets known by their own shape: keys by their prefix, PEM, JWT, URL credentials, card numbers.

Every pattern starts with a literal that is looked for first, so ordinary text costs one substring search per row. Tails
are bounded or simple runs, and look-aheads are bounded: the time grows with the text and not with its content.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ._redact_values import interpolates, is_dense, is_opaque, looks_random

Span = tuple[int, int]

# A key may follow anything but a letter or digit, or an escape that ends in one: \n, \u001b, %3D, an ANSI colour.
_EDGES = (
    r"(?:(?<![A-Za-z0-9]{0})|(?<=\\[nrtbf]{0})|(?<=\\u[0-9A-Fa-f]{4}{0})"
    r"|(?<=%[0-9A-Fa-f][0-9A-Fa-f]{0})|(?<=[0-9]m{0}))"
)


def _edged(literal: str, tail: str) -> str:
    """A pattern that begins with its literal and checks the edge to its left afterwards: that is the fast order."""
    return re.escape(literal) + _EDGES.replace("{0}", re.escape(literal)) + tail


def _mixed(tail: str, least: int) -> str:
    """A run of `tail` with an upper-case letter or a digit early on: words joined by `_` or `-` have none."""
    calm = "a-z" if tail == "A-Za-z0-9" else r"a-z_\-+/="
    return rf"(?=[{calm}]{{0,63}}[A-Z0-9])[{tail}]{{{least},}}"


def _dense(tail: str, least: int) -> str:
    """The same with both an upper-case letter and a digit early on, for short tails."""
    return rf"(?=[a-z0-9]{{0,63}}[A-Z])(?=[A-Za-z]{{0,63}}[0-9])[{tail}]{{{least},}}"


_CUT = r"(?=\.\.\.|…|\Z)"  # what a text ends with that was cut off
_RUN = r"A-Za-z0-9_\-"
_SAID = r"[ \t]{0,4}(?:[:：=]|是|为|は)[ \t]{0,4}[\"'`]?(?P<s>[^\s\"'`，。、,;\\]{3,})"
_END_OF_LINE = r"(?:\s|\\{1,8}[rn])+"
_KEYS: tuple[tuple[str, str], ...] = (
    # model providers
    ("sk-", _edged("sk-", rf"(?:(?:proj|ant|or|svcacct|admin|lf)-[{_RUN}]{{3,}}|{_mixed(_RUN, 12)})")),
    # These prefixes are in no word, so a key is found where it is glued to one as well.
    ("sk-", rf"sk-(?:proj|ant|svcacct|admin)-[{_RUN}]{{16,}}"),
    ("gsk_", rf"gsk_{_mixed('A-Za-z0-9', 8)}"),
    ("csk-", rf"csk-{_mixed('A-Za-z0-9', 16)}"),
    ("xai-", rf"xai-{_mixed('A-Za-z0-9', 16)}"),
    ("pplx-", rf"pplx-{_mixed('A-Za-z0-9', 16)}"),
    ("nvapi-", rf"nvapi-{_mixed(_RUN, 16)}"),
    ("hf_", rf"hf_(?:{_mixed('A-Za-z0-9', 20)}|{_dense('A-Za-z0-9', 12)}|{_mixed('A-Za-z0-9', 6)}{_CUT})"),
    ("r8_", _edged("r8_", _mixed("A-Za-z0-9", 20))),
    ("tvly-", rf"tvly-{_mixed(_RUN, 12)}"),
    ("lsv2_", rf"lsv2_(?:pt|sk)_[{_RUN}]{{12,}}"),
    ("apikey_", rf"apikey_(?:{_mixed(_RUN, 12)}|{_dense('A-Za-z0-9', 6)})"),
    # code hosting, packages, deployment
    ("gh", rf"gh[opusr]_{_mixed('A-Za-z0-9', 6)}"),
    ("github_pat_", r"github_pat_\w{3,}"),
    ("gl", rf"gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|imt|ffct)-[{_RUN}]{{6,}}"),
    ("npm_", rf"npm_(?:{_mixed('A-Za-z0-9', 20)}|{_dense('A-Za-z0-9', 10)}|{_mixed('A-Za-z0-9', 6)}{_CUT})"),
    ("pypi-", rf"pypi-(?:AgE[{_RUN}]*|(?=[a-z0-9_\-]{{0,40}}[A-Z])[{_RUN}]{{12,}})"),
    ("rubygems_", r"rubygems_[a-f0-9]{12,}"),
    ("dckr_", rf"dckr_(?:pat|oat)_[{_RUN}]{{6,}}"),
    ("do", rf"do[opr]_v1_[{_RUN}]{{3,}}"),
    ("tskey-", rf"tskey-[a-z]+-[{_RUN}]{{6,}}"),
    ("hvs.", _edged("hvs.", _mixed(_RUN, 6))),
    ("hvb.", _edged("hvb.", _mixed(_RUN, 6))),
    ("dapi", _edged("dapi", r"[a-f0-9]{32}(?:-\d)?")),
    ("ATATT3x", rf"ATATT3x[{_RUN}=]{{6,}}"),
    ("sntry", r"sntry[su]_[A-Za-z0-9_+/=\-]{12,}"),
    ("glsa_", r"glsa_\w{12,}"),
    ("sbp_", r"sbp_[a-f0-9]{16,}"),
    ("glc_", r"glc_eyJ[A-Za-z0-9+/=]{6,}"),
    ("NR", _edged("NR", r"(?:AK|JS|AL|II|IQ|RA|BR)-[A-Za-z0-9]{8,}")),
    ("nfp_", rf"nfp_{_mixed('A-Za-z0-9', 12)}"),
    ("fm", rf"fm[12][a-z]?_{_mixed('A-Za-z0-9+/=_-', 12)}"),
    ("dp.", _edged("dp.", rf"(?:pt|st|ct|sa|scim|audit)\.(?:[A-Za-z0-9_]+\.)?{_mixed('A-Za-z0-9', 12)}")),
    ("pscale_", rf"pscale_(?:tkn|pw|oauth)_[{_RUN}.]{{6,}}"),
    ("HRKU-", rf"HRKU-[{_RUN}]{{8,}}"),
    ("sl.", _edged("sl.", rf"(?:u\.)?(?=[a-z]{{0,63}}[A-Z0-9])[{_RUN}]{{40,}}")),
    (".atlasv1.", rf"[A-Za-z0-9]{{0,20}}\.atlasv1\.[{_RUN}]{{3,}}"),
    ("pat", _edged("pat", r"[A-Za-z0-9]{14}\.[a-f0-9]{6,}")),
    # clouds
    ("AKIA", r"AKIA[A-Z0-9]{8,}"),
    ("ASIA", r"ASIA(?:(?=[A-Z]{0,15}[0-9])[A-Z0-9]{6,}|[A-Z0-9]{16})"),
    ("AIza", rf"AIza[{_RUN}]{{8,}}"),
    ("ya29.", rf"ya29\.[{_RUN}.]{{6,}}"),
    ("1//0", rf"1//0[{_RUN}]{{20,}}"),
    ("GOCSPX-", rf"GOCSPX-[{_RUN}]{{6,}}"),
    # messaging, mail, payment, others
    ("xox", rf"xox[a-z]-[{_RUN}]{{6,}}"),
    ("SK", _edged("SK", r"[a-f0-9]{32}(?![A-Za-z0-9])")),
    ("xapp-", rf"xapp-[{_RUN}]{{6,}}"),
    ("hooks.slack.com/", r"hooks\.slack\.com/(?P<s>(?:services|workflows|triggers)/[\w/\-]{6,})"),
    ("/api/webhooks/", r"/api/webhooks/(?P<s>\d{5,}/[\w\-]{6,})"),
    (
        "SG.",
        _edged("SG.", rf"(?:(?:[{_RUN}]{{16,}}|{_dense(_RUN, 8)})(?:\.[{_RUN}]*)?|[{_RUN}]{{6,}}\.[{_RUN}]{{6,}})"),
    ),
    ("key-", _edged("key-", r"[0-9a-f]{32}(?![0-9a-f])")),
    ("xkeysib-", rf"xkeysib-[{_RUN}]{{12,}}"),
    ("sk_", _edged("sk_", r"(?:live_\w{3,}|test_\w{6,})")),
    ("rk_", _edged("rk_", r"(?:live_\w{3,}|test_\w{6,})")),
    ("whsec_", rf"whsec_{_mixed('A-Za-z0-9+/=_-', 6)}"),
    ("shp", r"shp(?:at|ss|ca|pa|ua)_[A-Za-z0-9]{6,}"),
    ("sq0", rf"sq0(?:atp|csp)-[{_RUN}]{{6,}}"),
    ("lin_api_", r"lin_api_\w{6,}"),
    ("ntn_", rf"ntn_{_mixed('A-Za-z0-9', 16)}"),
    ("secret_", rf"secret_{_mixed('A-Za-z0-9', 32)}"),
    ("PMAK-", rf"PMAK-[{_RUN}]{{12,}}"),
    ("figd_", rf"figd_[{_RUN}]{{12,}}"),
    ("AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[A-Z0-9]{6,}"),
    # three base64 parts, or as many as a cut left; "eyJ" is how `{"` begins in base64
    ("eyJ", rf"eyJ[{_RUN}]{{6,}}(?:\.[{_RUN}]+){{0,4}}"),
    # password hashes
    ("$2", r"\$2[abxy]\$[0-9]{2}\$[./A-Za-z0-9]{6,}"),
    ("$apr1$", r"\$apr1\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{12,}"),
    ("$1$", r"\$1\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{12,}"),
    ("$5$", r"\$5\$(?:rounds=[0-9]+\$)?[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{20,}"),
    ("$6$", r"\$6\$(?:rounds=[0-9]+\$)?[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{20,}"),
    ("$y$", r"\$y\$[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9$]{20,}"),
    ("$argon2", r"\$argon2(?:id|i|d)\$[A-Za-z0-9+/=,$]{20,}"),
    # passwords in other languages
    *((word, word + _SAID) for word in ("密码", "密碼", "口令", "密钥", "パスワード", "비밀번호", "пароль", "Пароль")),
    # passwords on a command line
    ("curl", r"curl\b[^\n|;]{0,400}?\s(?:-u|--user|--proxy-user)[ =]?\\*[\"']?[^\s:\"'\\]{1,80}:(?P<s>[^\s\"'\\]+)"),
    ("sshpass", r"sshpass\s+-p\s*\\*[\"']?(?P<s>[^\s\"'\\]+)"),
    ("mysql", r"mysql(?:dump|admin|import)?\b[^\n|;]{0,400}?\s-p\\*[\"']?(?P<s>[^\s\"'\\]+)"),
    ("redis-cli", r"redis-cli\b[^\n|;]{0,400}?\s-a\s+\\*[\"']?(?P<s>[^\s\"'\\]+)"),
    (" login", r" login\b[^\n|;]{0,400}?\s-p\s*\\*[\"']?(?P<s>[^\s\"'\\]+)"),
    (":5432:", r":5432:[^\s:]{1,80}:[^\s:]{1,80}:(?P<s>[^\s:\"'\\]{4,})"),
    # a PuTTY key's private lines
    ("Private-Lines:", rf"Private-Lines: ?[0-9]+{_END_OF_LINE}(?P<s>(?:[A-Za-z0-9+/=]{{10,}}(?:{_END_OF_LINE}|\Z))+)"),
    ("pass:", r"pass:(?<=[\s=]pass:)(?P<s>[^\s\"'\\]{4,})"),
)
_TABLE = tuple((literal, re.compile(pattern, re.ASCII)) for literal, pattern in _KEYS)


def _by_prefix(text: str) -> Iterator[Span]:
    for literal, pattern in _TABLE:
        if literal not in text:
            continue
        for match in pattern.finditer(text):
            if "s" not in pattern.groupindex:
                yield match.span()
            elif not interpolates(match["s"]) and not match["s"].isdigit():
                yield match.span("s")


_TELEGRAM = re.compile(rf"[0-9]:(?:AA[{_RUN}]{{6,64}}|[{_RUN}]{{30,64}}|[{_RUN}]{{12,}}{_CUT})(?![{_RUN}])")
_DIGITS_BEFORE = re.compile(r"[0-9]{6,16}")


def _telegram(text: str) -> Iterator[Span]:
    """A bot's number, a colon, and about 35 characters in both cases."""
    for match in _TELEGRAM.finditer(text):
        number = _DIGITS_BEFORE.match(text[max(0, match.start() - 15) : match.start() + 1][::-1])
        tail = match.group()[2:]
        if number and tail.lower() != tail:
            yield match.start() + 1 - number.end(), match.end()


# A bot's number in base64, a time stamp, a signature.
_DISCORD = re.compile(rf"[MNO][A-Za-z0-9]{{23,27}}\.[{_RUN}]{{6}}\.[{_RUN}]{{12,}}")


def _discord(text: str) -> Iterator[Span]:
    for match in _DISCORD.finditer(text):
        if match.group().lower() != match.group():
            yield match.span()


# What a tool writes where it left out the middle of an output, and the unbroken run after it: the rest of a key, whose
# beginning is in front of the mark, has no form of its own.
_CUT_OUT = re.compile(
    r"(?i)\[[^\]\n]{0,120}(?:truncated|omitted)[^\]\n]{0,120}\][ .…]{0,5}(?:\s|\\{1,8}[nr]){0,8}"
    r"(?P<s>[^\s\"'\\]{8,4096})"
)


def _after_a_cut(text: str) -> Iterator[Span]:
    if "runcated" not in text and "mitted" not in text and "TRUNCATED" not in text and "OMITTED" not in text:
        return
    for match in _CUT_OUT.finditer(text):
        rest = match["s"]
        if is_dense(rest) or (looks_random(rest) and rest.lower() != rest != rest.upper()):
            yield match.span("s")


_MANIFEST = re.compile(r"""(?:\b|(?<=\\[nrt]))kind[\\"']*:[ \t]*[\\"']*Secret\b""")
_MANIFEST_DATA = re.compile(r"""(?:\b|(?<=\\[nrt]))(?:data|stringData)[\\"']*:(?=[\s\\{])""")
_MANIFEST_ENTRY = re.compile(
    r"""(?:[\s{,"']|\\{1,8}[nr"'])*(?P<name>[\w.\-]+)[\\"']*:[ \t]*[\\"']*(?P<s>[^\s"'\\,{}|>]{3,})[\\"',]*"""
)
_MANIFEST_FRAME = frozenset(("apiVersion", "kind", "metadata", "type", "immutable"))


def _manifests(text: str) -> Iterator[Span]:
    """The values of a Kubernetes secret: base64, so they look like nothing, under names of any kind."""
    if "Secret" not in text or _MANIFEST.search(text) is None:
        return
    for data in _MANIFEST_DATA.finditer(text):
        entry = _MANIFEST_ENTRY.match(text, data.end())
        while entry is not None and entry["name"] not in _MANIFEST_FRAME:
            yield entry.span("s")
            entry = _MANIFEST_ENTRY.match(text, entry.end())


_CARD = re.compile(
    r"[2-6][0-9]{3}(?:(?<![0-9_.][0-9]{4})(?<![0-9]-[0-9]{4})|(?<=\\u[0-9A-Fa-f]{4}[0-9]{4}))"
    r"(?:[0-9]{9,15}|([ -])[0-9]{4}\1[0-9]{4}\1[0-9]{1,7}|([ -])[0-9]{6}\2[0-9]{4,5})(?![0-9A-Za-z_])(?!\.[0-9])"
)
_BRAND = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|(?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}|3[47]\d{13}"
    r"|3(?:0[0-5]|[689]\d)\d{11}|35\d{14}|(?:5[06-8]|6\d)\d{14}"
)
_LETTER = re.compile(r"[A-Za-z]")
_ESCAPE_BEFORE = re.compile(r"(?:\\[nrtbf]|\\u[0-9A-Fa-f]{4}|\[[0-9;]{0,8}m)\Z")


def _passes_luhn(digits: str) -> bool:
    total = 0
    for place, digit in enumerate(map(int, reversed(digits))):
        doubled = digit * 2 if place % 2 else digit
        total += doubled - 9 if doubled > 9 else doubled
    return total % 10 == 0


def _cards(text: str) -> Iterator[Span]:
    """Card numbers of the known brands, whole or in groups, with a valid check digit."""
    for match in _CARD.finditer(text):
        start = match.start()
        if _LETTER.match(text, start - 1) and not _ESCAPE_BEFORE.search(text[max(0, start - 10) : start]):
            continue
        digits = match.group().replace(" ", "").replace("-", "")
        if _BRAND.fullmatch(digits) and _passes_luhn(digits):
            yield match.span()


_USERINFO = re.compile(r"://([^\s/?#\"'<>`\\]{1,512})@(?!sha256:)")
# Database passwords are often put into the URL as they are, slashes and all.
_RAW_USERINFO = re.compile(r"://([^\s:/@\"'<>`\\]{0,128}:(?!\d{1,5}(?:[/?#\s]|\Z))[^\s\"'<>`\\]{1,512})@")
_DATABASE = re.compile(
    r"(?:postgres|postgresql|mysql|mariadb|mongodb|redis|rediss|amqp|amqps|mssql|sqlserver|clickhouse|srv)\Z"
)


def _urls(text: str) -> Iterator[Span]:
    """What stands between `://` and `@`: a name with a password, or one long key."""
    at = text.find("://")
    while at >= 0:
        raw = _DATABASE.search(text[max(0, at - 12) : at].lower()) is not None
        match = (_RAW_USERINFO.match(text, at) if raw else None) or _USERINFO.match(text, at)
        if match:
            _, colon, password = match[1].partition(":")
            if (password and not interpolates(password)) if colon else _is_key(match[1]):
                yield match.span(1)
        at = text.find("://", match.end() if match else at + 3)


def _is_key(userinfo: str) -> bool:
    return is_opaque(userinfo, 16) or (len(userinfo) >= 20 and looks_random(userinfo))


_BEGIN = re.compile(r"-----BEGIN ([A-Z0-9][A-Z0-9 ]{0,40})-----")
_END = re.compile(r"-----END [A-Z0-9][A-Z0-9 ]{0,40}-----")
_PUBLIC_LABEL = re.compile(r"CERTIFICATE|PUBLIC KEY|CRL|PARAMETERS|SIGNATURE|PGP MESSAGE")
_LINE_FOLLOWS = re.compile(r"[ \t]*(?:\r?\n|(?:\\{1,8}r)?\\{1,8}n(?![\"'`\\])|\Z)")
_BASE64_NEAR = re.compile(r"[A-Za-z0-9+/=]{20}")
_NEAR, _FAR = 240, 20_000


def pem_blocks(text: str, lo: int, hi: int) -> Iterator[Span]:
    """The PEM blocks that begin in text[lo:hi], each to its END; a private one without END to the end of the text.

    A marker that stands in code or prose, with nothing like a key behind it, begins no block.
    """
    at = text.find("-----BEGIN ", lo, hi)
    ends = _END.finditer(text, at) if at >= 0 else iter(())
    end = next(ends, None)
    while at >= 0:
        head = _BEGIN.match(text, at)
        after = head.end() if head else at + len("-----BEGIN ")
        while end and end.start() < after:
            end = next(ends, None)
        if head:
            stop = _block_end(text, head, end.end() if end else None)
            if stop:
                yield at, stop
                after = stop
        at = text.find("-----BEGIN ", after, hi)


def _block_end(text: str, head: re.Match[str], end: int | None) -> int | None:
    near = text[head.end() : head.end() + _NEAR]
    public, distance = _PUBLIC_LABEL.search(head[1]), (end or len(text)) - head.end()
    if end and (distance <= _NEAR or (public and distance <= _FAR)):
        return None if "SIGNED" in head[1] else end
    if public or "SIGNED" in head[1]:
        return None
    if _LINE_FOLLOWS.match(text, head.end()) or _BASE64_NEAR.search(near):
        return end or len(text)
    return None


_GAP = re.compile(r"(?:\s|\\{1,8}[nr])+")
_BODY = re.compile(r"[A-Za-z0-9+/=>|\"'`,\\]{16,}")
_LAST_LINE = re.compile(r"[A-Za-z0-9+/=>|\"'`,\\]*")
_LINE_NUMBER = re.compile(r"[0-9]{1,6}[:|]?|[>|+]")


def _body_start(text: str, lo: int, end: int) -> int:
    """Where the base64 lines begin that stand right before an END without BEGIN, not before `lo`."""
    chunk_start = max(lo, end - _FAR)
    chunk = text[chunk_start:end]
    edges = [0, *(edge for gap in _GAP.finditer(chunk) for edge in gap.span()), len(chunk)]
    start, kind = len(chunk), _LAST_LINE
    for left, right in zip(edges[-2::-2], edges[-1::-2], strict=False):
        word = chunk[left:right]
        cut_off = left == 0 and chunk_start == 0
        if not (kind.fullmatch(word) or (cut_off and _LAST_LINE.fullmatch(word))):
            if _LINE_NUMBER.fullmatch(word):
                continue
            break
        start = left
        if word:
            kind = _BODY
    return chunk_start + start


def _pem(text: str) -> Iterator[Span]:
    if "-----BEGIN " not in text and "-----END " not in text:
        return
    blocks = list(pem_blocks(text, 0, len(text)))
    yield from blocks
    floor, ahead = 0, iter([*blocks, (len(text) + 1, len(text) + 1)])
    block = next(ahead)
    for end in _END.finditer(text):
        while end.start() > block[1]:
            floor, block = block[1], next(ahead)
        if end.start() < block[0]:
            yield _body_start(text, floor, end.start()), end.end()
            floor = end.end()


def by_shape(text: str) -> Iterator[Span]:
    """Spans of secrets known by their own shape, in no order, possibly overlapping."""
    yield from _pem(text)
    yield from _by_prefix(text)
    yield from _telegram(text)
    yield from _discord(text)
    yield from _manifests(text)
    yield from _after_a_cut(text)
    yield from _cards(text)
    yield from _urls(text)
