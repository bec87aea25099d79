"""Every kind of secret in every place is masked, whole or cut; what a judge needs stays; and the gate fails closed."""

from __future__ import annotations

import base64
import itertools
import json
import random
import string
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_jev.errors import JevError
from hermes_jev.redact import (
    JSON,
    RedactionError,
    Redactor,
    chain,
    redact,
    redact_arguments,
    redact_excerpt,
    redact_value,
    spans,
)

MASK = "[secret]"
PIECE = 6

# --- a corpus of fake secrets; keys are put together here so that no line of this file looks like one ---

_rng = random.Random(20261101)
_ALNUM = string.ascii_letters + string.digits
_HEX = "0123456789abcdef"
_URL64 = _ALNUM + "_-"
_BASE64 = _ALNUM + "+/"


def some(count: int, alphabet: str = _ALNUM) -> str:
    return "".join(_rng.choice(alphabet) for _ in range(count))


def encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def pem(label: str, lines: int) -> str:
    body = "\n".join(some(64, _BASE64) for _ in range(lines))
    return f"-----BEGIN {label}-----\n{body}\n{some(22, _BASE64)}==\n-----END {label}-----"


JWT = ".".join((encoded('{"alg":"HS256","typ":"JWT"}'), encoded('{"sub":"1234567890","name":"A B"}'), some(43, _URL64)))
CARDS = ("4111111111111111", "5500 0055 5555 5559", "3782 822463 10005", "6011-1111-1111-1117", "4222222222222")
BY_SHAPE: dict[str, str] = {
    "openai": "sk-" + some(48),
    "openai project": "sk-" + "proj-" + some(74, _URL64),
    "anthropic": "sk-" + "ant-" + "api03-" + some(90, _URL64),
    "router": "sk-" + "or-v1-" + some(64, _HEX),
    "github": "ghp" + "_" + some(36),
    "github oauth": "gho" + "_" + some(36),
    "github server": "ghs" + "_" + some(36),
    "github fine-grained": "github" + "_pat_" + some(22) + "_" + some(59),
    "gitlab": "glpat" + "-" + some(20, _URL64),
    "slack bot": "xox" + "b-" + some(12, string.digits) + "-" + some(24),
    "slack user": "xox" + "p-" + some(12, string.digits) + "-" + some(24),
    "slack hook": "services/T"
    + some(8, string.ascii_uppercase)
    + "/B"
    + some(8, string.ascii_uppercase)
    + "/"
    + some(24),
    "aws id": "AKIA" + some(16, string.ascii_uppercase + "234567"),
    "aws session id": "ASIA" + some(15, string.ascii_uppercase) + "7",
    "google": "AIza" + some(35, _URL64),
    "google oauth": "ya29" + "." + some(60, _URL64),
    "hugging face": "hf" + "_" + some(34),
    "npm": "npm" + "_" + some(36),
    "pypi": "pypi" + "-AgEIcHlwaS5vcmc" + some(80, _URL64),
    "sendgrid": "SG" + "." + some(22, _URL64) + "." + some(43, _URL64),
    "stripe": "sk" + "_live_" + some(24),
    "stripe restricted": "rk" + "_live_" + some(24),
    "stripe hook": "whsec" + "_" + some(32),
    "system one": "apikey" + "_" + some(101),
    "digitalocean": "dop" + "_v1_" + some(64, _HEX),
    "shopify": "shpat" + "_" + some(32, _HEX),
    "groq": "gsk" + "_" + some(52),
    "vault": "hvs" + "." + some(90, _URL64),
    "telegram": some(9, "123456789") + ":AA" + some(33, _URL64),
    "jwt": JWT,
    "bcrypt": "$2b$12$" + some(53, _ALNUM + "./"),
    **{f"card {number}": number for number in CARDS},
}
PEMS = {
    "rsa": pem("RSA PRIVATE KEY", 24),
    "pkcs8": pem("PRIVATE KEY", 26),
    "openssh": pem("OPENSSH PRIVATE KEY", 48),
    "ec": pem("EC PRIVATE KEY", 3),
    "encrypted": pem("ENCRYPTED PRIVATE KEY", 28),
}
SHAPE_PLACES: dict[str, Callable[[str], str]] = {
    "alone": lambda s: s,
    "prose": lambda s: f"I used {s} yesterday, it worked.",
    "end of sentence": lambda s: f"The value was {s}.",
    "code span": lambda s: f"run `{s}` now",
    "brackets": lambda s: f"f({s})",
    "link": lambda s: f"[here]({s})",
    "lines": lambda s: f"first\n{s}\nlast",
    "crlf": lambda s: f"first\r\n{s}\r\nlast",
    "chinese": lambda s: f"这是{s}。好",
    "colour": lambda s: f"\x1b[32m{s}\x1b[0m",
    "html": lambda s: f"<td>{s}</td>",
    "json": lambda s: json.dumps({"a": [{"note": s}]}),
    "json in json": lambda s: json.dumps({"a": json.dumps({"note": f"x\n{s}\n"})}),
    "json in json in json": lambda s: json.dumps({"a": json.dumps({"b": json.dumps({"note": f"é\t{s}"})})}),
    "dotenv": lambda s: f"A=1\nSOME_SETTING={s}\nB=2\n",
    "yaml": lambda s: f"a:\n  setting: {s}\n  b: 2\n",
    "code": lambda s: f'value = call("{s}", 3)',
    "elided": lambda s: f"starts with {s}…",
}
WORDS = (
    "hunter2-Xq7",
    "FAKE-abc123-NOT-REAL-0001",
    "swordfish",
    "correct-horse-battery",
    "S3cr3t!Pass#9",
    some(32, _HEX),
)
NAMES = (
    "password passwd DB_PASSWORD dbPassword db-password DATABASE_PASSWORD pgpassword client_secret client-secret "
    "clientSecret secret SECRET_KEY api_key apiKey API-KEY OPENAI_API_KEY X-Api-Key access_key private_key "
    "access_token accessToken refresh_token auth_token GITHUB_TOKEN session_key passphrase credentials"
).split()
LIKELY_NAMES = ("token", "auth", "cookie", "cookies", "otp", "pin", "jwt")
FIELD_PLACES: dict[str, Callable[[str, str], str]] = {
    "json": lambda n, v: json.dumps({"user": "bob", "a": {"b": [{n: v}]}, "z": 1}),
    "pretty json": lambda n, v: json.dumps({n: v, "user": "bob"}, indent=2),
    "json in json": lambda n, v: json.dumps({"body": json.dumps({n: v, "user": "bob"})}),
    "json in json in json": lambda n, v: json.dumps({"body": json.dumps({"x": json.dumps({n: v, "user": "bob"})})}),
    "python dict": lambda n, v: repr({n: v, "user": "bob"}),
    "html attribute": lambda n, v: f"{{&quot;{n}&quot;:&quot;{v}&quot;,&quot;user&quot;:1}}",
    "name and value": lambda n, v: json.dumps([{"name": n, "value": v}]),
}
TEXT_PLACES: dict[str, Callable[[str, str], str]] = {
    "dotenv": lambda n, v: f"A=1\n{n.upper().replace('-', '_')}={v}\nB=2\n",
    "export": lambda n, v: f"export {n.upper().replace('-', '_')}={v}\n",
    "quoted export": lambda n, v: f'export {n.upper().replace("-", "_")}="{v}"; run\n',
    "yaml": lambda n, v: f"db:\n  {n}: {v}\n  user: bob\n",
    "quoted yaml": lambda n, v: f"db:\n  {n}: '{v}'\n  user: bob\n",
    "yaml block": lambda n, v: f"db:\n  {n}: |\n    {v}\n    {v}\n  user: bob\n",
    "ini": lambda n, v: f"[db]\n{n} = {v}\nuser = bob\n",
    "toml": lambda n, v: f'[db]\n{n} = "{v}"\nuser = "bob"\n',
    "code": lambda n, v: f'connect(user="bob", {n.replace("-", "_")}="{v}", port=1)',
    "annotated code": lambda n, v: f'{n.replace("-", "_")}: str = "{v}"\n',
    "subscript": lambda n, v: f'os.environ["{n}"] = "{v}"\n',
    "javascript": lambda n, v: f'const c = {{ {n.replace("-", "_")}: "{v}", user: "bob" }};',
    "ruby": lambda n, v: f"'{n}' => '{v}',",
    "flag": lambda n, v: f"run --user bob --{n.lower().replace('_', '-')} {v} --fast",
    "flag with =": lambda n, v: f"run --{n.lower().replace('_', '-')}={v} --fast",
    "argv": lambda n, v: json.dumps(["run", f"--{n.lower().replace('_', '-')}", v, "--fast"]),
    "header": lambda n, v: f"GET / HTTP/1.1\r\n{n}: {v}\r\nHost: h\r\n\r\n",
    "curl header": lambda n, v: f'curl -s -H "{n}: {v}" https://h.example/',
    "query": lambda n, v: f"https://h.example/p?a=1&{n}={v}&b=2",
    "form": lambda n, v: f"user=bob&{n}={v}",
    "connection string": lambda n, v: f"Server=h;User Id=sa;{n}={v};Encrypt=True",
    "xml": lambda n, v: f"<c><{n}>{v}</{n}></c>",
    "xml attribute": lambda n, v: f'<add key="{n}" value="{v}" />',
    "manifest": lambda n, v: f"env:\n- name: {n}\n  value: {v}\n",
    "compose default": lambda n, v: f"X: ${{{n.upper().replace('-', '_')}:-{v}}}\n",
    "markdown": lambda n, v: f"**{n}:** {v}\n",
}
PLACES = {**FIELD_PLACES, **TEXT_PLACES}


