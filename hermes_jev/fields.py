"""What hosts read from an engine and write to it without asking: plain attributes, nothing else will do for fields."""

from __future__ import annotations

from typing import Any

from .settings import Settings
from .tokens import whole_number


class HostFields:
    """Token state, the trigger, and what the host shows the user during a pass and after it."""

    # The host keeps these many messages out of its own preflight test; the engine pins by calls, not by messages.
    protect_first_n = 3
    protect_last_n = 6

    def __init__(self) -> None:
        self.last_prompt_tokens = 0
        self.last_completion_tokens = 0
        self.last_total_tokens = 0
        self.last_real_prompt_tokens = 0
        self.threshold_tokens = 0
        self.threshold_percent = Settings().trigger_percent
        # What the idle compaction of newer hosts takes for the share of the threshold that a pass leaves.
        self.summary_target_ratio = Settings().target_percent / Settings().trigger_percent
        self.context_length = 0
        # Lossy passes only: from two on the host warns the user of lost accuracy. `get_status` counts all passes.
        self.compression_count = 0
        self.awaiting_real_usage_after_compression = False
        self._last_compress_aborted = False
        self._last_summary_error = ""
        self._last_compression_made_progress = False
        self._own: frozenset[str] = frozenset()

    def __getstate__(self) -> dict[str, Any]:
        """What a copy takes along: of what the host put here only plain values, not its locks."""
        return {
            name: value
            for name, value in vars(self).items()
            if name in self._own or isinstance(value, bool | int | float | str | None)
        }

    def should_defer_preflight_to_real_usage(self, rough_tokens: int) -> bool:
        """Never: the rough count is good enough to ask for a pass."""
        return False

    def get_automatic_compaction_status_message(self, *, phase: str, default_message: str, **_context: Any) -> str:
        """What newer hosts show the user during a pass: nothing is summarised."""
        return "hermes_jev: shortening old tool output; nothing that was said changes"

    def _count(self, usage: Any) -> int:
        """Take over what the provider counted of the last prompt; 0 where it did not say, and the fields stay."""
        counted = usage if isinstance(usage, dict) else {}
        prompt = whole_number(counted.get("prompt_tokens"))
        if prompt > 0:
            self.last_prompt_tokens = self.last_real_prompt_tokens = prompt
            self.last_completion_tokens = whole_number(counted.get("completion_tokens"))
            self.last_total_tokens = whole_number(counted.get("total_tokens")) or prompt + self.last_completion_tokens
        return prompt

    def _abort(self, why: str) -> None:
        """The host shows this to the user; the next pass clears it."""
        self._last_compress_aborted, self._last_summary_error = True, why
        self._last_compression_made_progress = False
