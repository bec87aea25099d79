"""Every original put back, exactly, and what is said when one is missing."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from builders import GOAL, ByOrdinal, Fixed, Message, assistant, contents, pair, result, session, text, user

from hermes_jev import Settings, prune, restore
from hermes_jev.errors import InputError, NotStored, StoreError
from hermes_jev.notice import read
from hermes_jev.store import Store

ALL = Settings(pin_last_calls=0)
LINE = (
    '[hermes_jev: this call ran; its 8,423 characters are stored: expand(id="r-abcdefghij"). '
    "Without that tool only a new call shows them.]"
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def cut(messages: list[Message], store: Store, call: float = 0.1) -> list[Any]:
    pruned = prune(messages, Fixed(call), store, ALL)
    assert pruned.receipt.outcome == "compacted"
    return pruned.messages


@pytest.mark.parametrize("call", [0.1, 0.9], ids=["removed", "shortened"])
def test_every_original_comes_back(store: Store, call: float) -> None:
    messages = session(6)
    shorter = cut(messages, store, call)

    back = restore(shorter, store)

    assert back == messages
    assert all(new is old for new, old in zip(back, shorter, strict=True) if old["role"] != "tool")
    assert restore(back, store) is back


def test_what_was_given_is_not_changed(store: Store) -> None:
    shorter = cut(session(3), store)
    before = contents(shorter)

    restore(shorter, store)

    assert contents(shorter) == before


def test_a_list_without_cuts_is_given_back_as_it_is(store: Store) -> None:
    for messages in ([], [user("hi")], session(3)):
        assert restore(messages, store) is messages
    assert not store.path.exists()


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "text", "text": text(3_000)}, {"type": "image_url", "image_url": {"url": "data:AAAA"}}, {}],
        {"b": text(3_000), "a": [1, 1.0, True, None, 2**70], "": {}},
        text(3_000) + "\ud83d" + "\ude00" + "\x00\r\n\ufeff",
    ],
    ids=["parts", "object", "odd characters"],
)
def test_originals_come_back_with_their_type(store: Store, content: Any) -> None:
    messages = [user(GOAL), *pair(1, content), assistant("done")]

    back = restore(cut(messages, store), store)[2]["content"]

    assert back == content
    assert type(back) is type(content)
    assert repr(back) == repr(content)


def test_other_fields_of_a_cut_message_stay(store: Store) -> None:
    messages = session(2)
    messages[2] |= {"name": "terminal", "_db_id": 7, "cache_control": {"type": "ephemeral"}}

    assert restore(cut(messages, store), store) == messages


def test_cuts_of_several_passes_come_back_together(store: Store) -> None:
    messages = session(4)
    first = cut(messages, store)
    more = [message for n in range(4) for message in pair(50 + n, text(5_000, f"more{n}"))]

    assert restore(cut([*first, *more, assistant("done")], store, 0.9), store) == [*messages, *more, assistant("done")]


def test_cuts_moved_to_another_place_come_back_there(store: Store) -> None:
    messages = session(4)
    shorter = cut(messages, store)

    assert contents(restore(shorter[::-1], store)) == contents(messages)[::-1]


# --- what is no cut of this store ---------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["user", "assistant", "system"])
def test_a_notice_pasted_into_words_is_words(store: Store, role: str) -> None:
    shorter = cut(session(3), store)
    pasted = [*shorter, {"role": role, "content": shorter[2]["content"]}]

    assert restore(pasted, store)[-1] is pasted[-1]


def test_a_notice_quoted_in_an_output_is_output(store: Store) -> None:
    quoted = f"$ tail -2 transcript.txt\nsome words\n{LINE}"
    messages = [*session(2), *pair(9, quoted)]

    assert restore(cut(messages, store), store) == messages


def test_a_cut_text_that_was_changed_is_an_ordinary_text(store: Store) -> None:
    shorter = cut(session(2), store, 0.9)
    shorter[2] = {**shorter[2], "content": "edited " + shorter[2]["content"]}

    assert restore(shorter, store)[2] is shorter[2]


def test_an_original_that_this_store_does_not_hold_is_told(store: Store, tmp_path: Path) -> None:
    shorter = cut(session(3), store)
    pointer = read(shorter[2]["content"])
    assert pointer is not None

    with pytest.raises(NotStored) as missing:
        restore(shorter, tmp_path / "another")

    assert pointer.id in str(missing.value)
    assert "message 3" in str(missing.value)


WORDS = "\n\n[OUT-OF-BAND USER MESSAGE — sent while you work]\nuse port 8080\n[/OUT-OF-BAND USER MESSAGE]"


@pytest.mark.parametrize("words", ["", WORDS], ids=["plain", "with the user's words"])
@pytest.mark.parametrize("opening", ["", '<untrusted_tool_result source="web">\n'], ids=["bare", "wrapped"])
def test_a_cut_that_ends_with_a_line_is_missed_too(store: Store, tmp_path: Path, words: str, opening: str) -> None:
    """The first 300 characters end with a line end, as the output of many tools does."""
    closing = "\n</untrusted_tool_result>" if opening else ""
    body = "x" * (300 - 1 - (1 if opening else 0)) + "\n" + "y" * 4_000
    for shift in (0, 1):
        content = opening + "z" * shift + body[shift:] + closing + words
        shorter = cut([user(GOAL), *pair(1, content), assistant("done")], store, 0.9)

        with pytest.raises(NotStored):
            restore(shorter, tmp_path / "another")


def test_a_text_of_the_form_of_a_removed_one_is_told_where_nothing_is_stored(store: Store) -> None:
    with pytest.raises(NotStored, match=r"message 2: .*r-abcdefghij"):
        restore([user("hi"), result("a", LINE)], store)


def test_a_damaged_original_is_told_and_nothing_half_given_back(store: Store) -> None:
    shorter = cut(session(3), store)
    with sqlite3.connect(store.path) as connection:
        connection.execute("UPDATE contents SET body = x'00' WHERE chars > 3000")
    connection.close()

    with pytest.raises(StoreError, match="damaged"):
        restore(shorter, store)


def test_a_file_that_is_no_store_is_told(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    shorter = cut(session(3), store)
    store.path.write_bytes(b"garbage " * 5_000)

    with pytest.raises(StoreError):
        restore(shorter, store)


@pytest.mark.parametrize("messages", [None, {"messages": []}, ["x"], [{"role": "robot"}]], ids=str)
def test_what_is_no_list_of_messages_is_refused(store: Store, messages: Any) -> None:
    with pytest.raises(InputError):
        restore(messages, store)


@pytest.mark.parametrize("content", [None, 7, [], {}, [{"type": "text", "text": LINE}]], ids=str)
def test_contents_of_any_kind_are_passed_over(store: Store, content: Any) -> None:
    messages = [*session(2), result("odd", content), {"role": "tool"}]

    assert restore(cut(messages, store), store) == messages


# --- the host appended what the user said to a result that was cut already

WORDS = "\n\n[OUT-OF-BAND USER MESSAGE — sent while you work]\nuse port 8080\n[/OUT-OF-BAND USER MESSAGE]"


@pytest.mark.parametrize("content", [text(4_000), [{"type": "text", "text": text(4_000)}]], ids=["text", "parts"])
def test_words_after_the_notice_follow_the_original(store: Store, content: Any) -> None:
    messages = [user(GOAL), *pair(1, content), assistant("done")]
    shorter = prune(messages, Fixed(), store, ALL).messages
    at = 2
    spoken = [*shorter[:at], {**shorter[at], "content": shorter[at]["content"] + WORDS}, *shorter[at + 1 :]]

    back = restore(spoken, store)

    expected = content + WORDS if isinstance(content, str) else [*content, {"type": "text", "text": WORDS}]
    assert back[at]["content"] == expected


def test_what_no_store_knows_can_be_left_as_it_is(store: Store, tmp_path: Path) -> None:
    messages = [user(GOAL), *pair(1, text(4_000)), *pair(2, text(5_000)), assistant("done")]
    shorter = prune(messages, Fixed(), store, ALL).messages
    elsewhere = Store(tmp_path / "elsewhere")

    with pytest.raises(NotStored, match="message 3"):
        restore(shorter, elsewhere)
    assert restore(shorter, elsewhere, missing="keep") == shorter


def test_the_folder_of_the_environment_holds_for_both_directions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_JEV_STORE_DIR", str(tmp_path / "named"))
    messages = session(6)

    shorter = prune(messages, Fixed()).messages

    assert shorter != messages
    assert (tmp_path / "named").is_dir()
    assert restore(shorter) == messages


def test_originals_may_lie_in_the_users_store_and_in_that_of_hermes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exported session holds the engine's cuts; pruned in a shell it holds more."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable in ("HERMES_HOME", "HERMES_JEV_STORE_DIR", "XDG_DATA_HOME"):
        monkeypatch.delenv(variable, raising=False)
    messages = session(8)
    exported = prune(
        messages, ByOrdinal({1: (0.1, 0.1)}, default=(0.9, 0.9)), tmp_path / ".hermes" / "hermes_jev"
    ).messages
    shorter = prune(exported, Fixed(version="v2")).messages
    assert sum(old is not new for old, new in zip(messages, shorter, strict=True)) > 1

    assert restore(shorter) == messages