def pieces(secret: str) -> set[str]:
    return {secret[at : at + PIECE] for at in range(max(1, len(secret) - PIECE + 1))}


def leaked(secret: str, out: str, around: str) -> set[str]:
    """The pieces of a secret that are in the output, and do not come from what stood around it."""
    return {piece for piece in pieces(secret) if piece in out and piece not in around and piece not in MASK}


# --- every kind in every place ---


@pytest.mark.parametrize("place", SHAPE_PLACES)
def test_a_key_is_masked_by_its_shape_wherever_it_stands(place: str) -> None:
    put = SHAPE_PLACES[place]
    for kind, secret in BY_SHAPE.items():
        text = put(f"https://hooks.slack.com/{secret}" if kind == "slack hook" else secret)
        for out in (redact(text), redact_arguments(text)):
            assert not leaked(secret, out, put("")), (kind, text, out)
            assert MASK in out, (kind, text, out)


@pytest.mark.parametrize("place", SHAPE_PLACES)
def test_a_private_key_is_masked_whole(place: str) -> None:
    put = SHAPE_PLACES[place]
    for secret in PEMS.values():
        for text in (put(secret), put(secret.replace("\n", "\r\n"))):
            for out in (redact(text), redact_arguments(text)):
                assert not leaked(secret, out, put("") + "-----")
                assert "PRIVATE KEY" not in out


