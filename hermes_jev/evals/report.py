"""An evaluation for a reader: a terminal, a document, a program."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from .replay_tables import replay_tables
from .run import Evaluation
from .tables import Table, comparison_tables


def tables(evaluation: Evaluation) -> list[Table]:
    """All tables, in the order in which they are read."""
    return [*comparison_tables(evaluation), *replay_tables(evaluation)]


def markdown(table: Table) -> str:
    """A table for a document, its notes after it."""
    lines = [f"| {' | '.join(table.columns)} |", f"|{'---|' * len(table.columns)}"]
    lines += [f"| {' | '.join(row)} |" for row in table.cells]
    return "\n".join([*lines, *(f"\n{note}" for note in table.notes)])


def text(found: list[Table], width: int | None) -> str:
    """The tables for a terminal of `width` columns; None is as wide as they need."""
    from io import StringIO

    from rich.console import Console
    from rich.table import Table as RichTable

    stream = StringIO()
    console = Console(file=stream, width=width or 400, highlight=False)
    for table in found:
        drawn = RichTable(title=table.title, title_justify="left", title_style="bold", pad_edge=False)
        for number, column in enumerate(table.columns):
            drawn.add_column(column, justify="left" if number == 0 else "right", overflow="fold")
        for row in table.cells:
            drawn.add_row(*row)
        console.print(drawn, markup=False)
        for note in table.notes:
            console.print(note, markup=False, soft_wrap=width is None)
        console.print()
    return "".join(line.rstrip() + "\n" for line in stream.getvalue().splitlines())


def to_json(evaluation: Evaluation) -> dict[str, Any]:
    """Everything, for a program. All but `timings`, and the times in the table of promises, is the same for the same
    transcripts, options and seed."""
    plan, options = evaluation.plan, evaluation.plan.options
    return {
        "version": 1,
        "options": {
            **{name: value for name, value in asdict(options).items() if name != "settings"},
            "settings": options.settings.model_dump(mode="json"),
            "window": plan.window,
            "prices": plan.prices._asdict(),
        },
        "sessions": evaluation.sessions,
        "skipped": list(evaluation.skipped),
        "tables": [table._asdict() for table in tables(evaluation)],
        "rows": [row.to_json() for row in evaluation.rows],
        "passes": [one.to_json() for one in evaluation.passes],
        "replays": [one.to_json() for one in evaluation.replays],
        "timings": [asdict(timing) for timing in evaluation.timings],
    }
