"""The texts of the demo project: sources, tests, documents. See demo_project.py."""

from __future__ import annotations

READER = '''\
"""Read a shop's export: one order line per row."""

from __future__ import annotations

import csv
import logging
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from .money import parse_amount

log = logging.getLogger("orders_import.reader")

# Shops rename their columns now and then; the first alias that is present wins.
ALIASES = {
    "order": ("order_id", "order", "order_no", "reference"),
    "day": ("day", "order_day", "booked_on"),
    "sku": ("sku", "article", "item_no"),
    "item": ("item", "title", "description"),
    "quantity": ("qty", "quantity", "count"),
    "unit_price": ("unit_price", "price", "price_each"),
    "currency": ("currency", "curr"),
}


class ReadError(ValueError):
    """A row or header that cannot be used; the message names file and line."""


@dataclass(frozen=True)
class Line:
    order: str
    day: str
    sku: str
    item: str
    quantity: int
    unit_price: Decimal
    currency: str


def read_export(path: Path) -> list[Line]:
    """All order lines of one export, in file order."""
    with path.open(encoding="utf-8", newline="") as handle:
        rows = list(csv.reader(handle, delimiter=";"))
    if not rows:
        raise ReadError(f"{path.name}: empty file")
    columns = find_columns(rows[0], path.name)
    prices = [row[columns["unit_price"]] for row in rows[1:]]
    mark = guess_mark(prices)
    log.info("decimal mark %r guessed for %s (sample %r)", mark, path.stem, prices[0] if prices else "")
    return [to_line(row, columns, mark, path.name, number) for number, row in enumerate(rows[1:], 2)]


def find_columns(header: list[str], name: str) -> dict[str, int]:
    """Column index per field, through the aliases."""
    present = {title.strip().lower(): index for index, title in enumerate(header)}
    columns = {}
    for field, aliases in ALIASES.items():
        found = [present[alias] for alias in aliases if alias in present]
        if not found:
            raise ReadError(f"{name}: no column for {field}; header is {header}")
        columns[field] = found[0]
    return columns


def guess_mark(prices: list[str]) -> str:
    """The separator seen most often in front of the last digits."""
    seen = Counter()
    for price in prices:
        for character in reversed(price):
            if character in ".,":
                seen[character] += 1
                break
    return seen.most_common(1)[0][0] if seen else "."


def to_line(row: list[str], columns: dict[str, int], mark: str, name: str, number: int) -> Line:
    """One row as a Line; a bad number is a ReadError with its place."""
    try:
        return Line(
            order=row[columns["order"]],
            day=row[columns["day"]],
            sku=row[columns["sku"]],
            item=row[columns["item"]],
            quantity=int(row[columns["quantity"]]),
            unit_price=parse_amount(row[columns["unit_price"]], mark),
            currency=row[columns["currency"]],
        )
    except (IndexError, ValueError, ArithmeticError) as error:
        raise ReadError(f"{name}:{number}: {error}") from error
'''

MONEY = '''\
"""Amounts: parse what shops write, convert to EUR, round."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

CENT = Decimal("0.01")


def parse_amount(text: str, mark: str) -> Decimal:
    """The amount in `text`, whose decimals follow `mark` ("." or ","); the other one groups thousands."""
    if mark not in (".", ","):
        raise ValueError(f"unknown decimal mark {mark!r}")
    group = "," if mark == "." else "."
    cleaned = text.strip().replace(" ", "").replace("\\u00a0", "").replace(group, "")
    return Decimal(cleaned.replace(mark, "."))


def round_amount(amount: Decimal) -> Decimal:
    """The amount in whole cents."""
    return amount.quantize(CENT, rounding=ROUND_HALF_UP)


def convert(amount: Decimal, currency: str, rates: dict[str, Decimal]) -> Decimal:
    """The amount in EUR, rounded to cents; an unknown currency is a KeyError."""
    return round_amount(amount * rates[currency])
'''

TOTALS = '''\
"""Totals per shop: by day and over all."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal

from .money import convert
from .reader import Line


def line_total(line: Line, rates: dict[str, Decimal]) -> Decimal:
    """What one line is worth in EUR."""
    return convert(line.unit_price * line.quantity, line.currency, rates)


def by_day(lines: list[Line], rates: dict[str, Decimal]) -> dict[str, Decimal]:
    """Day -> EUR total, days sorted."""
    totals: dict[str, Decimal] = defaultdict(Decimal)
    for line in lines:
        totals[line.day] += line_total(line, rates)
    return dict(sorted(totals.items()))


def overall(lines: list[Line], rates: dict[str, Decimal]) -> Decimal:
    """EUR total of all lines."""
    return sum((line_total(line, rates) for line in lines), Decimal())
'''

REPORT = '''\
"""The nightly report: `python -m orders_import.report [SHOP ...]`."""

from __future__ import annotations

import json
import logging
import sys
from decimal import Decimal
from pathlib import Path

from .reader import read_export
from .totals import by_day, overall

DATA = Path(__file__).resolve().parent.parent / "data"


def load_rates(folder: Path = DATA) -> dict[str, Decimal]:
    """Currency -> EUR rate."""
    return {name: Decimal(rate) for name, rate in json.loads((folder / "rates.json").read_text()).items()}


def load_shops(folder: Path = DATA) -> dict[str, dict[str, str]]:
    """Shop -> what is known of it."""
    return json.loads((folder / "shops.json").read_text())


def shop_report(shop: str, folder: Path = DATA) -> str:
    """The report of one shop, one row per day."""
    rates = load_rates(folder)
    lines = read_export(folder / "exports" / f"{shop}.csv")
    rows = [f"== {shop}: {len(lines)} lines, EUR {overall(lines, rates):,.2f}"]
    for day, total in by_day(lines, rates).items():
        count = sum(line.day == day for line in lines)
        rows.append(f"   {day}   {count:3d} lines   EUR {total:>14,.2f}")
    return "\\n".join(rows)


def main(arguments: list[str]) -> int:
    """Print the reports of the named shops, or of all."""
    logging.basicConfig(level=logging.WARNING)
    for shop in arguments or sorted(load_shops()):
        print(shop_report(shop))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
'''

