"""What the plugin adds to Hermes beside the engine: a tool, a command of the shell, a slash command, a skill.

Each registration stands by itself: a host that refuses one, or does not know it, keeps the engine and the others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import select_tool, slash
from .history import read_session
from .running import search_middleware
from .surroundings import Surroundings

logger = logging.getLogger(__name__)

TOOLSET = "hermes_jev"
SKILL = "jev-compaction"


def extend(ctx: Any, around: Surroundings) -> list[str]:
    """Register everything; returns what the host refused, in words. Never raises."""
    steps: dict[str, Callable[[], object]] = {
        f"the tool {select_tool.TOOL}": lambda: _tool(ctx, around),
        "the command hermes jev": lambda: _shell(ctx, around),
        "the command /jev": lambda: _slash(ctx, around),
        f"the skill {SKILL}": lambda: _skill(ctx),
        "what session_search finds more": lambda: ctx.register_middleware("tool_execution", search_middleware),
    }
    return [problem for what, step in steps.items() if (problem := _attempt(what, step))]


def _attempt(what: str, step: Callable[[], object]) -> str:
    try:
        step()
    except Exception as error:  # noqa: BLE001 - the host's code may raise anything, and the engine is registered already
        problem = f"{what} was not registered: {type(error).__name__}"
        logger.warning("hermes_jev: %s", problem)
        return problem
    return ""


def _tool(ctx: Any, around: Surroundings) -> None:
    def call(arguments: Any, session_id: str = "", **_more: Any) -> str:
        settings = around.settings()
        return select_tool.run(
            arguments,
            str(session_id or around.session() or ""),
            lambda name: read_session(around.home(), name),
            around.gate(),
            settings,
            around.judge(settings),
        )

    schema = dict(select_tool.SCHEMA)
    ctx.register_tool(
        name=select_tool.TOOL,
        toolset=TOOLSET,
        schema=schema,
        handler=call,
        description=schema["description"],
    )


def _shell(ctx: Any, around: Surroundings) -> None:
    def describe(parser: Any) -> None:
        # Only `hermes jev` needs the command line.
        from .cli.inside import describe as add_all

        add_all(parser)

    def run(arguments: Any) -> None:
        from .cli.inside import run as run_one

        run_one(arguments, around)

    ctx.register_cli_command(
        name="jev",
        help="shorten transcripts, read originals back, see what was cut and why",
        setup_fn=describe,
        handler_fn=run,
        description="The command line of hermes_jev: the same as the command jev.",
    )


def _slash(ctx: Any, around: Surroundings) -> None:
    async def handle(raw: str) -> str:
        return await slash.answer(str(raw or ""), around, ctx)

    ctx.register_command("jev", handle, description=slash.SUMMARY, args_hint=slash.HINT)


def _skill(ctx: Any) -> None:
    # Beside the package in a checkout, inside it in an installed one.
    here = Path(__file__).resolve().parent
    places = [folder / "skills" / SKILL / "SKILL.md" for folder in (here.parent, here)]
    file = next((place for place in places if place.is_file()), places[0])
    ctx.register_skill(SKILL, file, description="When and how to shorten a conversation, and what to trust afterwards")