@pytest.mark.parametrize("place", PLACES)
def test_a_value_is_masked_behind_its_name(place: str) -> None:
    put = PLACES[place]
    for name in NAMES:
        for value in WORDS:
            text = put(name, value)
            for out in (redact(text), redact_arguments(text), redact(json.dumps({"output": text}))):
                assert not leaked(value, out, put(name, "")), (text, out)
                assert MASK in out, (text, out)


@pytest.mark.parametrize("place", FIELD_PLACES)
def test_a_field_is_masked_whatever_it_holds(place: str) -> None:
    for name in LIKELY_NAMES:
        for value in (*WORDS, "sid=FAKE-0005-cookie", "two words here", "a"):
            out = redact(FIELD_PLACES[place](name, value))
            assert out == redact(FIELD_PLACES[place](name, MASK))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Authorization: Bearer abc123def", f"Authorization: Bearer {MASK}"),
        ("authorization: token abc123def\r\nHost: h", f"authorization: token {MASK}\r\nHost: h"),
        ("Proxy-Authorization: Basic dXNlcjpwYXNz", f"Proxy-Authorization: Basic {MASK}"),
        ('Authorization: Digest username="bob", nonce="dc98", response="66fae4"', f"Authorization: Digest {MASK}"),
        ("curl -H 'Authorization: Bearer abc123def' https://h", f"curl -H 'Authorization: Bearer {MASK}' https://h"),
        ('headers["Authorization"] = "Bearer abc123def"', f'headers["Authorization"] = "{MASK}"'),
        ("Use Bearer abcDEF123456 for it", f"Use Bearer {MASK} for it"),
        ('Cookie: sid=31d4; theme="dark one"; x=1\nnext', f"Cookie: {MASK}\nnext"),
        ("Set-Cookie: sid=31d4; Path=/; Expires=Wed, 09 Jun 2027 10:18:14 GMT; HttpOnly", f"Set-Cookie: {MASK}"),
        ("curl -u bob:hunter2 https://h", f"curl -u bob:{MASK} https://h"),
        ("mysql -u root -phunter2 db", f"mysql -u root -p{MASK} db"),
        ("sshpass -p hunter2 ssh h", f"sshpass -p {MASK} ssh h"),
        ("https://bob:hunter2@h.example/p", f"https://{MASK}@h.example/p"),
        ("https://bob:hun@ter2@h.example/p", f"https://{MASK}@h.example/p"),
        ("postgres://bob:hun/ter2@h:5432/db?x=1", f"postgres://{MASK}@h:5432/db?x=1"),
        ("mongodb+srv://bob:hunter2@h/db", f"mongodb+srv://{MASK}@h/db"),
        ("redis://:hunter2@h:6379/0", f"redis://{MASK}@h:6379/0"),
        (f"https://{BY_SHAPE['github']}@h.example/r.git", f"https://{MASK}@h.example/r.git"),
        ("AccountName=n;AccountKey=abc+/dEf12==;EndpointSuffix=s", f"AccountName=n;AccountKey={MASK};EndpointSuffix=s"),
        ("Server=h;Pwd=Sup3r;Secret!;Encrypt=True", f"Server=h;Pwd={MASK};Encrypt=True"),
        ("machine h login bob password hunter2x", f"machine h login bob password {MASK}"),
        ("the password is hunter2.", f"the password is {MASK}."),
        ("API key: abcd1234efgh", f"API key: {MASK}"),
        ("passphrase: correct horse battery staple\nnext", f"passphrase: {MASK}\nnext"),
        ('password = """\nhunter2\nmore\n"""\n', f'password = """{MASK}"""\n'),
        ('SECRET="first line\nsecond line"\nA=1', f'SECRET="{MASK}"\nA=1'),
        ("user[password]=hunter2&x=1", f"user[password]={MASK}&x=1"),
        ("user[secret]=hunter2&x=1", f"user[secret]={MASK}&x=1"),
        ("a=1%26password%3Dhunter2", f"a=1%26password%3D{MASK}"),
        ("CREATE USER bob WITH PASSWORD 'hunter2';", f"CREATE USER bob WITH PASSWORD '{MASK}';"),
        ('"credentials": {"user": "bob", "x": ["y"]}, "z": 1', f'"credentials": {MASK}, "z": 1'),
        ('passwords = ["aa1", "bb2"]', f"passwords = {MASK}"),
        ('{"pin": 1234, "max_tokens": 9}', f'{{"pin": {MASK}, "max_tokens": 9}}'),
        ("密码：hunter2，好", f"密码：{MASK}，好"),
        ("token 0123456789abcdef0123 is old", f"token {MASK} is old"),
        ("https://h/b?sv=1&sig=aB3%2Fabcdefghij1234567890&se=2", f"https://h/b?sv=1&sig={MASK}&se=2"),
    ],
)
def test_the_name_stays_and_the_value_goes(text: str, expected: str) -> None:
    assert redact(text) == expected
    assert redact(expected) == expected


