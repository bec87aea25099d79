"""A picture of loss against size: lines for what can be had at any size, points for policies as they are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from .options import ENGINE
from .rows import Row
from .run import Evaluation

WIDTH, HEIGHT = 860, 560
_ORACLES = f"{ENGINE}/oracle"
"""Judges that know the answers have a table; here they would hide what can be had."""
_CAPTION = "Lines: the cases where the engine reaches that size, all at its size. Points: all cases."
_RANKERS = ("recency", "recency, exact", "random", "oracle")
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 240, 50, 60
_COLOURS = ("#1b6ca8", "#c0392b", "#2e8b57", "#8e44ad", "#b8860b", "#d35400", "#16a085", "#555555")


class Point(NamedTuple):
    """Mean share of tool characters removed and of needed strings lost, both in percent."""

    removed: float
    lost: float


def picture(evaluation: Evaluation) -> str:
    """An SVG document; without a case that measures loss it says so.

    Lines compare at equal size: at each share, on the cases where the engine reaches it, what the engine loses and what
    the rankers lose at its very size in those cases. Points are policies on all cases.
    """
    measuring = [row for row in evaluation.rows if row.measures_loss and not row.policy.startswith(_ORACLES)]
    if not measuring:
        return _svg([_text(WIDTH / 2, HEIGHT / 2, "Not defined: no case has needed strings", "middle")])
    lines = _lines([row for row in measuring if row.group == "equal" and row.policy == ENGINE and row.reached])
    points = _points(row for row in measuring if row.group == "policy")
    highest = max(point.lost for line in (*lines.values(), list(points.values())) for point in line)
    top = max(10, 10 * -(-int(highest + 1) // 10))
    cases = len({(row.id, row.cut) for row in measuring})
    return _svg([*_frame(top, cases), *_drawn(lines, points, top)])


def _lines(rows: Sequence[Row]) -> dict[str, list[Point]]:
    """The engine and the rankers matched to it, by share."""
    by_share: dict[float, list[Row]] = defaultdict(list)
    for row in rows:
        by_share[row.share or 0.0].append(row)
    lines: dict[str, list[Point]] = defaultdict(list)
    for _, own in sorted(by_share.items()):
        removed = _mean([row.tool_share for row in own])
        lines[ENGINE].append(Point(removed, _mean([row.lost_share for row in own])))
        for name in _RANKERS:
            if matched := [row.matched[name] for row in own if name in row.matched]:
                lines[name].append(Point(removed, _mean(matched)))
    return lines


def _points(rows: Iterable[Row]) -> dict[str, Point]:
    by_policy: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_policy[row.policy].append(row)
    return {
        name: Point(_mean([row.tool_share for row in own]), _mean([row.lost_share for row in own]))
        for name, own in by_policy.items()
    }


def _mean(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else 0.0


def _frame(top: int, cases: int) -> list[str]:
    parts = [_text(_LEFT, 28, f"Needed strings lost against tool output removed ({cases} cases)", size=16)]
    parts.append(_text(_LEFT, 44, _CAPTION))
    for step in range(0, 101, 20):
        x = _x(step)
        parts.append(f'<path d="M{x:.1f} {_TOP}V{HEIGHT - _BOTTOM}" stroke="#e4e4e4"/>')
        parts.append(_text(x, HEIGHT - _BOTTOM + 18, f"{step} %", "middle"))
    for step in range(0, top + 1, max(5, top // 5)):
        y = _y(step, top)
        parts.append(f'<path d="M{_LEFT} {y:.1f}H{WIDTH - _RIGHT}" stroke="#e4e4e4"/>')
        parts.append(_text(_LEFT - 8, y + 4, f"{step} %", "end"))
    parts.append(_text((_LEFT + WIDTH - _RIGHT) / 2, HEIGHT - 16, "tool characters removed", "middle"))
    parts.append(
        f'<text transform="translate(20 {(HEIGHT - _BOTTOM + _TOP) / 2:.0f}) rotate(-90)" text-anchor="middle">'
        "needed strings lost</text>"
    )
    return parts


def _drawn(lines: dict[str, list[Point]], points: dict[str, Point], top: int) -> list[str]:
    parts: list[str] = []
    row = 0
    for number, (name, line) in enumerate(sorted(lines.items(), key=lambda item: (item[0] != ENGINE, item[0]))):
        colour = _COLOURS[number % len(_COLOURS)]
        path = " ".join(f"{_x(p.removed):.1f},{_y(p.lost, top):.1f}" for p in sorted(line))
        width = 3 if name == ENGINE else 1.5
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"/>')
        parts.append(
            _legend(row, f'<path d="M0 0h18" stroke="{colour}" stroke-width="{width}"/>', f"{name}, at equal size")
        )
        row += 1
    for number, (name, point) in enumerate(sorted(points.items()), 1):
        colour = _COLOURS[0] if name == ENGINE else "#333333"
        x, y = _x(point.removed), _y(point.lost, top)
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>')
        parts.append(_text(x + 6, y - 5, str(number), size=11))
        parts.append(_legend(row, f'<circle cx="9" cy="0" r="4" fill="{colour}"/>', f"{number} {name}"))
        row += 1
    return parts


def _legend(row: int, mark: str, label: str) -> str:
    y = _TOP + 10 + 20 * row
    return f'<g transform="translate({WIDTH - _RIGHT + 16} {y})">{mark}{_text(26, 4, label)}</g>'


def _x(percent: float) -> float:
    return _LEFT + (WIDTH - _LEFT - _RIGHT) * min(100.0, max(0.0, percent)) / 100


def _y(percent: float, top: int) -> float:
    return HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * percent / top


def _text(x: float, y: float, text: str, anchor: str = "start", size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(text)}</text>'


def _svg(parts: Sequence[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="sans-serif" font-size="12">'
    )
    return "\n".join([head, f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>', *parts, "</svg>"]) + "\n"
