"""`jev eval handoff`: which material for a handoff still holds the facts."""

from __future__ import annotations

import json
import os
from typing import Any

from ..errors import InputError
from .common import NOTHING, OK, out, progress_bar, say, settings_from


def run(paths: list[str], arguments: Any, width: int | None) -> int:
    """Compare on every session of the paths, at the cuts that were asked for."""
    from ..evals import handoffs
    from ..evals.corpus import sessions
    from ..evals.report import markdown, text
    from ..evals.run import generic_of
    from ..judge import judge_of

    if arguments.judge not in ("lexical", "jev"):
        raise InputError("eval handoff: --judge is lexical or jev")
    settings = settings_from(arguments.set)
    judge = judge_of(arguments.judge, settings, os.environ)
    skipped: list[str] = []
    generic = generic_of(paths, arguments.generic)
    rows: list[handoffs.HandoffRow] = []
    with progress_bar("comparing") as progress:
        for number, session in enumerate(sessions(paths, skipped), 1):
            for share in arguments.cuts:
                rows += handoffs.compare(session, share, generic, judge, settings)
            if progress is not None:
                progress(number, number)
    for problem in skipped:
        say(f"passed over: {problem}")
    if not rows:
        say("jev: no session has a dialogue and something after it")
        return NOTHING
    found = handoffs.table(rows, arguments.seed)
    out(f"## {found.title}\n\n{markdown(found)}\n" if arguments.markdown else text([found], width))
    if arguments.json is not None:
        try:
            arguments.json.write_text(json.dumps([row._asdict() for row in rows], indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            raise InputError(f"{arguments.json}: cannot be written: {error.strerror}") from None
    return OK
