"""Fake secrets of every kind, put together at run time so that no line of the repository looks like one.

`KINDS` maps a name to a `Kind`: the text as it stands somewhere, and the part of it that must never be seen.
"""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Iterator
from typing import NamedTuple

PIECE = 6
"""So many characters of a secret in a row are a piece of it; of long secrets every third piece is looked for, so that
eight characters in a row are found anywhere."""

_dice = random.Random(20261130)
_ALNUM = string.ascii_letters + string.digits
_HEX = "0123456789abcdef"
_URL64 = _ALNUM + "_-"
_BASE64 = _ALNUM + "+/"
_UPPER = string.ascii_uppercase


class Kind(NamedTuple):
    """`text` holds `secret`; it may stand anywhere. `secret` leaves out what is public: prefixes, names, markers."""

    text: str
    secret: str


def some(count: int, alphabet: str = _ALNUM) -> str:
    """Characters at random, with a letter in each case and a digit among the first where the alphabet has them."""
    while True:
        made = "".join(_dice.choice(alphabet) for _ in range(count))
        wanted = [kind for kind in (string.ascii_lowercase, _UPPER, string.digits) if set(kind) & set(alphabet)]
        if count < 12 or all(set(made[:12]) & set(kind) for kind in wanted):
            return made


def _b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _keyed(prefix: str, count: int, alphabet: str = _ALNUM, tail: str = "") -> Kind:
    secret = some(count, alphabet)
    return Kind(prefix + secret + tail, secret)


def _pem(label: str, lines: int, newline: str = "\n") -> Kind:
    body = newline.join(some(64, _BASE64) for _ in range(lines))
    return Kind(f"-----BEGIN {label}-----{newline}{body}{newline}-----END {label}-----", body)


def _in(before: str, secret: str, after: str = "") -> Kind:
    return Kind(f"{before}{secret}{after}", secret)


def _jwt() -> Kind:
    head = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').decode().rstrip("=")
    body = base64.urlsafe_b64encode(json.dumps({"sub": some(10)}).encode()).decode().rstrip("=")
    rest = f"{body[4:]}.{some(43, _URL64)}"
    return Kind(f"{head}.{body[:4]}{rest}", rest)


