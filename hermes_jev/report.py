"""One HTML page of what passes did, with a slider that decides them again. It needs no network and holds no content."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from typing import Any

from .receipts import Receipt
from .replay import left_by


def page(receipts: Sequence[Receipt], title: str = "hermes_jev") -> str:
    """The page as text: totals, a slider over the threshold of both questions, and a table of all decisions."""
    data = [_pass(receipt) for receipt in receipts]
    # In a script element only a "<" could end the data or hide its end.
    return _PAGE.replace("@TITLE@", html.escape(title)).replace("@DATA@", json.dumps(data).replace("<", "\\u003c"))


def _pass(receipt: Receipt) -> dict[str, Any]:
    return {
        "summary": receipt.summary(),
        "before": receipt.chars_before,
        "threshold": receipt.output_threshold,
        "left": left_by(receipt),
        "decisions": [
            {
                "tool": decision.tool,
                "before": decision.chars_before,
                "after": decision.chars_after,
                "call": decision.call,
                "output": decision.output,
                "action": decision.action,
                "reason": decision.reason,
                "pointer": decision.pointer,
            }
            for decision in receipt.decisions
        ],
    }


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>@TITLE@</title>
<style>
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; }
label { display: flex; gap: 1rem; align-items: center; margin: 1.5rem 0 .5rem; }
input[type=range] { flex: 1; }
output, td.number, th.number { font-variant-numeric: tabular-nums; text-align: right; }
.bar { height: 1.2rem; background: #8884; border-radius: .3rem; overflow: hidden; }
.bar > div { height: 100%; background: #2a7f62; }
table { border-collapse: collapse; width: 100%; margin-top: 1.5rem; }
th, td { text-align: left; padding: .25rem .5rem; border-bottom: 1px solid #8884; vertical-align: top; }
tr.moved td { background: #e0a10022; }
code { font-size: .9em; }
.scroll { overflow-x: auto; }
</style>
</head>
<body>
<h1>@TITLE@: what was cut, and why</h1>
<p id="passes"></p>
<label for="threshold">Threshold of both questions
<input id="threshold" type="range" min="0" max="1" step="0.01"><output id="value"></output></label>
<div class="bar" role="img" aria-label="share of tool output that stays"><div id="stays"></div></div>
<p id="sums" aria-live="polite"></p>
<div class="scroll"><table>
<thead><tr><th>tool</th><th class="number">characters</th><th class="number">call</th><th class="number">output</th>
<th>then</th><th>now</th><th>why then</th><th>pointer</th></tr></thead>
<tbody id="rows"></tbody></table></div>
<script id="data" type="application/json">@DATA@</script>
<script>
"use strict";
const passes = JSON.parse(document.getElementById("data").textContent);
const slider = document.getElementById("threshold");
const number = (value) => value.toLocaleString("en");
const share = (value) => (value === null ? "" : value.toFixed(2));
const names = { keep: "kept", truncate: "shortened", remove: "removed" };
function fate(decision, threshold) {
  if (decision.output === null) return decision.action;
  if (decision.output >= threshold) return "keep";
  return decision.call === null || decision.call >= threshold ? "truncate" : "remove";
}
function size(decision, now, left) {
  if (now === decision.action) return decision.after;
  return now === "keep" ? decision.before : Math.min(decision.before, left[now]);
}
function cell(row, text, kind) {
  const found = row.insertCell();
  found.textContent = text;
  if (kind) found.className = kind;
}
function show() {
  const threshold = Number(slider.value);
  document.getElementById("value").textContent = threshold.toFixed(2);
  const rows = document.getElementById("rows");
  rows.replaceChildren();
  const count = { keep: 0, truncate: 0, remove: 0 };
  let before = 0, after = 0, moved = 0;
  for (const pass of passes) {
    const judged = pass.decisions.reduce((sum, decision) => sum + decision.before, 0);
    before += pass.before;
    after += pass.before - judged;
    for (const decision of pass.decisions) {
      const now = fate(decision, threshold);
      count[now] += 1;
      after += size(decision, now, pass.left);
      const row = rows.insertRow();
      if (now !== decision.action) { row.className = "moved"; moved += 1; }
      cell(row, decision.tool);
      cell(row, number(decision.before), "number");
      cell(row, share(decision.call), "number");
      cell(row, share(decision.output), "number");
      cell(row, names[decision.action]);
      cell(row, names[now]);
      cell(row, decision.reason);
      cell(row, decision.pointer);
    }
  }
  document.getElementById("stays").style.width = before ? (100 * after / before) + "%" : "100%";
  document.getElementById("sums").textContent =
    `${number(before)} → ${number(Math.round(after))} characters of tool output; ${count.keep} kept, ` +
    `${count.truncate} shortened, ${count.remove} removed; ${moved} decided otherwise than then. ` +
    "Sizes of cuts that were not made then are estimated.";
}
document.getElementById("passes").textContent =
  passes.length === 1 ? passes[0].summary : `${passes.length} passes`;
slider.value = passes.length ? passes[passes.length - 1].threshold : 0.5;
slider.addEventListener("input", show);
show();
</script>
</body>
</html>
"""
