"""What `jev compact` takes on long transcripts: time and memory, each size in a process of its own.

    python benchmarks/compact_size.py            2,500, 5,000 and 10,000 messages of 2,100 characters

Prints CPU seconds, the ratio to the size before (2 is linear) and the peak memory of the process. The lexical judge
scores; nothing is sent. Standard library and this package only.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def transcript(count: int, chars: int) -> list[dict[str, str]]:
    """Messages of words and numbers, no two alike."""
    roles = ("user", "assistant", "assistant", "assistant")
    made = []
    for at in range(count):
        line = f"part {at} of the log, value {at * 7919 % 99991}, step {at % 13}: nothing that stands elsewhere. "
        made.append({"role": roles[at % 4], "content": (line * (chars // len(line) + 1))[:chars]})
    return made


def measured(file: Path) -> tuple[float, float, str]:
    """CPU seconds and peak MB of one run, and what it said."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "hermes_jev.cli", "compact", str(file), "--judge", "lexical"]
    code = "import resource,runpy,sys\nsys.argv=sys.argv[1:]\n"
    code += "try:\n    runpy.run_module('hermes_jev.cli', run_name='__main__', alter_sys=True)\n"
    code += "finally:\n    print('PEAK', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)\n"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code, *command[2:]],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    *said, peak = done.stderr.strip().splitlines()
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent, int(peak.split()[1]) / 1024, said[0]


def main() -> None:
    """Measure each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="2500,5000,10000", help="numbers of messages, with commas")
    parser.add_argument("--chars", type=int, default=2_100, help="characters of a message")
    arguments = parser.parse_args()
    last = 0.0
    print(f"{'messages':>9} {'input MB':>9} {'CPU s':>7} {'ratio':>6} {'peak MB':>8}")
    for count in map(int, arguments.sizes.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "session.json"
            file.write_text(json.dumps(transcript(count, arguments.chars)), encoding="utf-8")
            spent, peak, said = measured(file)
            size = file.stat().st_size / 1e6
        ratio = f"{spent / last:.1f}" if last else ""
        print(f"{count:>9,} {size:>9.1f} {spent:>7.1f} {ratio:>6} {peak:>8.0f}   {said}")
        last = spent


if __name__ == "__main__":
    main()