def test_pem_without_one_of_its_ends() -> None:
    key = PEMS["rsa"]
    begun, ended = key.rsplit("\n", 4)[0], key.split("\n", 3)[3]
    assert redact(f"before\n{begun}") == f"before\n{MASK}"
    assert redact(f"before\n{begun}\nall of the rest") == f"before\n{MASK}"
    assert redact(f"{ended}\nafter") == f"{MASK}\nafter"
    assert redact(f"some words here.\n{ended}\nafter") == f"some words here.\n{MASK}\nafter"
    assert redact(ended[7:] + "\nafter") == f"{MASK}\nafter"
    numbered = "\n".join(f"{number:6}\t{line}" for number, line in enumerate(ended.split("\n"), 3))
    assert not leaked(ended, redact(numbered), "")
    escaped = json.dumps({"k": ended})
    assert not leaked(ended, redact(escaped), "")


@pytest.mark.parametrize(
    "text",
    [
        'if "-----BEGIN RSA PRIVATE KEY-----" in text:\n    return load(text)\n',
        "looks for `-----BEGIN PRIVATE KEY-----` markers in the file",
        "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nhello\n",
    ],
)
def test_a_mere_mention_of_a_key_begins_nothing(text: str) -> None:
    assert redact(text) == text


# --- what a judge needs stays ---

