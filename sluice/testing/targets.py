"""Targets whose runs a test ends, and external systems whose answers a test sets."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from chalicelib.aws.targets.dag_start import DagStarts
from chalicelib.aws.targets.each import EachElements
from chalicelib.aws.targets.worker import WorkerTarget
from chalicelib.core import ids, results
from chalicelib.core.instants import Instant
from chalicelib.core.rows.run import Run
from chalicelib.core.runs.target_roles import NotAssumed, TargetRole
from chalicelib.core.targets import registry
from chalicelib.core.targets.answers import Answer, Never, NoAnswer, NotNow, RunUpdate, Started
from chalicelib.ports import TargetAdapter
from sluice.errors import WrongUsage
from sluice.testing.clock import HandClock

Attempt = tuple[str, int]
# How a target may answer a start call or a delivery, besides accepting it.
THROTTLED, REFUSED, UNREACHABLE, LOST = ANSWERS = ("throttled", "refused", "unreachable", "lost")
_INSTEAD: Mapping[str, Answer] = {
    THROTTLED: NotNow("the target is throttled"),
    REFUSED: Never("the target refused the call for good"),
    UNREACHABLE: NoAnswer("the target did not answer"),
}


def _first(told: tuple[Instant, Run]) -> Instant:
    return told[0]


class Script:
    """The answers that a test has set for the next calls of schedules, and what their functions return."""

    def __init__(self) -> None:
        self._left: dict[str, list[str]] = {}
        self._returned: dict[str, list[Any]] = {}

    def set_returned(self, schedule: str, values: Sequence[Any]) -> None:
        self._returned[schedule] = list(values)

    def returned(self, schedule: str) -> Any:
        """What the function of this schedule returns now. The last value repeats."""
        values = self._returned.get(schedule, [None])
        return values.pop(0) if len(values) > 1 else values[0]

    def set(self, schedule: str, answers: Sequence[str]) -> None:
        for answer in answers:
            if answer not in ANSWERS:
                raise WrongUsage(f"expected one of {', '.join(ANSWERS)}, got {answer!r}", "answers")
        self._left[schedule] = list(answers)

    def take(self, schedule: str) -> str | None:
        """The answer to this call; None if the target accepts it."""
        left = self._left.get(schedule)
        return left.pop(0) if left else None


class PlayedTarget:
    """A target of any type. With a lifecycle, a run continues until the test ends it; without, it succeeds at once."""

    def __init__(self, clock: HandClock, has_lifecycle: bool, script: Script) -> None:
        self._clock, self._has_lifecycle, self._script = clock, has_lifecycle, script
        self.started: dict[Attempt, str] = {}
        self.states: dict[Attempt, RunUpdate] = {}
        self.begun: list[Run] = []  # since the last call of `take_begun`
        self._accepted: set[Attempt] = set()  # with an answer that Sluice got
        self.notices: dict[Attempt, tuple[Instant, Run]] = {}  # that were delivered, each when it came first

    def start(self, run: Run, context: Mapping[str, Any]) -> Answer:
        del context
        answer = self._script.take(run.schedule)
        if answer is not None and answer in _INSTEAD:
            return _INSTEAD[answer]
        attempt, target_id = (run.run_id, run.attempt), f"played/{run.run_id}-{run.attempt}"
        if ids.is_of_notice(run.schedule):
            self.notices.setdefault(attempt, (self._clock.now(), run))
        if self._has_lifecycle:
            self.started[attempt] = target_id
            self.states.setdefault(attempt, RunUpdate("RUNNING", self._clock.now(), target_id=target_id))
        if answer == LOST:
            return NoAnswer("the answer of the target was lost")
        if self._has_lifecycle and attempt not in self._accepted:
            self._accepted.add(attempt)
            self.begun.append(run)
        result = results.NONE
        if registry.of_run(run).returns(run.request.target):
            result = results.of_value(self._script.returned(run.schedule))
        return Started(target_id, done=not self._has_lifecycle, result=result)

    def start_many(self, calls: Sequence[tuple[Run, Mapping[str, Any]]]) -> list[Answer]:
        return [self.start(run, context) for run, context in calls]

    def status(self, run: Run) -> RunUpdate | None:
        return self.states.get((run.run_id, run.attempt))

    def status_many(self, runs: Sequence[Run]) -> list[RunUpdate | None]:
        return [self.status(run) for run in runs]

    def find(self, run: Run) -> str | None:
        return self.started.get((run.run_id, run.attempt))

    def cancel(self, run: Run) -> None:
        attempt = run.run_id, run.attempt
        if attempt in self.started:
            self.states[attempt] = RunUpdate("CANCELLED", self._clock.now(), target_id=self.started[attempt])

    def run_name(self, target_id: str) -> str | None:
        return target_id.partition("/")[2] or None


class PlayedTargets:
    """Implements `ports.Targets`. An answer that the test has not set is unknown: the job waits, and its ``why`` names
    the method to call."""

    def __init__(self, clock: HandClock) -> None:
        self._clock = clock
        self._played: dict[str, PlayedTarget] = {}
        self._worker = WorkerTarget(clock.now)
        self.script = Script()
        self.answers: list[Any] = []  # of probes, in order; the last one repeats
        self.measures: list[tuple[str | None, float]] = []  # newest first
        self.questions: list[Mapping[str, Any]] = []

    def of(self, kind: str, role: TargetRole | None = None) -> TargetAdapter:
        del role  # a test has no IAM
        if kind == "worker":
            return self._worker
        return DagStarts() if kind == "dag" else EachElements() if kind == "each" else self.played(kind)

    def played(self, kind: str) -> PlayedTarget:
        if kind not in self._played:
            self._played[kind] = PlayedTarget(self._clock, registry.of_type(kind).has_lifecycle, self.script)
        return self._played[kind]

    def notices(self) -> list[tuple[Instant, Run]]:
        """The deliveries of notices to people, in order."""
        return sorted((each for target in self._played.values() for each in target.notices.values()), key=_first)

    def take_begun(self) -> list[Run]:
        """The runs that targets have accepted since the last call."""
        found: list[Run] = []
        for target in self._played.values():
            found += target.begun
            target.begun = []
        return found

    def assume(self, kind: str, role: TargetRole) -> NotAssumed | None:
        del kind, role
        return None

    def check(self, target: Mapping[str, Any]) -> None:
        from chalicelib.aws.targets import api_models  # imported here: it reads the models of botocore

        api_models.check(target)

    def probe(
        self, target: Mapping[str, Any], question: Mapping[str, Any], role: TargetRole | None = None
    ) -> bytes | Never | NoAnswer:
        del target, role
        self.questions.append(question)
        if not self.answers:
            return NoAnswer("the test has given no answer of a probe: call answer_probes")
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return json.dumps(answer).encode()

    def measure(self, source: Mapping[str, Any]) -> float | Never | NoAnswer:
        texts = _texts(source)
        found = next((value for name, value in self.measures if name is None or name in texts), None)
        return NoAnswer("the test has set no measurement: call measure") if found is None else found


def _texts(content: object) -> set[str]:
    """All texts in a document."""
    if isinstance(content, Mapping):
        return set().union(*map(_texts, content.values()))
    return {content} if isinstance(content, str) else set()
