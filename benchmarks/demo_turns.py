"""What the scripted model says and does in the demo session: for each turn the user's request and the steps."""

from __future__ import annotations

from typing import Any

Step = dict[str, Any]


def call(text: str, name: str, **arguments: str) -> Step:
    """One tool call with what the assistant says before it."""
    return {"text": text, "calls": [{"name": name, "arguments": arguments}]}


def shell(text: str, command: str) -> Step:
    """A terminal call."""
    return call(text, "terminal", command=command.strip("\n"))


def read(text: str, path: str) -> Step:
    """A read of a whole file."""
    return call(text, "read_file", path=path)


def patch(text: str, path: str, old: str, new: str) -> Step:
    """A replacement in a file."""
    return call(text, "patch", mode="replace", path=path, old_string=old, new_string=new)


COMPARE = """
python3 - <<'EOF'
import json
from pathlib import Path
from orders_import.reader import read_export
from orders_import.report import load_rates
from orders_import.totals import by_day

for golden in sorted(Path('data/golden').glob('*.json')):
    want = json.loads(golden.read_text())
    got = by_day(read_export(Path('data/exports') / f'{golden.stem}.csv'), load_rates())
    wrong = [day for day in got if f'{got[day]:.2f}' != want['days'][day]]
    print(golden.stem, 'days wrong:', len(wrong), 'of', len(got))
    for day in wrong:
        print(f"    {day}  got {got[day]:>14.4f}   signed off {want['days'][day]:>14}")
EOF
"""

WORTH = """
python3 - <<'EOF'
from pathlib import Path
from orders_import.reader import read_export
from orders_import.report import load_rates
from orders_import.totals import line_total

rates = load_rates()
for line in read_export(Path('data/exports/harbor-lights.csv')):
    what = f'{line.order:<9} {line.day} {line.sku:<7} {line.item:<14}'
    print(f'{what} {line.quantity} x {line.unit_price:>9} = {line_total(line, rates):>11}')
EOF
"""

GUESS = '''\
def guess_mark(prices: list[str]) -> str:
    """The separator seen most often in front of the last digits."""
    seen = Counter()
    for price in prices:
        for character in reversed(price):
            if character in ".,":
                seen[character] += 1
                break
    return seen.most_common(1)[0][0] if seen else "."
'''

AGREED = '''\
def agreed_mark(path: Path) -> str:
    """The decimal mark that data/shops.json records for the shop of this export; it is never inferred."""
    record = path.parent.parent / "shops.json"
    shops = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
    if path.stem not in shops:
        raise ReadError(f"{path.name}: no decimal mark is agreed with this shop (data/shops.json)")
    return shops[path.stem]["decimal_mark"]
'''

GUESSING = """\
    prices = [row[columns["unit_price"]] for row in rows[1:]]
    mark = guess_mark(prices)
    log.info("decimal mark %r guessed for %s (sample %r)", mark, path.stem, prices[0] if prices else "")
"""

AGREEING = """\
    mark = mark or agreed_mark(path)
    log.info("decimal mark %r for %s", mark, path.stem)
"""

HEAD_BEFORE = '''\
def read_export(path: Path) -> list[Line]:
    """All order lines of one export, in file order."""
'''

HEAD_AFTER = '''\
def read_export(path: Path, mark: str | None = None) -> list[Line]:
    """All order lines of one export, in file order; without `mark` the one agreed with the shop holds."""
'''

READER_TEST_BEFORE = r"""    with pytest.raises(ReadError, match=r"shop\.csv:2"):
        read_export(path)
"""

READER_TEST_AFTER = r"""    with pytest.raises(ReadError, match=r"shop\.csv:2"):
        read_export(path, mark=".")


def test_no_agreed_mark_is_an_error(tmp_path):
    path = tmp_path / "shop.csv"
    path.write_text(HEADER + "A1;d01;S;lamp;1;1.250;EUR\n")
    with pytest.raises(ReadError, match="no decimal mark is agreed"):
        read_export(path)
"""

ROUND_BEFORE = '''\
    """The amount in whole cents."""
    return amount.quantize(CENT, rounding=ROUND_HALF_UP)
'''