STAYS = [
    "commit 4a5b6c7d8e9f0a1b2c3d4e5f6a7b8c9d0e1f2a3b (HEAD -> main)",
    "index 83db48f..bf2a9d1 100644",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08  dist/a.whl",
    "d41d8cd98f00b204e9800998ecf8427e  empty.txt",
    "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
    "id 550e8400-e29b-41d4-a716-446655440000 done",
    "/usr/lib/python3.11/site-packages/pkg/module.py:12:3: error",
    r"C:\Users\bob\project\app\main.ts",
    "src/ingest/Parser2.tsx configs/run.yaml ~/.config/tool/settings.json",
    "took 1700000000000 ns, 1234567890123456, 3.14159265358979, 18446744073709551615",
    "2026-03-01T12:00:00.123Z INFO worker-3 handled request id=0a1b2c3d status=200 took=17ms",
    "max_tokens: 4096, token_count=55, tokens: 12, prompt_tokens=3, total_tokens: 15, max_tokens_to_sample=1",
    '{"usage": {"prompt_tokens": 10, "completion_tokens": 3}, "token_type": "word", "author": "Bob", "key": "left"}',
    '{"public_key": "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQ", "authenticated": true, "password_policy": "strict"}',
    "author: Bob Smith, authority=x, authors = ['A B'], keyboard: us, monkey=1, keyword: x",
    "def connect(user: str, password: str, token: Optional[str] = None) -> Session:",
    "self.password = password\ntoken = get_token()\napi_key=os.environ['API_KEY']\nsecret = config.secret",
    "const token = await fetchToken(user); const { password } = req.body; return { token, apiKey };",
    "if (token.type === 'Punctuator' && token.value === '(') tokens.push(token)",
    "interface A { password: string; token?: string; secret: Buffer }",
    "fn f(token: &str, key: Vec<u8>) -> Option<Token> { token.kind }",
    "SyntaxError: Unexpected token < in JSON at position 0",
    "invalid token: expected identifier, found keyword",
    "the password is wrong; the token is expired; your secret is safe with me",
    "Forgot password? Reset password: see the docs. Enter your password:",
    'password = input("Enter password: ")\nprint("Token: " + name)',
    "Authorization: Bearer $TOKEN\nAuthorization: Bearer ${TOKEN}\nAuthorization: Bearer <token>",
    'headers = {"Authorization": f"Bearer {token}"}',
    "API_KEY=$API_KEY TOKEN=$(cat token.txt) PASSWORD=${PASSWORD} SECRET=%SECRET% password={{ password }}",
    "password: '********'\napi_key=<your api key>\ntoken: ...",
    "PWD=/home/bob/project\nOLDPWD=/tmp",
    "GOOGLE_APPLICATION_CREDENTIALS=/etc/keys/service.json",
    "primary_key=True, foreign_key='users.id', cache_key: user_12345, sort_key = created_at",
    "git clone ssh://git@github.com/a/b.git && cd b && git@github.com:a/b.git",
    "http://localhost:3000/@vite/client https://unpkg.com:443/react@18 https://h/@scope/pkg@1.2.3",
    "docker://alpine:3.18@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    'secret/my-app created\nSecret "my-app" deleted\nkubectl get secret my-app',
    "task-1234567890abcdefgh disk-usage risk-2024 .sk-loading-container-wrapper hf_hub_download npm_config_registry",
    "--token TOKEN   the token\n--password-file PATH\n--no-password",
    "GPIO pin 17, pin: 3, pinned: true, otp_enabled: true, pass: 12 fail: 3",
    '{"type": "object", "properties": {"password": {"type": "string", "description": "the password"}}}',
    "session_id=20260101_120000_ab12cd call_id=call_0123456789abcdef run r-abcdefghij",
    "docker run -u 1000:1000 -p 8080:80 image",
    "e2e5 4000 1234 5678 9010 and 4111111111111112 are no cards",
    "data:text/plain,hello the quick brown fox",
    "tokenizer = Tokenizer.from_pretrained(model); eos_token: </s>; pad_token='<pad>'",
    "\ud800 lone \udfff surrogates \x00 and İstanbul stay",
    "",
]


@pytest.mark.parametrize("text", STAYS)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text) == text
    assert spans(text) == []


# --- JSON values ---


def test_values_are_masked_by_field_name_at_any_depth() -> None:
    value: JSON = {
        "url": "https://h/",
        "n": 1.5,
        "é": [{"env": {"dbPassword": "x", "DB-Host": "h"}, "client-secret": {"a": [1, 2]}}],
        "headers": [["X-Api-Key", "abc"], ["Accept", "text/html"]],
        "vars": [{"name": "DB_PASSWORD", "value": "x"}, {"name": "HOME", "value": "/root"}],
        "argv": ["curl", "-u", "bob:hunter2", "--token", "abc", "-v", "docker", "-u", "1000:1000"],
        "pin": 0,
        "otp": 123456,
        "card": 4111111111111111,
        "token": None,
        "auth": False,
        "secret": "",
        "max_tokens": 5,
        "note": "password=hunter2 and more",
        "author": "Bob",
    }
    assert redact_value(value) == {
        "url": "https://h/",
        "n": 1.5,
        "é": [{"env": {"dbPassword": MASK, "DB-Host": "h"}, "client-secret": MASK}],
        "headers": [["X-Api-Key", MASK], ["Accept", "text/html"]],
        "vars": [{"name": "DB_PASSWORD", "value": MASK}, {"name": "HOME", "value": "/root"}],
        "argv": ["curl", "-u", MASK, "--token", MASK, "-v", "docker", "-u", "1000:1000"],
        "pin": MASK,
        "otp": MASK,
        "card": MASK,
        "token": None,
        "auth": False,
        "secret": "",
        "max_tokens": 5,
        "note": f"password={MASK} and more",
        "author": "Bob",
    }
    assert json.dumps(redact_value(value)).startswith('{"url": "https://h/", "n": 1.5, "\\u00e9": ')


