"""Fakes of the targets. They keep the guarantees of the real targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import ClientError

from chalicelib.aws.targets import api_models
from chalicelib.aws.targets.assumed import AssumedRoles
from chalicelib.aws.targets.athena import AthenaTarget
from chalicelib.aws.targets.aws_api import AwsApiTarget
from chalicelib.aws.targets.batch import BatchTarget
from chalicelib.aws.targets.dag_start import DagStarts
from chalicelib.aws.targets.each import EachElements
from chalicelib.aws.targets.ecs import EcsTarget
from chalicelib.aws.targets.emr_eks import EmrEksTarget
from chalicelib.aws.targets.glue import GlueTarget
from chalicelib.aws.targets.step_functions import StepFunctionsTarget
from chalicelib.aws.targets.worker import WorkerTarget
from chalicelib.core.instants import Instant, Millis
from chalicelib.core.results import NONE, of_value
from chalicelib.core.rows.run import Run
from chalicelib.core.runs.target_roles import NotAssumed, TargetRole
from chalicelib.core.states import EMR_STATE, is_terminal
from chalicelib.core.targets.answers import Answer, Never, NoAnswer, NotNow, RunUpdate, Started
from sluice.operations.ports import Begun
from tests.support.api_calls import ApiCalls
from tests.support.batch_jobs import BatchJobs
from tests.support.ecs_tasks import Tasks
from tests.support.eks_runs import EksRuns
from tests.support.glue import GlueJobs
from tests.support.queries import Queries
from tests.support.state_machines import StateMachines

APPLICATION = "00app"


@dataclass
class EmrRun:
    id: str
    name: str
    token: str
    state: str = "SUBMITTED"
    details: str = ""
    request: Mapping[str, Any] = field(default_factory=dict)
    billed: tuple[int, ...] = (25, 100, 0)
    reckoned_at: Instant | None = None
    at: Instant = 0


class FakeEmr:
    """EMR Serverless with its guarantees: a token starts one run, also if the call is repeated."""

    def __init__(self, clock: Any) -> None:
        self._clock = clock
        self.runs: dict[str, EmrRun] = {}
        self.answers: list[Answer] = []  # answers to give instead of starting, the first one first
        self.lose_answers = 0  # how many starts succeed without an answer
        self.calls: list[str] = []
        self.called_at: list[Instant] = []
        self.polled_together: list[int] = []  # the number of runs in each poll of several
        self.reckons_after: Millis = 0  # the delay of a bill after the first poll of the ended run
        self.asked_about: list[str] = []  # the names of the runs that had ended when they were polled

    def start(self, run: Run, context: Mapping[str, Any]) -> Answer:
        from chalicelib.core.targets.answers import NoAnswer

        self.calls.append(run.request.name)
        self.called_at.append(self._clock.now())
        if self.answers:
            return self.answers.pop(0)
        token = run.request.client_token
        known = next((made for made in self.runs.values() if made.token == token), None)
        if known is None:
            number, at = len(self.runs) + 1, self._clock.now()
            known = EmrRun(f"jr{number:05d}", run.request.name, token, request=context, at=at)
            self.runs[known.id] = known
        if self.lose_answers:
            self.lose_answers -= 1
            return NoAnswer("the connection broke")
        return Started(f"{APPLICATION}/{known.id}")

    def start_many(self, calls: Sequence[tuple[Run, Mapping[str, Any]]]) -> list[Answer]:
        return [self.start(run, context) for run, context in calls]

    def status(self, run: Run) -> RunUpdate | None:
        found = self.runs.get((run.target_id or "").partition("/")[2])
        state = EMR_STATE[found.state] if found else "STARTING"
        if found is None and run.target_id is not None:
            return RunUpdate("FAILED", self._clock.now(), "the target no longer knows this run", run.target_id)
        if found is None or state == "STARTING":
            return None
        return RunUpdate(state, self._clock.now(), found.details, run.target_id, billed=self._bill(found))

    def _bill(self, found: EmrRun) -> tuple[int, ...]:
        if not is_terminal(EMR_STATE[found.state]):
            return ()
        self.asked_about.append(found.name)
        if found.reckoned_at is None:
            found.reckoned_at = self._clock.now() + self.reckons_after
        return found.billed if found.reckoned_at <= self._clock.now() else ()

    def status_many(self, runs: Sequence[Run]) -> list[RunUpdate | None]:
        self.polled_together.append(len(runs))
        return [self.status(run) for run in runs]

    def find(self, run: Run) -> str | None:
        return next((f"{APPLICATION}/{made.id}" for made in self.runs.values() if made.name == run.request.name), None)

    def cancel(self, run: Run) -> None:
        self.runs[(run.target_id or "").partition("/")[2]].state = "CANCELLED"

    def started_since(self, instant: Instant) -> Iterator[Begun]:
        for made in self.runs.values():
            if made.at >= instant:
                yield Begun(f"{APPLICATION}/{made.id}", made.name, made.at)

    def run_name(self, target_id: str) -> str | None:
        found = self.runs.get(target_id.partition("/")[2])
        return found.name if found else None


class FakeQueue:
    """A target without a lifecycle: every message that it accepted, repeats included, and when."""

    def __init__(self, clock: Any) -> None:
        self._clock = clock
        self.messages: list[tuple[str, Mapping[str, Any]]] = []
        self.data: list[Mapping[str, Any] | None] = []  # the data of the messages, one by one
        self.sent_at: list[Instant] = []
        self.refuse = 0
        self.answers: list[Answer] = []  # answers to give instead of accepting the message, the first one first
        self.down: Answer | None = None  # the answer to everything, while it is set
        self.tried: list[tuple[str, int, Instant | None]] = []  # id, attempt, and when it was due
        self.takes: Millis = 0  # how long a call takes
        self.returns: Any = None  # the answer of a function that is called with wait

    def start(self, run: Run, context: Mapping[str, Any]) -> Answer:
        self.tried.append((run.run_id, run.attempt, run.due_at))
        if self.down is not None:
            return self.down
        if self.answers:
            return self.answers.pop(0)
        if self.refuse:
            self.refuse -= 1
            return NotNow("the queue is throttled")
        self.messages.append((run.run_id, context))
        self.data.append(run.request.data)
        self.sent_at.append(self._clock.now())
        result = of_value(self.returns) if run.request.target.get("wait") else NONE
        return Started(f"m{len(self.messages)}", done=True, result=result)

    def start_many(self, calls: Sequence[tuple[Run, Mapping[str, Any]]]) -> list[Answer]:
        answers = [self.start(run, context) for run, context in calls]
        if self.takes:
            self._clock.wait_until(self._clock.now() + self.takes)
        return answers

    def status(self, run: Run) -> RunUpdate | None:
        return None

    def status_many(self, runs: Sequence[Run]) -> list[RunUpdate | None]:
        return [None for _ in runs]

    def find(self, run: Run) -> str | None:
        return None

    def cancel(self, run: Run) -> None:
        return None


class FakeSts:
    """STS: sessions of an hour. Refusals, and with which role each call of a target was made."""

    def __init__(self, clock: Any) -> None:
        self._clock = clock
        self.assumed: list[Mapping[str, Any]] = []  # the requests that STS answered with credentials
        self.tries = 0
        self.down = ""  # the error code of every call, while it is set
        self.denied: set[str] = set()  # the ARNs of roles that IAM refuses
        self.until: dict[str, Instant] = {}  # of the sessions, by access key
        self.called_as: list[tuple[str, str, str]] = []  # the call, the run, and the role with which it was made
        self.expired: list[tuple[str, str]] = []  # calls of targets with credentials that had ended

    def assume_role(self, **request: Any) -> dict[str, Any]:
        self.tries += 1
        code = self.down or ("AccessDenied" if request["RoleArn"] in self.denied else "")
        if code:
            raise ClientError({"Error": {"Code": code, "Message": f"{code} for {request['RoleArn']}"}}, "AssumeRole")
        key, end = f"key{len(self.assumed)}", self._clock.now() + request["DurationSeconds"] * 1_000
        self.assumed.append(request)
        self.until[key] = end
        made = {"AccessKeyId": key, "SecretAccessKey": "secret", "SessionToken": "token"}
        return {"Credentials": {**made, "Expiration": datetime.fromtimestamp(end / 1_000, UTC)}}

    def note(self, call: str, run: str, role: TargetRole, access_key: str) -> None:
        self.called_as.append((call, run, role.arn))
        if self._clock.now() >= self.until[access_key]:
            self.expired.append((call, run))


class _AsRole:
    """An adapter whose calls are made with the credentials of a role."""

    def __init__(self, inner: Any, role: TargetRole, targets: FakeTargets) -> None:
        self._inner, self._role, self._targets = inner, role, targets

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)

        def call(*args: Any) -> Any:
            key = self._targets.roles.present(self._role).access_key
            for run in _runs_of(args[0]):
                self._targets.sts.note(name, run.run_id, self._role, key)
            return method(*args)

        return call


def _runs_of(argument: Any) -> list[Run]:
    many = argument if isinstance(argument, Sequence) else [argument]
    return [each[0] if isinstance(each, tuple) else each for each in many]


class FakeTargets:
    def __init__(self, clock: Any) -> None:
        self.sts = FakeSts(clock)
        self.roles = AssumedRoles(lambda: self.sts, _no_client, clock.now, "test")
        self.emr = FakeEmr(clock)
        self.queue = FakeQueue(clock)
        self.worker = WorkerTarget(clock.now)
        self.machines = StateMachines(clock)
        self.step_functions = StepFunctionsTarget(self.machines, clock.now, pause=lambda seconds: None)
        self.batch_jobs = BatchJobs(clock)
        self.batch = BatchTarget(self.batch_jobs, clock.now, pause=lambda seconds: None)
        self.tasks = Tasks(clock)
        self.ecs = EcsTarget(self.tasks, clock.now, pause=lambda seconds: None)
        self.jobs = GlueJobs(clock)
        self.glue = GlueTarget(self.jobs, clock.now, pause=lambda seconds: None)
        self.calls = ApiCalls()
        self.api = AwsApiTarget(self.calls.make)
        self.queries = Queries(clock)
        self.athena = AthenaTarget(self.queries, clock.now, pause=lambda seconds: None)
        self.eks_runs = EksRuns(clock)
        self.emr_eks = EmrEksTarget(self.eks_runs, clock.now, pause=lambda seconds: None)
        self.says: list[bytes | Never | NoAnswer] = []  # answers of a probe in turn; the last one repeats
        self.load: float | Never | NoAnswer = 0.0  # the external measurement
        self.measured: list[Mapping[str, Any]] = []
        self.asked: list[tuple[Mapping[str, Any], Mapping[str, Any]]] = []

    def of(self, kind: str, role: TargetRole | None = None) -> Any:
        return self._of(kind) if role is None else _AsRole(self._of(kind), role, self)

    def assume(self, kind: str, role: TargetRole) -> NotAssumed | None:
        return self.roles.renew(role)

    def check(self, target: Mapping[str, Any]) -> None:
        api_models.check(target)

    def _of(self, kind: str) -> Any:
        if kind == "worker":
            return self.worker
        if kind in ("step_functions", "ecs", "batch", "glue", "athena", "emr_eks"):
            return vars(self)[kind]  # the real one, on a simulated service
        if kind == "aws_api":
            return self.api  # so is this
        if kind == "dag":
            return DagStarts()  # the real one: it calls no service that needs a fake
        if kind == "each":
            return EachElements()  # as well
        return self.emr if kind == "emr_serverless" else self.queue

    def probe(
        self, target: Mapping[str, Any], question: Mapping[str, Any], role: TargetRole | None = None
    ) -> bytes | Never | NoAnswer:
        if role is not None:
            self.sts.note("probe", str(question.get("job_id")), role, self.roles.present(role).access_key)
        self.asked.append((target, question))
        return self.says.pop(0) if len(self.says) > 1 else self.says[0]

    def measure(self, source: Mapping[str, Any]) -> float | Never | NoAnswer:
        self.measured.append(source)
        return self.load


def _no_client(credentials: Any, service: str, **options: Any) -> Any:
    raise AssertionError(f"expected calls of fakes alone, got a client of {service}")