ROUND_AFTER = '''\
    """The amount in whole cents, half to even (accounting rules, section 4)."""
    return amount.quantize(CENT, rounding=ROUND_HALF_EVEN)
'''

ROUNDING_TESTS = '''\
"""Accounting rules, section 4: converted first, rounded once, half to even."""

from decimal import Decimal

import pytest

from orders_import.money import convert, round_amount
from orders_import.reader import Line
from orders_import.totals import line_total, overall

RATES = {"EUR": Decimal(1), "USD": Decimal("0.9207")}


@pytest.mark.parametrize(
    ("amount", "rounded"),
    [("2.345", "2.34"), ("2.355", "2.36"), ("2.3451", "2.35"), ("-2.345", "-2.34"), ("0.005", "0.00"), ("7", "7.00")],
)
def test_half_goes_to_even(amount, rounded):
    assert str(round_amount(Decimal(amount))) == rounded


def test_conversion_rounds_once():
    assert convert(Decimal("26.50"), "USD", RATES) == Decimal("24.40")


def test_total_is_the_sum_of_rounded_lines():
    lines = [Line(f"A{n}", "d01", "S", "lamp shade", 1, Decimal("2.345"), "EUR") for n in range(3)]
    assert [line_total(line, RATES) for line in lines] == [Decimal("2.34")] * 3
    assert overall(lines, RATES) == Decimal("7.02")
'''

NEWS = """\
## Unreleased
- The decimal mark of an export is the one agreed with the shop (data/shops.json), no longer guessed.
- An export of a shop without an agreed decimal mark is refused.
- Amounts are rounded half to even, as section 4 of the accounting rules asks.
"""

FIRST = (
    "The nightly import of harbor-lights was refused by the ledger, and `pytest` is red on main. Please find out why"
    " and fix it. Keep the names of the public functions, and never change anything under data/golden: accounting"
    " signed those off."
)

FIRST_ANSWER = """\
harbor-lights was read with the wrong decimal mark. Since 0.4.0 the reader guesses the mark from the prices; \
harbor-lights leaves out cents (`1.250`, `13.400`), so its thousands separator won and the day totals shrank, which \
the ledger refused.

The reader now takes the mark recorded in data/shops.json and refuses an export of a shop without one. \
`read_export(path)` keeps its name and still takes a path; a caller may pass `mark`. data/golden is untouched.

Still red: copper-lane, seven days, each one cent too high. That has nothing to do with the mark and looks like \
rounding. Shall I go on?"""

FIRST_STEPS: list[Step] = [
    shell(
        "I start with the layout, the history and the state of the tree.",
        "git log --oneline && git status --short && git ls-files && wc -c data/exports/*.csv logs/night.log",
    ),
    read("", "README.md"),
    shell("Now the tests as they are.", "pytest -q"),
    shell(
        "Two shops fail, harbor-lights and copper-lane. The log of the night says what the ledger objected to.",
        "cat logs/night.log",
    ),
    shell(
        "harbor-lights is the only shop that was refused. Its lines without the rows, and what the reader decided:",
        "grep -n 'harbor-lights' logs/night.log | grep -v DEBUG; grep -n 'guessed' logs/night.log",
    ),
    read(
        "The reader guessed '.' for harbor-lights from the sample '1.250'. How does it guess?",
        "orders_import/reader.py",
    ),
    shell(
        "It takes the separator that stands last most often, so a price without cents votes for its thousands"
        " separator. The export itself:",
        "cat data/exports/harbor-lights.csv",
    ),
    read("", "data/shops.json"),
    shell(
        "shops.json has the agreed mark, ',' for harbor-lights, and nobody reads it. When did that change?",
        "git log --format='%h %s' -p -- orders_import/reader.py",
    ),
    call(
        "Before the guess, the caller passed the mark. Who calls read_export now?",
        "search_files",
        pattern="read_export",
        path="orders_import",
    ),
    shell("Before I touch anything: how far is each shop off from the signed-off totals?", COMPARE),
    patch(
        "harbor-lights is far off on every day; copper-lane by one cent on seven days, which is another cause. First"
        " the mark: it must come from shops.json.",
        "orders_import/reader.py",
        GUESS,
        AGREED,
    ),
    patch("", "orders_import/reader.py", GUESSING, AGREEING),
    patch("", "orders_import/reader.py", HEAD_BEFORE, HEAD_AFTER),
    patch(
        "",
        "orders_import/reader.py",
        "import csv\nimport logging\nfrom collections import Counter\n",
        "import csv\nimport json\nimport logging\n",
    ),
    shell("Everything again.", "pytest -q --tb=short"),
    read(
        "harbor-lights is right now. One reader test fails: its export lies in an empty folder, so no mark is agreed."
        " That is the behaviour we want; the test should name its mark.",
        "tests/test_reader.py",
    ),
    patch("", "tests/test_reader.py", READER_TEST_BEFORE, READER_TEST_AFTER),
    shell("", "pytest -q tests/test_reader.py; pytest -v tests/test_golden.py -k 'not copper'"),
    read("I re-read the changed reader as a whole.", "orders_import/reader.py"),
    {"text": FIRST_ANSWER},
]

