"""What the adapters of engines share (W22). An engine runs a program, reports the states of its runs, and can be asked
about them, searched and stopped."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.aws.targets.aws_errors import code_of, is_no_answer, message_of, twice
from chalicelib.aws.targets.clients import Now
from chalicelib.core.instants import MINUTE, SECOND, Instant, Millis
from chalicelib.core.rows.run import Run
from chalicelib.core.runs import launch
from chalicelib.core.targets import denials, registry
from chalicelib.core.targets.answers import Answer, Never, NoAnswer, NotNow, RunUpdate, SearchLimit, Started

R = TypeVar("R")

# Engines are eventually consistent: what has just been started may be missing. After this time, it is lost.
FINAL_AFTER: Millis = 2 * MINUTE
# An engine without tokens is searched for what an unanswered call has started, and only then called again. The search
# may miss what has just begun, so it counts after this time.
SETTLED: Millis = MINUTE
# A start call after a search begins only while the lease of the call (`core/runs/launch.py`) lasts for so long. Another
# one may be made when the lease has ended.
LEFT: Millis = 30 * SECOND
BETWEEN_QUESTIONS = 0.1  # seconds, when many runs are polled
BETWEEN_ATTEMPTS = 0.2  # seconds, before the repeat of a call without an answer

# A start call answers within a second. After the timeout the next call is the same start.
CALL: dict[str, Any] = {"connect_timeout": 2, "read_timeout": 6, "retries": {"total_max_attempts": 1}}


class Engine(ABC):
    """A `TargetAdapter` for an engine. A subclass makes the calls of the engine; its errors are read here.

    An error of a start call that is in none of the lists may pass; it counts as refused for now.
    """

    name: ClassVar[str]  # of the engine, in texts
    start_call: ClassVar[str]  # the operation that starts a run
    one: ClassVar[str]  # a run, as the engine calls it
    never: ClassVar[Collection[str]]  # the codes of errors after which the same call can never succeed
    no_answer: ClassVar[Collection[str]] = ("InternalFailure", "InternalServerError", "ServiceUnavailable")
    throttled: ClassVar[Collection[str]] = ("ThrottlingException", "TooManyRequestsException", "RequestLimitExceeded")
    asked_at_once: ClassVar[int] = 1  # how many runs a call asks about

    def __init__(self, client: Any, now: Now, pause: Callable[[float], None] = time.sleep) -> None:
        self._client, self._now, self._pause = client, now, pause

    @abstractmethod
    def begin(self, run: Run, context: Mapping[str, Any]) -> Answer:
        """Make the start call. Errors of the client are raised."""

    @abstractmethod
    def ask(self, target_ids: Sequence[str]) -> Mapping[str, RunUpdate | None]:
        """The states of at most ``asked_at_once`` runs: None for one that has not begun; without those that the engine
        does not know. Errors of the client are raised."""

    @abstractmethod
    def find(self, run: Run) -> str | None:
        """As `TargetAdapter.find`. Errors of the client are raised."""

    @abstractmethod
    def stop(self, target_id: str, why: str) -> None:
        """Stop a run that may have ended already."""

    def run_name(self, target_id: str) -> str | None:
        """None: the events of the engine have the name where it has one."""
        del target_id
        return None

    def start(self, run: Run, context: Mapping[str, Any]) -> Answer:
        searches = run.unknown_answer and not registry.of_run(run).has_token
        try:
            found = self.find(run) if searches else None
        except (BotoCoreError, ClientError, SearchLimit, TimeoutError) as error:
            return NoAnswer(f"a call gave no answer, and the search for what it started failed: {error}", SETTLED)
        if found is not None:
            return Started(found)
        if searches and self.is_late(run):
            return NoAnswer("a call gave no answer, and the search for what it started took too long", SETTLED)
        try:
            return self.begin(run, context)
        except ClientError as error:
            return self._refusal(run, error)
        except BotoCoreError as error:
            return self._unanswered(run, str(error))

    def start_many(self, calls: Sequence[tuple[Run, Mapping[str, Any]]]) -> list[Answer]:
        """Start runs one by one."""
        return [self.start(run, context) for run, context in calls]

    def status(self, run: Run) -> RunUpdate | None:
        return self.status_many([run])[0]

    def status_many(self, runs: Sequence[Run]) -> list[RunUpdate | None]:
        """The pauses keep to the rate that engines sustain. A run whose call is throttled is polled again later."""
        answers: dict[int, RunUpdate | None] = {}
        going = [(number, run) for number, run in enumerate(runs) if run.target_id is not None]
        for start in range(0, len(going), self.asked_at_once):
            some = going[start : start + self.asked_at_once]
            if start:
                self._pause(BETWEEN_QUESTIONS)
            try:
                found = self.ask([str(run.target_id) for _, run in some])
            except ClientError as error:
                if code_of(error) in self.throttled:
                    continue
                raise
            for number, run in some:
                known = str(run.target_id) in found
                answers[number] = found[str(run.target_id)] if known else self._unknown(run)
        return [answers.get(number) for number in range(len(runs))]

    def cancel(self, run: Run) -> None:
        if run.target_id is not None:
            self.stop(run.target_id, run.reason.text)

    def is_late(self, run: Run) -> bool:
        """Whether the start call that is on record may no longer begin, because it could outlive its lease."""
        return run.lease_until is not None and run.lease_until - self._now() < LEFT

    def twice(self, call: Callable[..., R], **asked: Any) -> R:
        """Make an idempotent call; repeat it once if there was no answer."""
        return twice(lambda: self._pause(BETWEEN_ATTEMPTS), self.no_answer, call, **asked)

    def _unknown(self, run: Run) -> RunUpdate | None:
        """The update of a run that the engine does not know: lost, or None shortly after the engine has accepted it."""
        now = self._now()
        first = next(at for at in (run.state_at, run.start_requested_at, run.claimed_at) if at is not None)
        why = f"{self.name} knows no such {self.one} any more"
        return RunUpdate("FAILED", now, why, run.target_id, outcome="lost") if now - first >= FINAL_AFTER else None

    def _refusal(self, run: Run, error: ClientError) -> Answer:
        code, denial = code_of(error), denials.read(message_of(error))
        if is_no_answer(error, self.no_answer):
            return self._unanswered(run, code)
        reason = denials.with_remedy(code, message_of(error))
        if denial is not None and denial.may_pass:
            return self.of_role(run, reason)
        if code in self.never:
            return Never(f"{self.name} refused the start: {reason}")
        return NotNow(f"{self.name} refused for now: {reason}")

    def of_role(self, run: Run, reason: str) -> NotNow | Never:
        """The answer about a role that is not permitted, or that is too new to be seen: final only after ten minutes.
        Other runs have other roles, so they are not delayed."""
        if launch.may_pass(run):
            return NotNow(f"{self.name} refused for now: {reason}", alone=True)
        return Never(f"{self.name} refused the start: {reason}")

    def _unanswered(self, run: Run, why: str) -> NoAnswer:
        """The answer to a start call without an answer. The next call of an engine without tokens waits until a search
        shows what this one has started."""
        return NoAnswer(f"{self.start_call} gave no answer: {why}", None if registry.of_run(run).has_token else SETTLED)


def instant(moment: datetime) -> Instant:
    return round(moment.timestamp() * 1000)
