"""The small project the demo session works on: an importer of shop orders with one real bug and one rule it ignores.

`build(folder)` writes the sources, 6 shops' exports, their golden totals, a log of a failed night and a git history.
Everything is arithmetic, so two builds are equal byte for byte.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path
from typing import NamedTuple

from demo_sources import CHANGELOG, MONEY, READER, README, REMARKS, REPORT, RULES, TEST_GOLDEN, TEST_READER, TOTALS


class Shop(NamedTuple):
    """A shop: its currency, how it writes decimals, and its usual prices in hundredths."""

    name: str
    currency: str
    mark: str
    prices: tuple[int, ...]


SHOPS = (
    Shop("acorn-books", "GBP", ".", (1299, 899, 2450, 1575, 649)),
    Shop("blue-kettle", "EUR", ",", (3990, 1250, 780, 10999, 2495)),
    Shop("copper-lane", "USD", ".", (4500, 12900, 8750, 1999, 650)),
    Shop("harbor-lights", "EUR", ",", (125000, 48900, 219950, 9900, 1340000)),
    Shop("moss-and-stone", "SEK", ",", (24950, 9950, 139950, 45050, 7900)),
    Shop("quiet-garden", "CHF", ".", (5490, 2275, 8800, 1650, 31500)),
)
RATES = {"EUR": "1", "GBP": "1.1684", "USD": "0.9207", "SEK": "0.0887", "CHF": "1.0412"}
ITEMS = ("lamp shade", "brass hook", "linen throw", "field guide", "garden twine", "storage crate", "wall clock")
ROWS = 130
CENT = Decimal("0.01")
REFUSED = "harbor-lights: refused, code L-4471: day totals differ from the shop's statement by more than 90 %"


def written(hundredths: int, mark: str) -> str:
    """An amount as a shop writes it: thousands grouped, cents left away when there are none."""
    whole, cents = divmod(hundredths, 100)
    group = "," if mark == "." else "."
    return f"{whole:,}".replace(",", group) + (f"{mark}{cents:02d}" if cents else "")


def order_lines(shop: Shop) -> Iterator[tuple[str, str, str, str, int, int]]:
    """Order, day, sku, item, quantity and price in hundredths, row by row."""
    seed = sum(map(ord, shop.name))
    for number in range(ROWS):
        mixed = (number * 7919 + seed * 104729) % 100003
        price = shop.prices[mixed % len(shop.prices)]
        item = ITEMS[(mixed // 7) % len(ITEMS)]
        order = f"{shop.name[:2].upper()}-{20000 + number // 2 * 3 + seed}"
        sku = f"{item[:2].upper()}{mixed % 9000 + 1000}"
        yield order, f"d{1 + number * 26 // ROWS:02d}", sku, item, 1 + mixed % 4, price


def export_of(shop: Shop) -> str:
    """The shop's export as text."""
    rows = [
        f"{order};{day};{sku};{item};{quantity};{written(price, shop.mark)};{shop.currency}"
        for order, day, sku, item, quantity, price in order_lines(shop)
    ]
    return "\n".join(["order_id;day;sku;item;qty;unit_price;currency", *rows]) + "\n"


def golden_of(shop: Shop) -> dict[str, object]:
    """The totals that are right for the shop's export."""
    days: dict[str, Decimal] = {}
    for _, day, _, _, quantity, price in order_lines(shop):
        value = (Decimal(price) / 100 * quantity * Decimal(RATES[shop.currency])).quantize(CENT, ROUND_HALF_EVEN)
        days[day] = days.get(day, Decimal()) + value
    total = f"{sum(days.values(), Decimal()):.2f}"
    return {"shop": shop.name, "currency": "EUR", "total": total, "days": {day: f"{days[day]:.2f}" for day in days}}


def night_log() -> str:
    """The log of the night in which the import of one shop was refused by the ledger."""
    lines, tick = [], 0

    def say(level: str, part: str, text: str) -> None:
        nonlocal tick
        tick += 37 + len(text) % 41
        clock = f"02:{tick // 60000 % 60:02d}:{tick // 1000 % 60:02d}.{tick % 1000:03d}"
        lines.append(f"{clock} {level:<7} {part:<10} {text}")

    for shop in SHOPS:
        say("INFO", "fetch", f"{shop.name}: export found, {len(export_of(shop)):,} bytes, {ROWS} rows")
        guessed = "." if shop.mark == "." or shop.name == "harbor-lights" else ","
        sample = written(next(iter(order_lines(shop)))[5], shop.mark)
        say("INFO", "reader", f"decimal mark {guessed!r} guessed for {shop.name} (sample {sample!r})")
        for order, day, sku, _, quantity, price in list(order_lines(shop))[::3]:
            raw = written(price, shop.mark)
            say("DEBUG", "reader", f"{shop.name} {order} {day} sku={sku} qty={quantity} raw={raw!r}")
        say("INFO", "ledger", f"{shop.name}: 26 day totals sent")
        if shop.name == "harbor-lights":
            say("ERROR", "ledger", REFUSED)
            say("WARNING", "retry", "harbor-lights: attempt 2 of 2 in 30 s")
            say("ERROR", "ledger", REFUSED)
            say("ERROR", "night", "harbor-lights: given up, the other shops go on")
    say("INFO", "night", f"done: {len(SHOPS) - 1} of {len(SHOPS)} shops imported")
    return "\n".join(lines) + "\n"