SECOND = (
    "Yes, go on. Accounting says that rounding must follow docs/accounting-rules.md, section 4. Please check whether"
    " we do, and add a test of its own for it."
)

SECOND_ANSWER = """\
We did not follow section 4: `round_amount` rounded half up. It now rounds half to even, in the one place where \
amounts are rounded, after conversion. tests/test_rounding.py holds the examples of the rule, a negative line and the \
sum of rounded lines. All tests pass, copper-lane included, and no golden total changed."""

SECOND_STEPS: list[Step] = [
    read("", "docs/accounting-rules.md"),
    read("Section 4: convert first, round once, half to even. Now what we do.", "orders_import/money.py"),
    shell(
        "round_amount uses ROUND_HALF_UP. Is there any other rounding?",
        r"grep -rn 'ROUND_\|quantize\|round(' --include=*.py . ; cat orders_import/totals.py",
    ),
    call(
        "Only that one place, and it runs once per line after conversion, as the rule wants. I write the test first;"
        " it has to fail.",
        "write_file",
        path="tests/test_rounding.py",
        content=ROUNDING_TESTS,
    ),
    shell("", "pytest -q tests/test_rounding.py"),
    patch(
        "It fails where half should go to even. The fix is one word in two places.",
        "orders_import/money.py",
        "from decimal import ROUND_HALF_UP, Decimal\n",
        "from decimal import ROUND_HALF_EVEN, Decimal\n",
    ),
    patch("", "orders_import/money.py", ROUND_BEFORE, ROUND_AFTER),
    shell("", "pytest -v"),
    shell(
        "All green, copper-lane included. The reports of all shops, as the night would print them:",
        "python3 -m orders_import.report",
    ),
    shell("And the export the ledger refused, line by line, with what each is worth now:", WORTH),
    {"text": SECOND_ANSWER},
]

THIRD = (
    "Good. Add both fixes to the changelog, show me what changed in all, and tell me again which code the ledger gave"
    " for the refusal: I need it for the ticket."
)

THIRD_ANSWER = """\
The changelog has both fixes. Changed: orders_import/reader.py (agreed mark instead of a guess), \
orders_import/money.py (half to even), tests/test_reader.py, tests/test_rounding.py (new), CHANGELOG.md. data/golden \
is unchanged and all tests pass.

The ledger refused harbor-lights with code L-4471: "day totals differ from the shop's statement by more than 90 %"."""

THIRD_STEPS: list[Step] = [
    read("", "CHANGELOG.md"),
    patch("", "CHANGELOG.md", "## Unreleased\n", NEWS),
    shell("", "git add -A -N && git diff --stat && git diff"),
    shell(
        "A last check that the signed-off totals are as they were, and that everything passes.",
        "git diff --quiet HEAD -- data/golden && echo 'data/golden unchanged'; pytest -q",
    ),
    {"text": THIRD_ANSWER},
]

TURNS: list[tuple[str, list[Step]]] = [(FIRST, FIRST_STEPS), (SECOND, SECOND_STEPS), (THIRD, THIRD_STEPS)]
"""Request and steps of each turn; each turn's last step is its answer."""
