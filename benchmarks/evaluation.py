"""Write the tables of docs/evaluation.md anew, from the public transcripts.

    python benchmarks/evaluation.py              print the tables
    python benchmarks/evaluation.py --write      put them into docs/evaluation.md, and the picture beside it

`--paths` names other transcripts (by default ../shared/evaldata), `--json FILE` keeps everything that was measured.
Between `<!-- eval:NAME: begin -->` and `<!-- eval:NAME: end -->` stands what this script wrote; the words around it are
written by hand. Offline. A few minutes on two cores.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from hermes_jev.evals.options import Options  # noqa: E402 - a script finds its own package first
from hermes_jev.evals.picture import picture  # noqa: E402
from hermes_jev.evals.report import markdown, tables, to_json  # noqa: E402
from hermes_jev.evals.run import Plan, evaluate  # noqa: E402
from hermes_jev.evals.tables import Table  # noqa: E402

DOCUMENT = ROOT / "docs" / "evaluation.md"
PICTURE = ROOT / "docs" / "evaluation.svg"
NOISES = ("oracle", "oracle+0.2", "oracle+0.4", "oracle+0.6", "oracle+0.8", "oracle+1")
FLAGS = {"thresholds": " --thresholds", "passes": " --cycles", "cost": " --cost"}
"""What the command of a table needs beside the transcripts."""


def command_of(table: Table) -> str:
    """The command that prints a table."""
    flags = FLAGS.get(table.name, "")
    judges = f" --judge lexical,zero,{','.join(NOISES)}" if table.name == "equal" else ""
    return f"jev eval ../shared/evaldata{judges}{flags} --markdown"


def block(table: Table) -> str:
    """What stands between the marks of a table."""
    return f"\n{markdown(table)}\n\n`{command_of(table)}`\n"


def filled(document: str, found: list[Table]) -> str:
    """The document with these tables; a mark without a table is an error, and so is the reverse."""
    for table in found:
        begin, end = f"<!-- eval:{table.name}: begin -->\n", f"<!-- eval:{table.name}: end -->"
        if document.count(begin) != 1 or document.count(end) != 1:
            raise SystemExit(f"docs/evaluation.md: one place for the table {table.name} is needed")
        head, _, rest = document.partition(begin)
        document = f"{head}{begin}{block(table)}\n{end}{rest.partition(end)[2]}"
    marks = set(re.findall(r"<!-- eval:([a-z-]+): begin -->", document))
    if missing := marks - {table.name for table in found}:
        raise SystemExit(f"docs/evaluation.md: no tables for {', '.join(sorted(missing))}")
    return document


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--paths", nargs="+", default=[str(ROOT.parent / "shared" / "evaldata")])
    parser.add_argument("--write", action="store_true", help="rewrite docs/evaluation.md and its picture")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    options = Options(judges=("lexical", "zero", *NOISES), thresholds=True)
    plan = Plan(options, cycles=True, cost=True, jobs=arguments.jobs)
    found = evaluate(arguments.paths, plan, lambda name, done: print(f"{done:4} {name}", file=sys.stderr))
    shown = tables(found)
    if arguments.json:
        arguments.json.write_text(json.dumps(to_json(found), ensure_ascii=False) + "\n", encoding="utf-8")
    if arguments.write:
        DOCUMENT.write_text(filled(DOCUMENT.read_text(encoding="utf-8"), shown), encoding="utf-8")
        PICTURE.write_text(picture(found), encoding="utf-8")
    else:
        print("\n\n".join(f"## {table.title}\n{block(table)}" for table in shown))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
