"""The case runner itself: an engine that does its work passes, and each wrong one fails the check that is about it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from case_files import from_json
from case_play import Workers, play
from case_words import CHECKS, OPERATIONS, RunnerError

PYTHON = Path(sys.executable)
CALLS = [f"c{number}" for number in range(6)]


def case(expect: list[Any], steps: list[Any] | None = None, **changes: Any) -> Any:
    """A case with six calls; three of them may be shortened."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Find the fault.", "urgent": True}]
    for name in CALLS:
        function = {"name": "terminal", "arguments": {"$json": {"command": name}}}
        call = {"id": name, "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": name, "content": {"$fill": [name, 2500]}})
    raw = {
        "id": "000",
        "slug": "made-up",
        "class": "runner",
        "level": "must",
        "config": {"context_length": 16000},
        "fake_jev": {"mode": "ok", "default": 0.1, "scores": {}},
        "messages": messages,
        "action": {"op": "sequence", "steps": steps or [{"op": "compress", "current_tokens": 9000}]},
        "expect": expect,
    }
    return from_json({**raw, **changes})


@pytest.fixture
def failures(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    running: list[Workers] = []

    def of(engine: str, made: Any) -> list[str]:
        workers = Workers(f"case_fakes:{engine}")
        running.append(workers)
        return play(made, workers.get(PYTHON), workers, tmp_path / engine)

    yield of
    for workers in running:
        workers.__exit__(None, None, None)


GOOD = [
    {"check": "no_exception"},
    {"check": "valid_sequence"},
    {"check": "one_result_per_call"},
    {"check": "same_message_count"},
    {"check": "role_sequence_unchanged"},
    {"check": "input_not_mutated"},
    {"check": "message_unchanged", "index": 0},
    {"check": "role_messages_unchanged", "role": "user"},
    {"check": "arguments_unchanged"},
    {"check": "all_arguments_parse"},
    {"check": "result_order", "ids": CALLS},
    {"check": "result_shrunk", "tool_call_id": "c0", "excerpt_max": 300},
    {"check": "result_verbatim", "tool_call_id": "c5"},
    {"check": "only_content_changed", "tool_call_id": "c0"},
    {"check": "expand_equals_original", "tool_call_id": "c0"},
    {"check": "expand_starts_with", "tool_call_id": "c0", "text": "c0 line"},
    {"check": "unchanged_or_all_shrunk_are_expandable"},
    {"check": "every_shrunk_result_has_notice", "must_mention": ["expand", "original size", "$own_id"]},
    {"check": "engine_text_has_no_imperative", "forbidden": ["delete"]},
    {"check": "excerpt_is_substring_of_original", "tool_call_id": "c1"},
    {"check": "each_tool_message_keeps_own_start"},
    {"check": "tokens_after_not_more"},
    {"check": "notice_tools_subset_of_schemas"},
    {"check": "schemas_valid_json_schema"},
    {"check": "no_leftover_threads"},
    {"check": "no_files_outside_store"},
]


def test_case_of_an_honest_engine_passes(failures: Any) -> None:
    steps = [
        {"op": "compress", "current_tokens": 9000},
        {"op": "tool", "name": "expand", "args": {"id": "$id:c1"}},
        {"op": "tool", "name": "expand", "args": {"id": "nope"}},
        {"op": "follow_notice", "tool_call_id": "c2"},
        {"op": "should_compress", "prompt_tokens": 9000, "expect": True},
        {"op": "status", "save": "s"},
    ]
    expect = [
        *GOOD,
        {"check": "tool_reply_starts_with_original", "step": 1, "tool_call_id": "c1"},
        {"check": "tool_reply_has_continuation", "step": 1},
        {"check": "tool_reply_is_error", "step": 2},
        {"check": "notice_call_returns_original", "tool_call_id": "c2"},
        {"check": "step_expectations"},
        {"check": "status_field", "of": "s", "field": "outcome", "equals": "compacted"},
    ]
    assert failures("Honest", case(expect, steps)) == []


TWO_PASSES = [{"op": "compress"}, {"op": "compress"}]


@pytest.mark.parametrize(
    ("engine", "expected", "steps"),
    [
        ("Idle", {"check": "result_shrunk", "tool_call_id": "c0", "excerpt_max": 300}, None),
        ("Honest", {"check": "result_shrunk", "tool_call_id": "c0", "excerpt_max": 299}, None),
        ("Honest", {"check": "result_shrunk", "tool_call_id": "c5", "excerpt_max": 300}, None),
        ("Honest", {"check": "result_verbatim", "tool_call_id": "c0"}, None),
        ("Honest", {"check": "list_equal_to_input"}, None),
        ("Idle", {"check": "expand_equals_original", "tool_call_id": "c0"}, None),
        ("Mangling", {"check": "expand_equals_original", "tool_call_id": "c0"}, None),
        ("Gapped", {"check": "expand_pages_join_to_original", "tool_call_id": "c0"}, None),
        ("Mangling", {"check": "unchanged_or_all_shrunk_are_expandable"}, None),
        ("Mutating", {"check": "input_not_mutated"}, None),
        ("Dropping", {"check": "valid_sequence"}, None),
        ("Dropping", {"check": "no_new_orphans"}, None),
        ("Dropping", {"check": "one_result_per_call"}, None),
        ("Retyping", {"check": "message_unchanged", "index": 0}, None),
        ("Retyping", {"check": "role_messages_unchanged", "role": "user"}, None),
        ("Talkative", {"check": "engine_text_has_no_imperative", "forbidden": ["delete"]}, None),
        ("Talkative", {"check": "content_stable_after_first_shrink", "tool_call_id": "c0"}, TWO_PASSES),
        ("Talkative", {"check": "outputs_of_steps_equal", "steps": [0, 1]}, TWO_PASSES),
        ("Raising", {"check": "no_exception"}, None),
        ("Honest", {"check": "scorer_calls", "min": 1}, None),
        ("Honest", {"check": "scorer_request_not_contains", "text": "anything"}, None),
        ("Honest", {"check": "outcome_not", "value": "compacted"}, None),
        ("Honest", {"check": "status_mentions_reason"}, None),
        ("Honest", {"check": "store_file_mode_max", "mode": "0600"}, None),
        ("Honest", {"check": "logs_not_contain", "text": "anything"}, None),
        ("Honest", {"check": "step_expectations"}, [{"op": "should_compress", "prompt_tokens": 9000, "expect": 1}]),
    ],
)
def test_case_of_a_wrong_engine_fails(failures: Any, engine: str, expected: Any, steps: Any) -> None:
    found = failures(engine, case([expected], steps))
    assert [failure.partition(":")[0] for failure in found] == [expected["check"]]


def test_case_whose_engine_dies_fails(failures: Any) -> None:
    (failure,) = failures("Dying", case([{"check": "no_exception"}]))
    assert "died" in failure


@pytest.mark.parametrize(
    "made",
    [
        case([{"check": "no_such_check"}]),
        case([{"check": "no_exception", "no_such_parameter": 1}]),
        case([{"check": "no_exception"}], [{"op": "no_such_action"}]),
        case([{"check": "no_exception"}], [{"op": "status", "no_such_parameter": 1}]),
        case([{"check": "no_exception"}], config={"context_length": 16000, "no_such_setting": 1}),
        case([{"check": "no_exception"}], config={"context_length": 16000, "fault": "no such fault"}),
        case([{"check": "no_exception"}], fake_jev={"mode": "no_such_mode"}),
    ],
    ids=["check", "check-parameter", "action", "action-parameter", "config", "fault", "mode"],
)
def test_case_with_an_unknown_word_is_an_error(failures: Any, made: Any) -> None:
    with pytest.raises(RunnerError):
        failures("Honest", made)


def test_case_words_of_the_readme_are_all_known() -> None:
    """The words the description of the format uses for actions and checks."""
    actions = """append append_tool_roundtrip clock_shift compress compress_in_thread damage_store decision_log
        expand_all follow_notice has_content insert_messages install_failing_callbacks jev multi_process
        new_engine_expect_error_or_clamp parallel preflight register_listener repeat replace_messages reset_messages
        restart_engine restore_messages resume_thread run_retention schemas session_end session_reset session_start
        should_compress snapshot_messages status tool truncate_messages update_model usage usage_raw"""
    checks = """all_arguments_parse all_stored_readable all_tool_replies_are_json_objects argument_field_equals
        arguments_unchanged call_present contains content_stable_after_first_shrink content_type_legal
        each_output_valid each_tool_message_keeps_own_start engine_attr engine_attr_after_step engine_attr_present
        engine_text_has_no_imperative estimated_tokens_below every_scorer_request_contains
        every_shrunk_call_was_described_in_its_request every_shrunk_result_has_notice
        excerpt_is_substring_of_original expand_equals_original expand_occurrence expand_or_verbatim
        expand_pages_join_to_original expand_starts_with files_under fits_window input_not_mutated
        list_equal_to_input listener_events log_counts_regret log_has_entry logs_not_contain marker_only_in_role
        max_concurrent_requests max_markers_per_message max_request_bytes message_unchanged no_exception
        no_fabricated_result no_files_outside_store no_ids_matching no_leftover_threads no_new_orphans
        no_result_longer_than_before no_wrong_text_returned not_asked_about not_scored_again note
        nothing_inserted_between_call_and_result notice_call_returns_original notice_tools_subset_of_schemas
        nth_result_verbatim one_result_per_call only_content_changed outcome_not outputs_of_steps_equal
        preflight_equals reply_is_original_or_plain_error result_contains_any result_contains_id_of
        result_count_not_increased result_encodes_utf8 result_max_chars result_not_reassigned result_order
        result_shrunk result_verbatim role_messages_unchanged role_messages_unchanged_from_input_of_step
        role_sequence_unchanged same_message_count schema_names_unique_with_host schemas_have_no_type_arrays
        schemas_valid_json_schema scorer_calls scorer_calls_in_step scorer_goal_not scorer_request_bytes_for_call
        scorer_request_contains scorer_request_is_valid_utf8 scorer_request_not_contains search_hits search_hits_min
        select_report shrunk_result_starts_with_original_start some_result_or_expand_contains some_results_verbatim
        status_field status_field_range status_has status_mentions_reason status_not_contains step_expectations
        step_expectations_if_supported store_blob_count_for_text store_blob_count_max store_bytes_max
        store_dir_mode_max store_file_mode_max store_integrity_ok text_occurs_exactly text_only_in_role
        thread_output_corresponds_to_its_input tokens_after_not_more tool_reply_contains tool_reply_has_continuation
        tool_reply_is_error tool_reply_max_chars tool_reply_starts_with_original
        unchanged_or_all_shrunk_are_expandable valid_sequence wall_seconds"""
    assert sorted(set(actions.split()) - OPERATIONS.keys()) == []
    assert sorted(set(checks.split()) - CHECKS.keys()) == []