BY_SHAPE: dict[str, Kind] = {
    "openai": _keyed("sk-", 48),
    "openai project": _keyed("sk-" + "proj-", 74, _URL64),
    "anthropic": _keyed("sk-" + "ant-api03-", 90, _URL64),
    "openrouter": _keyed("sk-" + "or-v1-", 64, _HEX),
    "github": _keyed("gh" + "p_", 36),
    "github server": _keyed("gh" + "s_", 36),
    "github fine-grained": _keyed("github" + "_pat_", 82, _ALNUM + "_"),
    "gitlab": _keyed("gl" + "pat-", 20, _URL64),
    "slack bot": _keyed("xox" + "b-" + some(12, string.digits) + "-", 24),
    "slack app": _keyed("xapp" + "-1-A0-", 40),
    "slack hook": _keyed("https://hooks.slack.com/" + "services/T0AAAAAA/B0BBBBBB/", 24),
    "discord hook": _keyed("https://discord.com/api/" + "webhooks/" + some(18, string.digits) + "/", 60, _URL64),
    "discord bot": _keyed("MTk4" + "NjIy", 18, tail="." + "Cl2FMQ." + some(30)),
    "aws id": _keyed("AK" + "IA", 16, _UPPER + "234567"),
    "google": _keyed("AI" + "za", 35, _URL64),
    "google oauth": _keyed("ya" + "29.", 60, _URL64),
    "google secret": _keyed("GOC" + "SPX-", 28, _URL64),
    "hugging face": _keyed("h" + "f_", 34),
    "replicate": _keyed("r" + "8_", 37),
    "groq": _keyed("gs" + "k_", 52),
    "xai": _keyed("xa" + "i-", 80),
    "perplexity": _keyed("ppl" + "x-", 48),
    "nvidia": _keyed("nv" + "api-", 64, _URL64),
    "npm": _keyed("np" + "m_", 36),
    "package index": _keyed("py" + "pi-AgEIcHlwaS5vcmc", 80, _URL64),
    "docker hub": _keyed("dck" + "r_pat_", 27, _URL64),
    "sendgrid": _keyed("S" + "G.", 22, _URL64, "." + some(43, _URL64)),
    "mailgun": _keyed("ke" + "y-", 32, _HEX),
    "stripe": _keyed("sk" + "_live_", 24),
    "stripe restricted": _keyed("rk" + "_live_", 24),
    "stripe hook": _keyed("wh" + "sec_", 32),
    "square": _keyed("sq0" + "csp-", 43, _URL64),
    "shopify": _keyed("shp" + "at_", 32, _HEX),
    "twilio": _keyed("S" + "K", 32, _HEX),
    "telegram": Kind(*(2 * (some(9, "123456789") + ":AA" + some(33, _URL64),))),
    "system one": _keyed("api" + "key_", 101),
    "digitalocean": _keyed("do" + "p_v1_", 64, _HEX),
    "vault": _keyed("hv" + "s.", 90, _URL64),
    "terraform": Kind(*(2 * (some(14) + ".atlas" + "v1." + some(60, _URL64),))),
    "databricks": _keyed("da" + "pi", 32, _HEX),
    "atlassian": _keyed("ATA" + "TT3x", 180, _URL64),
    "sentry": _keyed("sntr" + "yu_", 64, _HEX),
    "grafana": _keyed("gls" + "a_", 32, _ALNUM, "_" + some(8, _HEX)),
    "grafana cloud": _keyed("gl" + "c_eyJ", 80),
    "linear": _keyed("li" + "n_api_", 40),
    "notion": _keyed("nt" + "n_", 46),
    "postman": _keyed("PM" + "AK-", 24, _HEX, "-" + some(34, _HEX)),
    "figma": _keyed("fig" + "d_", 40, _URL64),
    "new relic": _keyed("NR" + "AK-", 27, _UPPER + string.digits),
    "netlify": _keyed("nf" + "p_", 40),
    "fly": _keyed("fm" + "2_", 120, _BASE64),
    "doppler": _keyed("dp.p" + "t.", 43),
    "planetscale": _keyed("pscale_" + "tkn_", 43, _URL64),
    "supabase": _keyed("sb" + "p_", 40, _HEX),
    "airtable": Kind(*(2 * ("pat" + some(14) + "." + some(64, _HEX),))),
    "heroku": _keyed("HR" + "KU-AA", 58, _URL64),
    "mapbox": _keyed("sk" + ".eyJ", 80, tail="." + some(22)),
    "dropbox": _keyed("sl" + ".", 130, _URL64),
    "tailscale": _keyed("ts" + "key-auth-", 30),
    "langsmith": _keyed("lsv2" + "_pt_", 32, _HEX, "_" + some(10, _HEX)),
    "tavily": _keyed("tv" + "ly-", 32),
    "age": _keyed("AGE-SECRET" + "-KEY-1", 58, _UPPER + string.digits),
    "bcrypt": _keyed("$2" + "b$12$", 53, _ALNUM + "./"),
    "shadow": _keyed("$6" + "$rounds=5000$", 16, _ALNUM + "./", "$" + some(86, _ALNUM + "./")),
    "apache hash": _keyed("$apr" + "1$", 8, _ALNUM + "./", "$" + some(22, _ALNUM + "./")),
    "argon": _in("$argon2" + "id$v=19$", "m=65536,t=3,p=4$" + some(22, _BASE64) + "$" + some(43, _BASE64)),
    "jwt": _jwt(),
    "card": Kind(*(2 * ("4111" + "1111" + "1111" + "1111",))),
    "card in groups": Kind(*(2 * ("5500 0055" + " 5555 5559",))),
    "amex": Kind(*(2 * ("3782 822463" + " 10005",))),
}
PEMS: dict[str, Kind] = {
    "rsa key": _pem("RSA PRIVATE" + " KEY", 24),
    "pkcs8 key": _pem("PRIVATE" + " KEY", 26),
    "openssh key": _pem("OPENSSH PRIVATE" + " KEY", 48),
    "ec key": _pem("EC PRIVATE" + " KEY", 3),
    "escaped key": _pem("PRIVATE" + " KEY", 26, "\\n"),
}
_WORD = "hunter2-Tq" + "7xK9w"
BY_NAME: dict[str, Kind] = {
    "env": _in("DB_PASSWORD=", _WORD),
    "env quoted": _in('export API_KEY="', some(32), '"'),
    "env hex": _in("SECRET_KEY_BASE=", some(64, _HEX)),
    "aws secret": _in("aws_secret_access_key = ", some(40, _BASE64)),
    "yaml": _in("    password: ", _WORD),
    "json": _in('{"user": "app", "client_secret": "', some(40), '"}'),
    "json in json": _in('{"body": "{\\"access_token\\": \\"', some(40), '\\"}"}'),
    "code": _in('connect(host, password="', _WORD, '")'),
    "header": _in("Authorization: Bearer ", some(40)),
    "basic": _in("Authorization: Basic ", _b64("app:" + _WORD)),
    "api header": _in("X-Api-Key: ", some(32)),
    "cookie": _in("Cookie: session=", some(40)),
    "set cookie": _in("Set-Cookie: sid=", some(40), "; HttpOnly"),
    "curl": _in("curl -u app:", _WORD, " https://api.example.com"),
    "curl header": _in("curl -H 'Authorization: Bearer ", some(40), "' https://api.example.com"),
    "flag": _in("deploy --token ", some(32)),
    "flag with sign": _in("deploy --password=", _WORD),
    "mysql": _in("mysql -u root -p", _WORD),
    "sshpass": _in("sshpass -p ", _WORD, " ssh host"),
    "url": _in("postgres://app:", _WORD, "@db.internal:5432/prod"),
    "url token": _in("https://", some(40, _HEX) + ":x-oauth-basic", "@example.com/repo.git"),
    "query": _in("GET https://api.example.com/v1?api_key=", some(32), "&limit=10"),
    "signature": _in("https://x.blob.example.net/c?sv=2024&sig=", some(43) + "%3D"),
    "connection string": _in("Server=db;User Id=app;Password=", _WORD, ";Encrypt=true"),
    "account key": _in("DefaultEndpointsProtocol=https;AccountName=a;AccountKey=", some(86, _BASE64) + "=="),
    "npmrc": _in("//registry.example.com/:_authToken=", some(36)),
    "netrc": _in("machine example.com login app password ", _WORD),
    "pgpass": _in("db.internal:5432:prod:app:", _WORD),
    "docker auth": _in('{"auths": {"ghcr.io": {"auth": "', _b64("app:" + _WORD), '"}}}'),
    "kubeconfig": _in("    client-key-data: ", some(120, _BASE64)),
    "kubernetes": _in(
        "apiVersion: v1\ndata:\n  url.txt: ", _b64(f"mysql:{_WORD}"), "\nkind: Secret\nmetadata:\n  name: db\n"
    ),
    "wireguard": _in("[Interface]\nPrivateKey = ", some(43, _BASE64) + "=", "\nAddress = 10.0.0.2/32"),
    "seed phrase": _in("seed phrase: ", "legal winner thank year wave sausage walnut useful legal winner thank yellow"),
    "ethereum": _in("private_key: 0x", some(64, _HEX)),
    "pin": _in('{"otp": "', "839" + "201", '"}'),
    "said": _in("my password is ", _WORD, ", please keep it"),
    "said in chinese": _in("密码是", _WORD),
    "toml": _in('token = "', some(32), '"'),
    "python": _in('os.environ["GITHUB_TOKEN"] = "', some(36), '"'),
    "powershell": _in('$env:CLIENT_SECRET = "', some(36), '"'),
    "xml": _in("<password>", _WORD, "</password>"),
    "ini": _in("[smtp]\nsmtp_pass = ", _WORD),
    "terraform file": _in('  db_password = "', _WORD, '"'),
    "list of headers": _in('[{"name": "Authorization", "value": "Bearer ', some(40), '"}]'),
    "list of arguments": _in('["deploy", "--token", "', some(32), '"]'),
    "putty": _in(
        "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nPrivate-Lines: 1\n",
        some(64, _BASE64),
        "\nPrivate-MAC: 0",
    ),
}
KINDS: dict[str, Kind] = {**BY_SHAPE, **PEMS, **BY_NAME}


def pieces(secret: str) -> Iterator[str]:
    """Every piece of a secret that is long enough to be one; line ends inside a key are no part of it."""
    for line in secret.replace("\\n", "\n").split("\n"):
        for start in range(0, max(1, len(line) - PIECE + 1), 1 if len(secret) < 50 else PIECE // 2):
            yield line[start : start + PIECE]


def leaked(secret: str, seen: str) -> list[str]:
    """The pieces of a secret that stand in a text."""
    return [piece for piece in pieces(secret) if piece in seen]
