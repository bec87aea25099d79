"""What the clause "could be fetched again" would say about results that recorded sessions did need.

    python benchmarks/wording.py [--kit ../shared/evaldata]

No service is asked. For each old result over 1,500 characters (as in `fit_lexical.py`: cuts at 40, 60 and 80 %, all
sessions) the kit says whether a later step wrote an exact string that stands in it and nowhere newer. A result counts
as repeatable when its tool looks things up and neither was its file written later nor did the call fail: made again,
the same call would most likely show the same. The clause tells a judge to let exactly those go.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from fit_lexical import Item, Kit

from hermes_jev.judge.lexical_features import FEATURES

READS, EDITED, FAILED = (FEATURES.index(name) for name in ("reads", "edited", "failed"))


def repeatable(item: Item) -> bool:
    """Whether the same call, made again, would most likely show the same."""
    return bool(item.row[READS]) and not item.row[EDITED] and not item.row[FAILED]


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kit", type=Path, default=Path(__file__).resolve().parents[1].parent / "shared" / "evaldata")
    kit = Kit(parser.parse_args().kit)
    found: Counter[tuple[bool, bool]] = Counter()
    for even in (True, False):
        for case in kit.cases(even=even):
            found.update((repeatable(item), item.needed) for item in kit.items(case, 1_500, 3))
    for again in (True, False):
        needed, whole = found[again, True], found[again, True] + found[again, False]
        print(f"{'repeatable' if again else 'others':11} {whole:5} results, {needed:4} needed ({needed / whole:.1%})")
    share = found[True, True] / (found[True, True] + found[False, True])
    print(f"of the needed results {share:.1%} could have been fetched again")


if __name__ == "__main__":
    sys.exit(main())
