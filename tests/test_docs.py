"""What the documents say is what the package does."""

from __future__ import annotations

from pathlib import Path

from hermes_jev.settings import described

ROOT = Path(__file__).resolve().parent.parent


def settings_table() -> str:
    """The README's table of settings."""
    rows = ["| setting | default | what it does |", "|---|---|---|"]
    rows += [f"| `{item.name}` | `{item.default}` | {item.sentence} |" for item in described()]
    return "\n".join(rows)


def test_readme_lists_every_setting_with_its_default() -> None:
    """Run `python tests/test_docs.py` to write the table anew."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    block = readme.split("<!-- settings: begin -->")[1].split("<!-- settings: end -->")[0]
    assert block.strip() == settings_table()


def rewrite() -> None:
    """Put the current table into the README."""
    file = ROOT / "README.md"
    head, rest = file.read_text(encoding="utf-8").split("<!-- settings: begin -->")
    tail = rest.split("<!-- settings: end -->")[1]
    table = f"<!-- settings: begin -->\n\n{settings_table()}\n\n<!-- settings: end -->"
    file.write_text(f"{head}{table}{tail}", encoding="utf-8")


if __name__ == "__main__":
    rewrite()
