"""The one seam between plain functions and asynchronous judges.

A judge runs on an event loop of its own, in a thread that nothing waits for: the caller gets what is there by the
deadline and goes on, even if the judge blocks its thread or a name resolver hangs. It works inside a running event
loop too, where `asyncio.run` may not be called.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from ..errors import JudgeError, JudgeTransient
from .protocol import Answers, Judge, Request
from .sound import sound

logger = logging.getLogger(__name__)

# A judge that keeps its deadline needs a moment more to gather what it has.
GRACE_S = 0.25

_P = ParamSpec("_P")
_T = TypeVar("_T")


def ask_blocking(judge: Judge, requests: Sequence[Request], deadline_s: float) -> Answers:
    """Ask and wait, for at most `deadline_s` seconds and a short grace. Never raises for the judge's sake.

    A judge that is not back by then is left behind: the answers are empty and `errors` is ("transient",). A judge
    that raises gives empty answers with the code of its JudgeError, or "judge" for any other exception.
    """
    box: queue.SimpleQueue[Answers] = queue.SimpleQueue()
    worker = threading.Thread(
        target=_work, args=(judge, requests, deadline_s, box), name=f"hermes-jev-{judge.name}", daemon=True
    )
    worker.start()
    try:
        return box.get(timeout=deadline_s + 2 * GRACE_S)
    except queue.Empty:
        return _failed(judge, requests, JudgeTransient.code)


def _work(judge: Judge, requests: Sequence[Request], deadline_s: float, box: queue.SimpleQueue[Answers]) -> None:
    with asyncio.Runner() as runner:
        runner.get_loop().set_default_executor(_DaemonThreads())
        # The answers leave from inside the loop: closing it may take longer than the caller waits.
        runner.run(_answer_into(box, judge, requests, deadline_s))


async def _answer_into(
    box: queue.SimpleQueue[Answers], judge: Judge, requests: Sequence[Request], deadline_s: float
) -> None:
    box.put(await _answer(judge, requests, deadline_s))


async def _answer(judge: Judge, requests: Sequence[Request], deadline_s: float) -> Answers:
    try:
        async with asyncio.timeout(deadline_s + GRACE_S):
            answers = await judge.ask(requests, deadline_s)
        if isinstance(answers, Answers):
            return sound(answers, judge.name)
        problem, code = f"returned {type(answers).__name__}", JudgeError.code
    except TimeoutError:
        problem, code = "overran its deadline", JudgeTransient.code
    except JudgeError as error:
        problem, code = type(error).__name__, error.code
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - a foreign judge's bug must not cost a turn
        problem, code = f"raised {type(error).__name__}", JudgeError.code
    logger.warning("the judge %s failed: %s", judge.name, problem)
    return _failed(judge, requests, code)


def _failed(judge: Judge, requests: Sequence[Request], code: str) -> Answers:
    return Answers(judge=judge.name, failed=len(requests), errors=(code,))


class _DaemonThreads(ThreadPoolExecutor):
    """Runs each job in a daemon thread of its own.

    An ordinary pool's threads are waited for when the loop closes and again when the interpreter exits, so one name
    resolver that hangs would hold both.
    """

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        future: Future[_T] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:  # noqa: BLE001 - it is raised where the future is awaited
                future.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Nothing to wait for."""
