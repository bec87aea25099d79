"""docs/evaluation.md: its tables are those that one command writes."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from hermes_jev.evals.tables import Table

ROOT = Path(__file__).resolve().parent.parent
NAMES = (
    *("sizes", "whole", "losses", "equal", "equal-kinds", "kinds", "thresholds", "recovery", "promises"),
    *("passes", "cost"),
)  # fmt: skip


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """benchmarks/evaluation.py as a module."""
    spec = importlib.util.spec_from_file_location("evaluation_script", ROOT / "benchmarks" / "evaluation.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def made(name: str) -> Table:
    return Table(name, name.title(), ("what", "how much"), (("a", "1"), ("b", "2")), ("Said once.",))


def test_every_table_has_a_place_and_a_command_that_is_a_command(script: ModuleType) -> None:
    document = (ROOT / "docs" / "evaluation.md").read_text(encoding="utf-8")

    assert sorted(re.findall(r"<!-- eval:([a-z-]+): begin -->", document)) == sorted(NAMES)
    for name in NAMES:
        block = document.split(f"<!-- eval:{name}: begin -->")[1].split(f"<!-- eval:{name}: end -->")[0]
        assert block.strip().startswith("| "), f"{name} was never written"
        assert f"`{script.command_of(made(name))}`" in block


def test_writing_replaces_what_stands_between_the_marks(script: ModuleType) -> None:
    before = (ROOT / "docs" / "evaluation.md").read_text(encoding="utf-8")

    after = script.filled(before, [made(name) for name in NAMES])

    assert after.count("| a | 1 |") == len(NAMES)
    assert script.filled(after, [made(name) for name in NAMES]) == after
    assert after.split("## What each policy removes")[0] == before.split("## What each policy removes")[0]


@pytest.mark.parametrize("names", [NAMES[1:], (*NAMES, "unknown")], ids=["one missing", "one too many"])
def test_a_table_without_a_place_and_a_place_without_a_table_stop(script: ModuleType, names: tuple[str, ...]) -> None:
    document = (ROOT / "docs" / "evaluation.md").read_text(encoding="utf-8")

    with pytest.raises(SystemExit, match=r"docs/evaluation\.md"):
        script.filled(document, [made(name) for name in names])
