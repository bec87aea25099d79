"""The context engine as Hermes calls it.

The host's rules shape this file: `compress` never raises and returns the very list it was given when nothing changed;
token fields are plain attributes that the host reads and writes; the engine is deep-copied for each agent, so it holds
plain data only; a session's end is no end, since it is also announced at every compaction.
"""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent.context_engine import ContextEngine

from . import host, listeners
from .effective import inside
from .egress import gate
from .errors import StoreError
from .fields import HostFields
from .handover import for_host
from .job import Job, Pruned
from .judge import Judge, spent_today
from .kinship import goes_on, parents_of, seen
from .lineage import Lineage
from .notes import Notes
from .paging import Room
from .pins import EXPAND_TOOL
from .policy import Cuts, estimated_if_due, prompt_room, should_compact
from .prune import run
from .quiet import GROWTH, Quiet
from .recall import SCHEMAS, Recall
from .receipts import Receipt
from .registration import extend
from .regret import record_expand
from .rolling import NEVER_ASKED, Rolling
from .running import note
from .settings import Resolved, Settings
from .state_db import FILE_NAME, StateDb
from .status import status
from .store import Store, Swept
from .stores import FOLDER
from .survey import survey
from .tokens import whole_number
from .told import Told
from .transcript import Transcript
from .upkeep import tend, tend_daily

logger = logging.getLogger(__name__)

NAME = "hermes_jev"

TURNS_ARE_ANNOUNCED = hasattr(ContextEngine, "on_turn_complete")
ROLLING_IS_ASKED_FOR = hasattr(ContextEngine, "prune_tool_results_only")

STORE_PATIENCE_S = 1.0
"""Seconds an operation waits for another process' lock: a pass has four, and the user waits for all of them."""