def test_the_input_is_not_changed_and_keys_are_redacted_too() -> None:
    key = BY_SHAPE["github"]
    value: JSON = {key: 1, key.lower() + "x": 2, BY_SHAPE["gitlab"]: 3, "a": {"password": "hunter2"}}
    before = json.dumps(value)
    out = redact_value(value)
    assert json.dumps(value) == before
    assert isinstance(out, dict)
    assert list(out.values()) == [1, 2, 3, {"password": MASK}]
    assert not leaked(key, json.dumps(out), key.lower())


def test_any_depth_is_any_depth() -> None:
    value: JSON = {"password": "hunter2"}
    for _ in range(20_000):
        value = [{"a": value}]
    out = redact_value(value)
    for _ in range(20_000):
        assert isinstance(out, list)
        assert isinstance(out[0], dict)
        out = out[0]["a"]
    assert out == {"password": MASK}


def test_what_is_no_json_cannot_be_redacted() -> None:
    odd: Any = {"a": [b"password=hunter2"]}
    with pytest.raises(RedactionError) as caught:
        redact_value(odd)
    assert "hunter2" not in str(caught.value)


def test_arguments_come_back_as_compact_json() -> None:
    arguments = '{"z": 1, "a": {"api_key": "x"},\n "é": "\\u00fc", "list": [1, 2.5, null, true]}'
    assert redact_arguments(arguments) == f'{{"z":1,"a":{{"api_key":"{MASK}"}},"é":"ü","list":[1,2.5,null,true]}}'


def test_arguments_that_are_no_json_are_text() -> None:
    assert redact_arguments('{"password": "hunter2", "x": ') == f'{{"password": "{MASK}", "x": '
    assert redact_arguments('{"password": "hunt') == f'{{"password": "{MASK}'
    assert redact_arguments("--token abc123") == f"--token {MASK}"
    assert redact_arguments("") == ""
    deep = "[" * 100_000 + '{"password": "hunter2"}' + "]" * 100_000
    assert "hunter2" not in redact_arguments(deep)


# --- cut texts ---


def documents() -> Iterator[tuple[str, list[str], set[str]]]:
    """Long texts with secrets in them, those secrets, and the pieces of them that are nowhere else in the text."""
    rng = random.Random(7)
    filler = "".join(
        f"2026-03-{day:02} INFO worker-{day % 7} handled id={rng.getrandbits(32):08x} path=/api/v1/orders/{day} ok\n"
        for day in range(1, 160)
    )
    named = [(put, NAMES[at % len(NAMES)], WORDS[at % len(WORDS)]) for at, put in enumerate(TEXT_PLACES.values())]
    fields = [(put, NAMES[at], WORDS[at % len(WORDS)]) for at, put in enumerate(FIELD_PLACES.values())]
    texts = [(put(name, value), value) for put, name, value in (*named, *fields)]
    texts += [(put(secret), secret) for put, secret in zip(SHAPE_PLACES.values(), BY_SHAPE.values(), strict=False)]
    texts += [(f"{secret}\n", secret) for secret in PEMS.values()]
    texts += [(json.dumps({"private_key": secret}), json.dumps(secret)[1:-1]) for secret in PEMS.values()]
    for at in range(0, len(texts), 4):
        chosen = texts[at : at + 4]
        text = filler + f"\n{filler[:900]}".join(text for text, _ in chosen) + "\n" + filler
        whole = redact(text)
        yield text, [secret for _, secret in chosen], set().union(*(leaked(s, s, whole) for _, s in chosen))


DOCUMENTS = list(documents())


@settings(derandomize=True, deadline=None, max_examples=120, database=None)
@given(st.data())
def test_no_piece_of_a_secret_in_any_excerpt(data: st.DataObject) -> None:
    text, secrets, hidden = DOCUMENTS[data.draw(st.integers(0, len(DOCUMENTS) - 1))]
    secret = data.draw(st.sampled_from(secrets))
    at = text.index(secret)
    edge = data.draw(st.integers(at - 40, at + len(secret) + 40))
    start = data.draw(st.sampled_from([edge, edge - 300, edge - 3_000, 0]))
    end = data.draw(st.sampled_from([edge, edge + 7, edge + 300, edge + 3_000, len(text)]))
    out = redact_excerpt(text, start, end, data.draw(st.sampled_from([8192, 2048])))
    assert not any(out[at : at + PIECE] in hidden for at in range(len(out) - PIECE + 1))