TEST_GOLDEN = '''\
"""Totals of all exports against data/golden, which accounting signed off."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

from orders_import.reader import read_export
from orders_import.report import load_rates
from orders_import.totals import by_day, overall

DATA = Path(__file__).resolve().parent.parent / "data"
GOLDEN = {path.stem: json.loads(path.read_text()) for path in sorted((DATA / "golden").glob("*.json"))}
DAYS = [(shop, day) for shop, golden in GOLDEN.items() for day in golden["days"]]


@pytest.fixture(scope="session")
def lines():
    return {shop: read_export(DATA / "exports" / f"{shop}.csv") for shop in GOLDEN}


@pytest.mark.parametrize("shop", GOLDEN)
def test_all_days(shop, lines):
    got = {day: f"{total:.2f}" for day, total in by_day(lines[shop], load_rates()).items()}
    assert got == GOLDEN[shop]["days"]


@pytest.mark.parametrize(("shop", "day"), DAYS)
def test_one_day(shop, day, lines):
    assert by_day(lines[shop], load_rates())[day] == Decimal(GOLDEN[shop]["days"][day])


@pytest.mark.parametrize("shop", GOLDEN)
def test_overall(shop, lines):
    assert overall(lines[shop], load_rates()) == Decimal(GOLDEN[shop]["total"])
'''

TEST_READER = """\
import pytest

from orders_import.money import parse_amount
from orders_import.reader import ReadError, find_columns, read_export

HEADER = "order_id;day;sku;item;qty;unit_price;currency\\n"


@pytest.mark.parametrize(
    ("text", "mark", "amount"),
    [("12.50", ".", "12.50"), ("12,50", ",", "12.50"), ("1.250", ",", "1250"), ("1,250.00", ".", "1250.00")],
)
def test_parse_amount(text, mark, amount):
    assert str(parse_amount(text, mark)) == amount


def test_header_aliases():
    assert find_columns(["Reference", "booked_on", "article", "title", "count", "price", "curr"], "x")["order"] == 0


def test_missing_column_names_the_file():
    with pytest.raises(ReadError, match=r"x\\.csv: no column for currency"):
        find_columns(["order", "day", "sku", "item", "qty", "price"], "x.csv")


def test_bad_quantity_names_the_line(tmp_path):
    path = tmp_path / "shop.csv"
    path.write_text(HEADER + "A1;d01;S;lamp;many;1.00;EUR\\n")
    with pytest.raises(ReadError, match=r"shop\\.csv:2"):
        read_export(path)
"""

README = """\
# orders-import

Reads the nightly exports of our shops, converts every line to EUR and prints a report per shop.

    python -m orders_import.report              all shops
    python -m orders_import.report blue-kettle  one shop
    pytest -q                                   everything, under a second

* `orders_import/reader.py` reads an export (semicolons, header aliases)
* `orders_import/money.py` parses, converts and rounds amounts
* `orders_import/totals.py` sums by day and over all
* `orders_import/report.py` prints
* `data/shops.json` says how each shop writes its numbers
* `data/golden/` are totals that accounting signed off. They change only when accounting says so.
* `docs/accounting-rules.md` is what accounting expects of us
"""

CHANGELOG = """\
# Changelog

## Unreleased

## 0.4.0
- The decimal mark of an export is guessed from its prices; shops need no entry before their first import.
- Header aliases for `booked_on` and `reference`.

## 0.3.0
- Reports print one row per day.
- Exports with a byte order mark are refused with a clear message.

## 0.2.0
- Swedish and Swiss shops: SEK and CHF rates.

## 0.1.0
- First import of GBP, EUR and USD exports.
"""

RULES = {
    "Scope": "These rules hold for all amounts that leave orders-import: reports, exports to the ledger, mails.",
    "Currencies": "The ledger is kept in EUR. Rates come from data/rates.json and hold for the whole night.",
    "Reading amounts": "How a shop writes decimals is agreed with the shop and recorded in data/shops.json. It is never"
    " inferred from the data: 1.250 is one and a quarter in one shop and twelve hundred and fifty in another.",
    "Rounding": "A line (quantity times unit price) is converted first and rounded once, to cents, half to even"
    " (2.345 becomes 2.34, 2.355 becomes 2.36). Totals are sums of rounded lines. No amount is rounded half up:"
    " over a year that moved 212.40 EUR in our favour, and the auditors noticed.",
    "Negative lines": "Returns are lines with a negative quantity. They are converted and rounded like any other line.",
    "Corrections": "A correction names the order it corrects, and is booked on the day it was made.",
    "Days": "A line belongs to the day in its export, whatever the hour the import ran.",
    "Missing data": "A line without a price stops the import of that shop. Nothing is estimated.",
    "Retention": "Exports are kept for ten years, unchanged, under the name they arrived with.",
    "Golden totals": "data/golden holds totals that were signed off. They are evidence: never regenerate them.",
}
REMARKS = (
    "Exceptions need the written consent of accounting and are recorded with their reason and their end.",
    "The rule is checked each quarter on a sample of forty lines, drawn by someone who did not write the code.",
    "Where a shop's contract says otherwise, the contract holds and the difference is shown in the report.",
    "Questions go to the accounting channel; an answer there becomes part of this text with the next revision.",
)
