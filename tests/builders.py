"""Transcripts and scripted judges for the tests of the core.

The judges are `Judge`s by the protocol: they remember what they were asked in `asked` and answer as they were told.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from hermes_jev.errors import JudgeTransient
from hermes_jev.judge.protocol import Answer, Answers, Question, Request
from hermes_jev.transcript import Exchange, Transcript

Message = dict[str, Any]

GOAL = "fix the parser so that empty lines are kept"


def user(text: Any) -> Message:
    return {"role": "user", "content": text}


def system(text: str) -> Message:
    return {"role": "system", "content": text}


def call(call_id: str, tool: str = "terminal", arguments: Any = "{}") -> Message:
    """One entry of an assistant message's `tool_calls`; arguments that are no text become JSON text."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": call_id, "type": "function", "function": {"name": tool, "arguments": text}}


def assistant(text: Any = None, *calls: Message) -> Message:
    message: Message = {"role": "assistant", "content": text}
    return {**message, "tool_calls": list(calls)} if calls else message


def result(call_id: str, content: Any, **more: Any) -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": content, **more}


def text(size: int, tag: str = "line") -> str:
    """`size` characters of numbered lines that carry the tag: no two places alike."""
    lines: list[str] = []
    length = 0
    while length < size:
        lines.append(f"{tag} {len(lines):05d} src/{tag}/part_{len(lines) % 7}.py: value is {len(lines) * 37 % 1009}\n")
        length += len(lines[-1])
    return "".join(lines)[:size]


def pair(
    number: int, content: Any, tool: str = "terminal", arguments: Any = None, words: str | None = None
) -> list[Any]:
    """A call and its result, with the id `c<number>`."""
    given = {"command": f"step {number}"} if arguments is None else arguments
    return [assistant(words, call(f"c{number}", tool, given)), result(f"c{number}", content)]


def session(count: int, size: int = 4_000, tool: str = "terminal", goal: str = GOAL) -> list[Message]:
    """A request, `count` different calls with results of `size` characters, and a last word."""
    messages = [user(goal)]
    for number in range(1, count + 1):
        messages += pair(number, text(size, f"out{number}"), tool)
    return [*messages, assistant("That is all.")]


def exchanges(*contents: Any, tool: str = "terminal") -> tuple[Exchange, ...]:
    """The parsed exchanges of one call for each content."""
    messages = [user(GOAL)]
    for number, content in enumerate(contents, 1):
        messages += pair(number, content, tool)
    return Transcript.parse(messages).exchanges


def contents(messages: Sequence[Mapping[str, Any]]) -> list[Any]:
    """What the tool results of a list hold, in order."""
    return [message.get("content") for message in messages if message.get("role") == "tool"]


class _Scripted:
    """What the scripted judges share. `local` ones are given subjects, the others redacted states."""

    name = "scripted"

    def __init__(self, *, version: str = "v1", local: bool = False) -> None:
        self.version = version
        self.local = local
        self.asked: list[Request] = []

    @property
    def question_ids(self) -> list[str]:
        """Ids of all questions so far, in the order they came."""
        return [question.id for request in self.asked for question in request.questions]

    async def ask(self, requests: Sequence[Request], deadline_s: float) -> Answers:
        self.asked.extend(requests)
        found = {
            question.id: answer
            for request in requests
            for question in request.questions
            if (answer := self.answer(question)) is not None
        }
        return Answers(by_id=found, judge=self.name, model=self.version, requests=len(requests))

    def answer(self, question: Question) -> Answer | None:
        raise NotImplementedError


class Fixed(_Scripted):
    """The same two probabilities for every call."""

    def __init__(self, call: float = 0.1, output: float = 0.1, *, version: str = "v1", local: bool = False) -> None:
        super().__init__(version=version, local=local)
        self.call, self.output = call, output

    def answer(self, question: Question) -> Answer | None:
        return Answer({"true": self.call if question.id.endswith("_call") else self.output})


class ByOrdinal(_Scripted):
    """Probabilities (call, output) by the ordinal of the call; None is no answer. `default` is for the others."""

    def __init__(
        self,
        by_ordinal: Mapping[int, tuple[float | None, float | None]],
        default: tuple[float | None, float | None] = (0.1, 0.1),
        *,
        version: str = "v1",
        local: bool = False,
    ) -> None:
        super().__init__(version=version, local=local)
        self.by_ordinal, self.default = by_ordinal, default

    def answer(self, question: Question) -> Answer | None:
        name, _, part = question.id.partition("_")
        pair = self.by_ordinal.get(int(name.removeprefix("t")), self.default)
        probability = pair[0] if part == "call" else pair[1]
        return None if probability is None else Answer({"true": probability})


class Partial(Fixed):
    """Answers only about the calls with these ordinals."""

    def __init__(self, answered: Sequence[int], call: float = 0.1, output: float = 0.1) -> None:
        super().__init__(call, output)
        self.answered = frozenset(f"t{ordinal}" for ordinal in answered)

    def answer(self, question: Question) -> Answer | None:
        return super().answer(question) if question.id.partition("_")[0] in self.answered else None


class Failing(_Scripted):
    """Down: every `ask` raises."""

    name = "down"

    def __init__(self, error: Exception | None = None, *, local: bool = False) -> None:
        super().__init__(local=local)
        self.error = error or JudgeTransient("the service is down")

    async def ask(self, requests: Sequence[Request], deadline_s: float) -> Answers:
        self.asked.extend(requests)
        raise self.error

    def answer(self, question: Question) -> Answer | None:
        return None


class Odd(_Scripted):
    """Answers every question with this value in the place of a probability, as a judge with a defect would."""

    name = "odd"

    def __init__(self, probabilities: Any, *, local: bool = False) -> None:
        super().__init__(local=local)
        self.probabilities = probabilities

    def answer(self, question: Question) -> Answer | None:
        return Answer(self.probabilities)
