"""What every judge is asked and what it answers: the one seam between the engine and a decision model.

A `Request` holds what may be sent (`state`, already redacted and fitted) and, beside it, the subjects of the
questions in full, for judges that run inside this process. A remote judge sends `state` and `questions` and nothing
else; an embedded one may read `subjects`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

QuestionKind = Literal["noul", "choice", "score"]

Declined = Literal["", "paused", "circuit", "budget"]
"""Why a service was not asked at all: it told us to wait, it failed too often, or the day's money is spent."""

STANDS_IN: frozenset[Declined] = frozenset(("circuit", "budget"))
"""Those of them for which the embedded judge answers in the service's place."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a service takes in one request.

    `questions` a request and `options` a choice, at most; whether a noul's criteria need `both_noul_sides`; estimated
    tokens of the state, and of state and questions together.
    """

    questions: int = 64
    options: int = 255
    both_noul_sides: bool = False
    state_tokens: int = 24_000
    request_tokens: int = 48_000


USUAL_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Question:
    """One typed question.

    `criteria` maps each option to the sentence that describes it: for a noul the keys are "true" and "false", for a
    choice the option names, for a score the names of the levels from low to high. Order is kept.
    """

    id: str
    kind: QuestionKind
    instructions: str
    criteria: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Subject:
    """One tool call as an embedded judge sees it: whole, local, never sent.

    `age` counts the calls after this one, `size` the characters of the result. `outcome` is "ok", "failed" or
    "unknown". `content` is the hash that receipts name the call by.
    """

    ordinal: int
    tool: str = field(repr=False)
    arguments: str = field(repr=False)
    result: str = field(repr=False)
    size: int
    age: int
    outcome: str
    content: str = ""


@dataclass(frozen=True, slots=True)
class Spoken:
    """One message as an embedded judge sees it: whole, local, never sent. `question` is the id of the question about
    it, `age` counts the messages after it, `content` is the hash that receipts name it by."""

    question: str
    role: str
    text: str
    age: int
    content: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """One round trip: a state and the questions about it.

    `goal` and `actions` (newest last) are the local, unredacted forms of what the state says of the task.
    `question_ids` of subjects are `t<ordinal>_call` and `t<ordinal>_output`; `turns` name theirs.
    """

    state: Mapping[str, Any] | str
    questions: tuple[Question, ...]
    goal: str = field(default="", repr=False)
    actions: tuple[str, ...] = field(default=(), repr=False)
    subjects: tuple[Subject, ...] = field(default=(), repr=False)
    turns: tuple[Spoken, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Answer:
    """What one question got, as checked.

    `probabilities` per option, finite and in [0, 1], in the order of the criteria; a noul has the one key "true".
    Where a service gives none, they are empty and one of these says the rest: `level`, the option or level it named,
    or `score`, a number between 0 and the highest level's place. `confidence` is what is on record of an earlier
    answer, which is known by its score alone; no service gives it.
    """

    probabilities: Mapping[str, float] = field(default_factory=dict)
    level: str | None = None
    score: float | None = None
    confidence: float | None = None

    @property
    def yes(self) -> float:
        """P(true) of a noul."""
        return self.probabilities["true"]


@dataclass(frozen=True, slots=True)
class Answers:
    """What came back, in whole or in part.

    A question without an entry in `by_id` was not answered, and that never means "drop". `errors` are codes of
    failed round trips, without content, and `details` what stood behind them ("HTTP 404", "ConnectTimeout").
    `requests` counts those sent, failed ones included; so do `input_tokens` and `cost` (US dollars), by what the
    service reports, else by our estimate. `trimmed` are the questions answered about a shortened state. `wait_s` is
    how long the service still wants to be left alone, in seconds. `declined` says why nothing was sent.
    """

    by_id: Mapping[str, Answer] = field(default_factory=dict)
    judge: str = ""
    model: str = ""
    requests: int = 0
    failed: int = 0
    errors: tuple[str, ...] = ()
    input_tokens: int = 0
    cost: float = 0.0
    latency_ms: int = 0
    details: tuple[str, ...] = ()
    trimmed: frozenset[str] = frozenset()
    wait_s: float = 0.0
    declined: Declined = ""


class Judge(Protocol):
    """Anything that answers typed questions."""

    @property
    def name(self) -> str:
        """What receipts call it: "jev", "lexical", …"""
        ...

    @property
    def version(self) -> str:
        """Part of the verdict cache's key: another version is asked again."""
        ...

    @property
    def local(self) -> bool:
        """Whether it runs inside this process and reads `subjects`. A remote judge is given no subjects at all."""
        ...

    async def ask(self, requests: Sequence[Request], deadline_s: float) -> Answers:
        """Answer what can be answered within `deadline_s` seconds. Never raises for a failing service."""
        ...


@runtime_checkable
class Remote(Judge, Protocol):
    """A judge behind a service, whose failures, waits and costs are remembered between passes."""

    @property
    def service(self) -> str:
        """Which service, for the records: the endpoint and its host."""
        ...

    @property
    def limits(self) -> Limits:
        """What one request may hold."""
        ...

    def price(self, requests: Sequence[Request]) -> float:
        """What asking them would cost, in US dollars, by estimate."""
        ...


def limits_of(judge: Judge) -> Limits:
    """The limits of the judge's service; of any other judge the usual ones."""
    return judge.limits if isinstance(judge, Remote) else USUAL_LIMITS