class JevEngine(HostFields, ContextEngine):
    """Shortens old tool results, keeps every word, gives every byte back through `expand`."""

    def __init__(self) -> None:
        super().__init__()
        self._resolved = Resolved(Settings(), {})
        self._notes = Notes()
        self._home = ""
        # The host asks for the schemas only where the agent has the toolset.
        self._offered = False
        self._lineage = Lineage()
        self._passes = 0
        self._quiet = Quiet()
        self._rolling = Rolling()
        self._told = Told()
        # What the engine itself estimated when it asked for a pass before any request.
        self._estimated = 0
        self._listeners = listeners.Listeners()
        self._last: Receipt | None = None
        self._last_error = ""
        # Characters that replies of the tools took since the provider last counted the prompt.
        self._handed = 0
        self._own = frozenset(vars(self))

    @property
    def name(self) -> str:
        """The name that `context.engine` selects."""
        return NAME

    def clone_for_agent(self) -> JevEngine:
        """A copy for another agent: plain data, so a deep copy is one."""
        return copy.deepcopy(self)

    # -- the session ------------------------------------------------------------------------------------------------

    def update_model(
        self,
        model: str = "",
        context_length: int = 0,
        base_url: str = "",
        api_key: Any = "",
        provider: str = "",
        api_mode: str = "",
        **_more: Any,
    ) -> None:
        """Another model, so another window. A missing or impossible length means that the window is not known."""
        self._load_settings()
        length = whole_number(context_length)
        if length != self.context_length:
            self._quiet = Quiet(idle=self._quiet.idle)
            self._told.forget()
        self.context_length = length
        self.threshold_percent = self._settings.trigger_percent
        self.threshold_tokens = int(self._room() * self._settings.trigger_percent)
        if 0 < length < 2 * self._settings.reserve_output_tokens:
            self._notes.say("reserve_output_tokens is over half of the window; half of it is reserved")

    def bind_session_state(self, session_db: Any = None, session_id: str = "") -> None:
        """Which session this agent runs. The host's database handle is not kept: it cannot be copied."""
        if isinstance(session_id, str) and session_id:
            self._enter(session_id, "")

    def on_session_start(self, session_id: str, **more: Any) -> None:
        """A session begins or, with a compression boundary, goes on under another id."""
        home = more.get("hermes_home")
        self._home = str(home) if home else self._home
        self._load_settings()
        boundary = more.get("boundary_reason") == "compression"
        new, store = str(session_id or ""), self._store()
        parents = parents_of(new, self._folder())
        old = more.get("old_session_id") if boundary else ""
        self._enter(new, goes_on(old, self._lineage.line, parents, store))
        seen(store, new, parents)
        if not boundary:
            window = f"{self.context_length:,} tokens" if self.context_length else "unknown"
            hidden = "" if self._offered else "; its tools are not offered (toolset context_engine)"
            logger.info("hermes_jev: active; window %s, judge %s%s", window, self._judge().name, hidden)

    def on_session_end(self, session_id: str, messages: Any) -> None:
        """Nothing ends here: the host also announces it at every compaction and from review forks."""

    def on_session_reset(self) -> None:
        """Another conversation: counters start anew, what is stored stays."""
        super().on_session_reset()
        self.last_real_prompt_tokens, self.awaiting_real_usage_after_compression = 0, False
        self._forget_passes()

    def _enter(self, session: str, continues: str) -> None:
        note(self)
        if self._lineage.is_here(session, continues):
            return
        if not continues:
            self._lineage.begin(session)
            self._forget_passes()
            return
        try:
            self._lineage.go_on(session, continues, self._store())
        except StoreError as error:
            logger.warning("hermes_jev: the link from session %s to its parent was not stored: %s", session, error)

    def _forget_passes(self) -> None:
        self._passes = 0
        self._quiet, self._rolling = Quiet(), Rolling()
        self._told.forget()
        self._estimated = 0
        self._last = None
        self._last_error = ""

    # -- tokens -----------------------------------------------------------------------------------------------------

    def update_from_response(self, usage: dict[str, Any]) -> None:
        """The provider's count of the last prompt. Without one the fields stay as they are."""
        self.awaiting_real_usage_after_compression = False
        self._told.forget()
        self._handed = 0
        self._quiet.response(self._count(usage), self._settings.trigger_percent * self._room())

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        """Whether a pass is due: the window is filled to the trigger, and what the last pass left has changed enough
        (`quiet.py`)."""
        used = whole_number(self.last_prompt_tokens if prompt_tokens is None else prompt_tokens)
        if self._quiet.fresh and used != self.last_real_prompt_tokens and not TURNS_ARE_ANNOUNCED:
            # The count of an answer that made no calls: this is the rough number of the next turn.
            self._quiet.turn_over()
        level = should_compact(used, whole_number(self.context_length), self._settings)
        quiet = self._quiet.holds(used, GROWTH * self._room(), level == "urgent")
        due = self._settings.enabled and level != "no" and not quiet
        self._told.say(due, used)
        return due

    def should_compress_preflight(self, messages: list[dict[str, Any]]) -> bool:
        """Whether the messages alone fill the window to the trigger, by our own estimate. Newer hosts ask at the start
        of a turn when their rough count, which takes four characters for a token, says that there is room: with dense
        text there may be none. Once the provider has counted, its number is better."""
        if self.last_real_prompt_tokens > 0 or not self._settings.enabled or self._quiet.active:
            return False
        self._estimated = estimated_if_due(messages, whole_number(self.context_length), self._settings)
        if self._estimated:
            self._told.say(True, 0)
        return self._estimated > 0

    @property
    def _settings(self) -> Settings:
        return self._resolved.settings

    def _room(self) -> int:
        return prompt_room(whole_number(self.context_length), self._settings)

    def on_turn_complete(self, messages: Any, usage: Any = None, **_more: Any) -> None:
        """Newer hosts announce the end of a turn."""
        self._quiet.turn_over()
        self._told.forget()

    def has_content_to_compress(self, messages: list[dict[str, Any]]) -> bool:
        """Whether any old result could be cut. Cheap, and asks nobody."""
        if not messages or not all(isinstance(message, Mapping) for message in messages):
            return False
        found = survey(Transcript.parse(messages), self._settings, Cuts(self._settings))
        return bool(found.candidates)

    # -- compaction -------------------------------------------------------------------------------------------------

    def compress(
        self,
        messages: list[dict[str, Any]],
        current_tokens: int | None = None,
        focus_topic: str | None = None,
        force: bool = False,
        memory_context: str = "",
    ) -> list[dict[str, Any]]:
        """One pass. Returns new messages, or `messages` itself when nothing changed. Never raises."""
        self._last_compress_aborted, self._last_summary_error = False, ""
        try:
            if not self._settings.enabled:
                return messages
            used, counted = whole_number(current_tokens), whole_number(self.last_prompt_tokens)
            refused = self._told.begin_pass(used, counted, messages, turns_announced=TURNS_ARE_ANNOUNCED)
            self._listeners.tell(listeners.before(len(messages), used, self._lineage.session))
            return self._report(messages, self._pass(messages, used, focus_topic, bool(force), refused))
        except Exception as error:  # the user's turn goes on whatever is wrong here
            logger.exception("hermes_jev: the pass failed; the conversation is unchanged")
            self._last_error = f"{type(error).__name__} in the pass; the conversation is unchanged"
            self._quiet = self._quiet.after_nothing(None, urgent=True)
            self._abort(self._last_error)
            return messages

    def _pass(
        self, messages: list[dict[str, Any]], current_tokens: int, focus: str | None, force: bool, refused: bool
    ) -> Pruned:
        # Without a count of its own, the host asked for this pass with a number that did lead to it.
        used = max(current_tokens or self._quiet.last[1], self._estimated)
        self._estimated = 0
        overflow = not force and (refused or 0 < self._room() < used)
        job = replace(self._job(used), focus=(focus or "").strip(), forced=force, overflow=overflow)
        return run(messages, job)

    def prune_tool_results_only(
        self, messages: list[dict[str, Any]], current_tokens: int | None = None
    ) -> tuple[list[dict[str, Any]], int]:
        """Newer hosts offer this after each round of tools for which no pass was due. With the rolling
        schedule recent results are settled here. The host keeps its list and rows, and catches what is raised."""
        used, settings = whole_number(current_tokens), self._settings
        if not (settings.enabled and settings.schedule == "rolling" and self._rolling.due(used, self._room())):
            return messages, 0
        after, _, receipt, _ = run(messages, replace(self._job(used), rolling=True))
        self._rolling.looked(used, receipt.tokens_before - receipt.tokens_after)
        count = receipt.count("truncate") + receipt.count("remove")
        if after is messages or not count:
            return messages, 0
        self._last, self._passes = receipt, self._passes + 1
        logger.info("hermes_jev: rolling: %s", receipt.summary())
        self._listeners.tell(listeners.after(receipt, self._lineage.session))
        return after, count

    def _job(self, used: int) -> Job:
        return Job(
            self._settings, self._judge(), self._store(), gate([host.redact]), self._lineage.session,
            window=self.context_length or None, used=used or None,
        )  # fmt: skip

    def _report(self, messages: list[dict[str, Any]], pruned: Pruned) -> list[dict[str, Any]]:
        receipt = pruned.receipt
        tend_daily(*self._tended())
        self._last, self._last_error = receipt, ""
        changed = pruned.messages is not messages
        new = for_host(messages, pruned.messages) if changed else messages
        urgent = receipt.window is not None and receipt.used_before >= self._settings.urgent_percent * receipt.window
        level = logging.INFO if receipt.outcome in ("compacted", "nothing_to_prune") else logging.WARNING
        logger.log(level, "hermes_jev: %s", receipt.summary())
        self._listeners.tell(listeners.after(receipt, self._lineage.session))
        if not changed:
            # A judge that did not answer is asked again when the prompt has grown, not with each new result.
            calls = None if receipt.outcome == "judge_failed" else pruned.calls_until_worth
            self._quiet = self._quiet.after_nothing(calls, urgent)
            if receipt.outcome in ("judge_failed", "capacity", "error"):
                self._abort(receipt.summary())
            return messages
        self._passes += 1
        # Known again with the next response; what was counted was the prompt before the pass.
        self.last_prompt_tokens = -1
        enough = receipt.window is None or receipt.used_after < self._settings.trigger_percent * receipt.window
        self._quiet = self._quiet.after_change(pruned.calls_until_worth, urgent, enough)
        self._last_compression_made_progress = True
        return new

    # -- tools ------------------------------------------------------------------------------------------------------

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """The tools of the engine. The host keeps its own `session_search` where it has one switched on."""
        self._offered = True
        return [copy.deepcopy(dict(schema)) for schema in SCHEMAS]

    def handle_tool_call(self, name: str, args: dict[str, Any], **more: Any) -> str:
        """Run one of the engine's tools. Always a JSON object, never an exception."""
        reply = self._recall(more.get("messages")).call(name, args)
        self._handed += len(reply)
        if name == EXPAND_TOOL:
            record_expand(reply, self._store(), self._may_open)
        return reply

    def search_more(self, arguments: Any, reply: Any) -> Any:
        """The reply of the host's own `session_search` with what it cannot reach."""
        self._handed += len(str(longer := self._recall().more(arguments, reply)))
        return longer

    def runs(self, session: str) -> bool:
        """Whether this engine runs that session now."""
        return bool(session) and session == self._lineage.session

    def _recall(self, messages: Any = ()) -> Recall:
        used = max(whole_number(self.last_prompt_tokens), self._quiet.last[1])
        room = Room(whole_number(self.context_length) or None, used or None, self._handed)
        session, state = self._lineage.session, StateDb(self._folder() / FILE_NAME)
        return Recall(session, self._may_open, self._store(), state, room, time.time(), messages)

    def _may_open(self) -> list[str]:
        """This session and those it continues."""
        return self._lineage.may_open(self._store(), parents_of(self._lineage.session, self._folder()))

    def run_retention(self) -> Swept | None:
        """Remove from the store what its limits no longer allow; None when it cannot be used now, which is said."""
        return tend(*self._tended())

    def _tended(self) -> tuple[Store, Settings, list[str], list[Path]]:
        return self._store(), self._settings, list(self._lineage.line), [self._folder()]

    # -- status -----------------------------------------------------------------------------------------------------

    def get_status(self) -> dict[str, Any]:
        """The host's fields and: settings in force, the last pass, and what is wrong, in words."""
        return status(
            super().get_status(),
            self._resolved,
            name=NAME,
            lineage=self._lineage,
            home=self._folder(),
            judge=self._judge().name,
            spent=spent_today(self._store()),
            store=self._store(),
            last=self._last,
            error=self._last_error,
            passes=self._passes,
            problems=self._notes.problems,
        )

    def add_listener(self, callback: listeners.Listener) -> None:
        """Call it with an event (a mapping with `phase`: before or after) at each pass, also of later copies of this
        engine. After a pass the event says what was kept and shrunk, and the tokens before and after."""
        self._listeners.add(callback)

    # -- parts ------------------------------------------------------------------------------------------------------

    def _load_settings(self) -> None:
        """Settings of the current home and environment; a refused value is said once and defaulted."""
        self._resolved = inside(host.plugin_settings(), host.environment())
        for problem in self._resolved.problems:
            self._notes.log_once(problem)
        if self._settings.schedule == "rolling" and not ROLLING_IS_ASKED_FOR:
            self._notes.say(NEVER_ASKED, logging.INFO)

    def _judge(self) -> Judge:
        return host.judge(self._settings, self._notes)

    def _store(self) -> Store:
        named = self._settings.store_dir
        folder = Path(named).expanduser() if named else self._folder() / FOLDER
        return Store(folder, patience_s=STORE_PATIENCE_S, say=self._notes.say)

    def _folder(self) -> Path:
        """The session's own home: a tool call may run in a thread that has lost the profile's context."""
        return Path(self._home) if self._home else host.home()


def register(ctx: Any) -> None:
    """Called by the host's plugin loader."""
    ctx.register_context_engine(JevEngine())
    extend(ctx, host.surroundings(lambda: inside(host.plugin_settings(), host.environment())))
