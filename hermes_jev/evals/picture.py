"""A picture of loss against size: lines for what can be had at any size, points for policies as they are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from .options import ENGINE
from .rows import Row
from .run import Evaluation

WIDTH, HEIGHT = 860, 560
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 240, 50, 60
_COLOURS = ("#1b6ca8", "#c0392b", "#2e8b57", "#8e44ad", "#b8860b", "#555555", "#d35400", "#16a085")


class Point(NamedTuple):
    """Mean share of tool characters removed and of needed strings lost, both in percent."""

    removed: float
    lost: float


def picture(evaluation: Evaluation) -> str:
    """An SVG document; without a case that measures loss it says so."""
    measuring = [row for row in evaluation.rows if row.measures_loss]
    if not measuring:
        return _svg([_text(WIDTH / 2, HEIGHT / 2, "Not defined: no case has needed strings", "middle")])
    lines = _curves(row for row in measuring if row.group == "equal")
    points = {name: line[0] for name, line in _curves(r for r in measuring if r.group == "policy").items()}
    highest = max(point.lost for line in (*lines.values(), list(points.values())) for point in line)
    top = max(10, 10 * -(-int(highest + 1) // 10))
    cases = len({(row.id, row.cut) for row in measuring})
    parts = [*_frame(top, cases), *_drawn(lines, points, top)]
    return _svg(parts)


def _curves(rows: object) -> dict[str, list[Point]]:
    """For each policy its points in the order of their sizes. All its cases count, whatever size each reached."""
    found: dict[tuple[str, float], list[Row]] = defaultdict(list)
    for row in rows:  # type: ignore[attr-defined]
        found[row.policy, row.share or 0.0].append(row)
    curves: dict[str, list[Point]] = defaultdict(list)
    for (name, _), own in sorted(found.items()):
        shares = [row.lost_share for row in own if row.lost_share is not None]
        if shares:
            curves[name].append(Point(sum(r.tool_share for r in own) / len(own), sum(shares) / len(shares)))
    return curves


def _frame(top: int, cases: int) -> list[str]:
    parts = [_text(_LEFT, 28, f"Needed strings lost against tool output removed ({cases} cases)", size=16)]
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
        parts.append(_legend(row, f'<path d="M0 0h18" stroke="{colour}" stroke-width="{width}"/>', f"{name}, any size"))
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