def rules_text() -> str:
    """docs/accounting-rules.md."""
    parts = ["# Accounting rules for orders-import", "", "Revision 7. Section numbers are stable; mails cite them.", ""]
    for number, (title, rule) in enumerate(RULES.items(), 1):
        parts += [f"## {number}. {title}", "", rule, ""]
        parts += [f"{number}.{i} {remark}" for i, remark in enumerate(REMARKS, 1)] + [""]
    return "\n".join(parts)


def older_reader() -> str:
    """reader.py before decimal marks were guessed."""
    start, end = READER.index("def guess_mark"), READER.index("def to_line")
    kept = READER[:start] + READER[end:]
    for line in (
        "    prices = [",
        "    mark = guess",
        "    log.info(",
        "log = logging",
        "import logging",
        "from collections",
    ):
        at = kept.index(line)
        kept = kept[:at] + kept[kept.index("\n", at) + 1 :]
    return kept.replace("def read_export(path: Path)", "def read_export(path: Path, mark: str)")


def files() -> dict[str, str]:
    """Path → text of the project as the session finds it."""
    shops = {
        shop.name: {"currency": shop.currency, "decimal_mark": shop.mark, "delimiter": ";", "contact": "shop desk"}
        for shop in SHOPS
    }
    made = {
        "README.md": README,
        "CHANGELOG.md": CHANGELOG,
        "pyproject.toml": '[project]\nname = "orders-import"\nversion = "0.4.0"\n\n[tool.pytest.ini_options]\n'
        'addopts = "-p no:cacheprovider"\npythonpath = ["."]\n',
        ".gitignore": "__pycache__/\n",
        "orders_import/__init__.py": '"""Nightly import of shop orders."""\n',
        "orders_import/money.py": MONEY,
        "orders_import/reader.py": READER,
        "orders_import/totals.py": TOTALS,
        "orders_import/report.py": REPORT,
        "tests/test_golden.py": TEST_GOLDEN,
        "tests/test_reader.py": TEST_READER,
        "docs/accounting-rules.md": rules_text(),
        "data/rates.json": json.dumps(RATES, indent=2) + "\n",
        "data/shops.json": json.dumps(shops, indent=2) + "\n",
        "logs/night.log": night_log(),
    }
    for shop in SHOPS:
        made[f"data/exports/{shop.name}.csv"] = export_of(shop)
        made[f"data/golden/{shop.name}.json"] = json.dumps(golden_of(shop), indent=2) + "\n"
    return made


def history() -> Iterator[tuple[str, Mapping[str, str]]]:
    """Commit message and the files it adds or changes, oldest first; the last state is `files()`."""
    made = files()

    def some(*prefixes: str) -> dict[str, str]:
        return {path: text for path, text in made.items() if path.startswith(prefixes)}

    older = {"orders_import/reader.py": older_reader()}
    yield "Project skeleton", some("README", "pyproject", ".gitignore", "orders_import/__init__")
    yield "Read exports through header aliases", older
    yield "Parse and round amounts", some("orders_import/money")
    yield "Totals by day and over all", some("orders_import/totals")
    yield "Print the nightly report", some("orders_import/report", "data/rates", "data/shops")
    yield "Accounting rules, revision 7", some("docs/")
    yield "Exports and signed-off totals of six shops", some("data/exports", "data/golden")
    yield "Tests against the signed-off totals", some("tests/")
    yield "Guess the decimal mark from the prices, so that a new shop needs no entry", some("orders_import/reader")
    yield "Release 0.4.0", some("CHANGELOG")
    yield "Keep the log of the failed night", some("logs/")


def build(folder: Path) -> None:
    """Write the project into the empty `folder`, with its git history."""
    fixed = {"GIT_AUTHOR_DATE": "@1700000000 +0000", "GIT_COMMITTER_DATE": "@1700000000 +0000"}
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    who = ["-c", "user.name=dev", "-c", "user.email=dev"]

    def git(*arguments: str) -> None:
        subprocess.run(["git", *who, *arguments], cwd=folder, env={**os.environ, **fixed, **quiet}, check=True)

    git("init", "-q", "-b", "main")
    for message, changed in history():
        for path, text in changed.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
        git("add", "-A")
        git("commit", "-q", "-m", message)