@pytest.mark.parametrize("number", range(len(DOCUMENTS)))
def test_an_excerpt_is_a_piece_of_the_redacted_whole(number: int) -> None:
    text, *_ = DOCUMENTS[number]
    whole = redact(text)
    masked = spans(text)
    free = [
        (0, masked[0][0]),
        *((a[1], b[0]) for a, b in itertools.pairwise(masked)),
        (masked[-1][1], len(text)),
    ]
    rng = random.Random(number)
    for _ in range(4):
        (a, b), (c, d) = sorted(rng.choice(free) for _ in range(2))
        start, end = sorted((rng.randint(a, b), rng.randint(c, d)))
        assert redact_excerpt(text, start, end) in whole
    assert redact_excerpt(text, 0, len(text)) == whole
    assert redact_excerpt(text, -5, len(text) + 5) == whole


def test_a_cut_through_a_secret_leaves_its_mask() -> None:
    text = "a" * 50 + " password=hunter2-hunter2 " + "b" * 50
    at = text.index("hunter2")
    assert redact_excerpt(text, at + 3, at + 6) == MASK
    assert redact_excerpt(text, at + 3, len(text)) == f"{MASK} " + "b" * 50
    assert redact_excerpt(text, 40, at + 2) == "a" * 10 + f" password={MASK}"
    assert redact_excerpt(text, 10, 10) == redact_excerpt(text, 12, 10) == redact_excerpt(text, 900, 950) == ""


def test_a_key_that_began_long_before_the_excerpt() -> None:
    key = pem("PRIVATE KEY", 300)
    text = "x\n" * 50_000 + key + "\nafter\n" + "y\n" * 50_000
    at = text.index("-----END")
    assert redact_excerpt(text, at - 100, at - 50, 1024) == MASK
    assert redact_excerpt(text, at - 100, at + len("-----END PRIVATE KEY-----\nafter"), 1024) == f"{MASK}\nafter"
    cut = text[:at]
    assert redact_excerpt(cut, len(cut) - 100, len(cut), 1024) == MASK
    closed = text.index("y\ny\ny\n") + 5_000
    assert redact_excerpt(text, closed, closed + 4, 1024) == text[closed : closed + 4]


def test_a_long_unbroken_value_is_masked_to_its_end() -> None:
    text = "x " * 9_000 + "api_key=" + some(6_000) + " " + "y " * 9_000
    at = text.index("api_key=") + 5_000
    assert redact_excerpt(text, at, at + 20, 2048) == MASK


# A part of a card number or of a hook's address has no shape of its own.
@pytest.mark.parametrize("kind", [kind for kind in BY_SHAPE if not kind.startswith(("card", "slack hook"))])
def test_a_text_that_was_cut_inside_a_key_shows_no_long_piece(kind: str) -> None:
    secret = BY_SHAPE[kind]
    for length in range(24, len(secret)):
        for text in (f"key: {secret[:length]}", f"see {secret[:length]}..."):
            out = redact(text)
            assert not leaked(secret[12:length], out, "key: see ..."), (text, out)


# --- properties ---

TOKENS = [
    *"=:\"'\\\n ,;&|<>(){}[]-_/#$@.é",
    *(
        "password",
        "token",
        "api_key",
        "KEY",
        "secret",
        "auth",
        "pin",
        "Authorization",
        "Cookie",
        "credentials",
        "passphrase",
    ),
    *(
        "Bearer ",
        "value",
        "is ",
        "--",
        "</",
        "\\n",
        '\\"',
        "%3D",
        "://",
        "'''",
        "export ",
        "hunter2",
        "x1Y2z3",
        "1234",
        "abc",
    ),
    *(
        "-----BEGIN RSA PRIVATE KEY-----",
        "-----END RSA PRIVATE KEY-----",
        "private_key: |\n  ",
        "curl -u a:",
        MASK,
        "postgres",
    ),
    *(
        "4111111111111111",
        " 4111 1111 1111 1111 ",
        "\ud800",
        "İ",
        "\x00",
        "\r\n",
        "&quot;",
        BY_SHAPE["github"],
        BY_SHAPE["jwt"],
    ),
]
texts = st.lists(st.sampled_from(TOKENS) | st.text(max_size=5), max_size=40).map("".join)


@settings(derandomize=True, deadline=None, max_examples=500, database=None)
@given(texts)
def test_a_second_time_changes_nothing(text: str) -> None:
    once = redact(text)
    assert redact(once) == once
    assert redact(text) == once


@settings(derandomize=True, deadline=None, max_examples=250, database=None)
@given(texts)
def test_everything_around_a_secret_stays_byte_for_byte(text: str) -> None:
    masked = spans(text)
    assert masked == sorted(masked)
    assert all(a < b <= c < d for (a, b), (c, d) in itertools.pairwise(masked))
    at, rebuilt = 0, ""
    for start, end in masked:
        rebuilt += text[at:start] + MASK
        at = end
    assert redact(text) == rebuilt + text[at:]


@settings(derandomize=True, deadline=None, max_examples=200, database=None)
@given(
    st.sampled_from(sorted(BY_SHAPE)),
    st.text("abcdefghi \n.", max_size=60),
    st.text("abcdefghi \n,", max_size=60),
)
def test_surroundings_of_a_key(kind: str, before: str, after: str) -> None:
    key = f"hooks.slack.com/{BY_SHAPE[kind]}" if kind == "slack hook" else BY_SHAPE[kind]
    kept = "hooks.slack.com/" if kind == "slack hook" else ""
    assert redact(f"{before} {key} {after}") == f"{before} {kept}{MASK} {after}"


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES) | texts, inner, max_size=4),
    max_leaves=12,
)


@settings(derandomize=True, deadline=None, max_examples=100, database=None)
@given(JSON_VALUES)
def test_values_keep_their_shape(value: JSON) -> None:
    def shape(node: JSON, copy: JSON) -> None:
        if copy == MASK:
            return
        assert type(node) is type(copy)
        if isinstance(node, dict) and isinstance(copy, dict):
            assert len(node) == len(copy)
            for one, other in zip(node.values(), copy.values(), strict=True):
                shape(one, other)
        elif isinstance(node, list) and isinstance(copy, list):
            assert len(node) == len(copy)
            for one, other in zip(node, copy, strict=True):
                shape(one, other)

    once = redact_value(value)
    shape(value, once)
    assert redact_value(once) == once
    arguments = json.dumps(value)
    assert redact_arguments(redact_arguments(arguments)) == redact_arguments(arguments)


# --- hostile input ---

SIZE = 200_000
HOSTILE = [
    *("a", "=", " ", "1", "-", "+", "\\", "\n", '"', "é", "\ud800"),
    *("-----BEGIN ", "-----BEGIN A KEY-----\n", '-----BEGIN A KEY-----"', "-----END A KEY-----"),
    *('"password":"', 'password="\\', 'password=\\"', "password=,a", "password is ", "token=", "token: |\n  "),
    *('"auth":{', '"credentials": {"a":1,', "<token>", "passphrase= ", "&quot;token&quot;:&quot;", "key=a1B2"),
    *("login a password ", "Authorization: Digest a=b,", "a=b; ", "sk-a", "eyJa.", "0:", "4111 ", "postgres://a:"),
    *("curl -u a ", "password:'''"),
]


@pytest.mark.parametrize("unit", HOSTILE, ids=ascii)
def test_hostile_input_of_200_kb_is_done(unit: str) -> None:
    text = unit * (SIZE // len(unit))
    masked = spans(text)
    assert masked == sorted(masked)
    assert all(0 <= start < end <= len(text) for start, end in masked)


@pytest.mark.parametrize("unit", ["$A_", "_", "${", "{a", "a.", "aB", "\\", "a=b;", "<a"])
@pytest.mark.parametrize("name", ['password="', "api_key: ", "Authorization: Digest "])
def test_a_hostile_value_is_done(name: str, unit: str) -> None:
    for count in (40, SIZE // 10):
        text = f"{name}{unit * count}!A1"
        out = redact(text)
        assert out.startswith(name.rstrip())
        assert redact(out) == out


def calls(text: str) -> int:
    """How many Python functions run while a text is redacted."""
    count = 0

    def profiler(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profiler)
    try:
        redact(text)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(
    "unit", ["token=", '"password":"', '"auth":{', "-----BEGIN A KEY-----\n", "password='x\n", "a b c\n"]
)
def test_twice_the_text_is_at_most_twice_the_work(unit: str) -> None:
    small, large = (calls(unit * count) for count in (1_000, 2_000))
    assert large <= 2.2 * small + 1_000


# --- the chain ---


def test_a_chain_applies_its_redactors_in_order() -> None:
    seen: list[str] = []

    def hosts(text: str) -> str:
        seen.append(text)
        return text.replace("bob", "[name]")

    safe: Redactor = chain(redact, hosts)
    assert safe("bob password=hunter2") == f"[name] password={MASK}"
    assert seen == [f"bob password={MASK}"]
    assert chain()("as it was") == "as it was"


def test_a_redactor_that_fails_sends_nothing() -> None:
    def breaks(text: str) -> str:
        raise ValueError(f"cannot read {text}")

    def forgets(text: str) -> Any:
        return None

    for redactor in (breaks, forgets):
        with pytest.raises(RedactionError) as caught:
            chain(redact, redactor)("hunter2 in person")
        assert isinstance(caught.value, JevError)
        error = caught.value
        assert "hunter2" not in f"{error!s} {error!r} {error.__cause__!r} {error.__context__!r}"
