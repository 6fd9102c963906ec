"""The whole system with a clock that the test sets: real flows on tables in memory, and fakes for the outside.

The test is the event loop: it uploads, lets hints arrive, moves the clock, and ticks. Crash points, crossings, random
worlds and acceptance tests all play in this world. What differs is an argument: other tables (moto, the local cloud),
settings. What wraps its ports is put around it: `crash.wrap`, `crossings.cross`, `slow_calls.SlowCalls`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from chalicelib.aws.tables.dynamo import Dynamo
from chalicelib.aws.tables.tries import Patience
from chalicelib.core.access.allowed import Allowed
from chalicelib.core.access.grants import Grants
from chalicelib.core.definitions.app import App
from chalicelib.core.definitions.message import Message
from chalicelib.core.definitions.schedule import NewSchedule
from chalicelib.core.events import partitions
from chalicelib.core.events.alarms import AlarmChange
from chalicelib.core.instants import iso
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Record, Run
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.rows.stops import Scope
from chalicelib.core.targets import registry
from chalicelib.core.targets.answers import StateChange
from chalicelib.flow import lookup
from chalicelib.flow.definitions import allow_list, grants, prefixes, store
from chalicelib.flow.definitions.prefixes import Place
from chalicelib.flow.deploy import deploy
from chalicelib.flow.deploy.plan import Report
from chalicelib.flow.ingest import objects, outbox
from chalicelib.flow.runs import complete
from chalicelib.flow.schedules import actions, messages, pauses, stops
from chalicelib.flow.schedules.stops import StopReportView
from chalicelib.ports import Ports
from chalicelib.settings import Settings
from sluice.testing.engine import Engine, make_ports, stopwatch
from sluice.testing.memory import MemoryHints, MemoryLake, MemoryMetrics, MemoryPayloads
from sluice.testing.memory_tables import MemoryTables
from tests.support import batch_jobs, ecs_tasks, eks_runs, glue, queries, tables
from tests.support.batch_jobs import BatchJob
from tests.support.clock import HandClock
from tests.support.fakes import APPLICATION, FakeTargets
from tests.support.glue import JobRun
from tests.support.queries import Query
from tests.support.snapshot import Outside
from tests.support.state_machines import Execution, event_of

EMR = {"type": "emr_serverless", "entry_point": "s3://code/job.py"}
SQS = {"type": "sqs", "queue_url": "https://sqs.example/sluice-target"}


def settings(names: dict[str, str], **tuned: Any) -> Settings:
    return Settings(
        **names,
        hints_queue_url="",
        lake_bucket="lake-bucket",
        control_bucket="control",
        emr_application_id=APPLICATION,
        emr_job_role_arn="arn:aws:iam::000000000000:role/job",
        **tuned,
    )


class World(Engine):
    """Without a client it has fresh tables in memory, which a test can read as ``tables``. With the client of another
    DynamoDB, ``names`` are the names of its tables. ``tuned`` are settings.
    """

    def __init__(
        self,
        client: Any = None,
        names: dict[str, str] | None = None,
        patience: Patience | None = None,
        **tuned: Any,
    ) -> None:
        if client is None:
            (client, names), patience = tables.in_memory(), stopwatch()
        self.tables = client
        self.outside = Outside()
        self.clock = HandClock()
        self.posted = 0
        self.alarms: dict[str, str] = {}
        self.hints = MemoryHints()
        self.targets = FakeTargets(self.clock)
        self.payloads = MemoryPayloads()
        self.lake = MemoryLake()
        self.metrics = MemoryMetrics()
        made = settings(names, **tuned)
        self.dynamo = Dynamo(client, made, patience, self.metrics, self.clock.now)
        self.ports = make_ports(
            self.dynamo, made, self.clock, self.hints, self.targets, self.payloads, self.lake, self.metrics
        )

    @property
    def is_in_memory(self) -> bool:
        """Whether the tables are those of this process, which a test can read and restore."""
        return isinstance(self.tables, MemoryTables)

    # -- users ---------------------------------------------------------------------------------------------------

    def deploy(self, document: dict[str, Any], namespace: str = "demo", app: str = "flights") -> Report:
        """Deploy an app in a namespace, to which an administrator has given the prefixes of its datasets."""
        store.put(self.ports, "namespace", namespace, {}, "tester")
        if self.ports.settings.authorization != "off":
            for dataset in document.get("datasets", {}).values():
                self.give(dataset["prefix"], namespace)
        return deploy.deploy(self.ports, namespace, app, App.model_validate(document), "tester")

    def put(self, name: str, document: dict[str, Any], checked: bool = False) -> None:
        actions.put(self.ports, full(name), NewSchedule.model_validate(document), "tester", checked=checked)

    def enable(self, name: str) -> None:
        actions.enable(self.ports, full(name), "tester")

    def disable(self, name: str) -> None:
        actions.disable(self.ports, full(name), "tester")

    def pause(self, name: str, mode: Any = "hold", stop_timeouts: bool = False) -> None:
        pauses.pause(self.ports, full(name), mode, "tester", stop_timeouts)

    def resume(self, name: str) -> None:
        pauses.resume(self.ports, full(name), "tester")

    def stop(
        self, place: str = "demo", tag: str = "", reason: str = "repair", stop_timeouts: bool = False
    ) -> StopReportView:
        return stops.stop(self.ports, Scope(place, tag), reason, "ann", timeouts="stop" if stop_timeouts else "count")

    def start(self, place: str = "demo", tag: str = "") -> StopReportView:
        return stops.start(self.ports, Scope(place, tag))

    def delete(self, name: str) -> None:
        actions.delete(self.ports, full(name), "tester")

    def run_now(self, name: str, request: str = "r1", at: int | None = None, **properties: Any) -> str:
        return actions.run_now(self.ports, full(name), properties, request, at)

    def grant(self, namespace: str, document: dict[str, Any]) -> None:
        """Replace what a namespace grants to others."""
        grants.put(self.ports, namespace, Grants.model_validate(document), "tester")

    def allow(self, namespace: str, **document: Any) -> None:
        """Replace the allow-list of a namespace."""
        allow_list.put(self.ports, namespace, Allowed.model_validate(document), "tester")

    def give(self, prefix: str, namespace: str = "demo") -> None:
        """Give a prefix of the lake to a namespace."""
        prefixes.give(self.ports, namespace, Place(self.ports.settings.lake_bucket, prefix), nested=False)

    def message(self, name: str, app: str = "demo.flights", if_match: int | None = None, **document: Any) -> None:
        messages.put(self.ports, app, name, Message.model_validate(document), "tester", if_match)

    # -- services outside Sluice ---------------------------------------------------------------------------------

    def upload(
        self, key: str, bucket: str = "lake-bucket", size: int = 0, etag: str = "", text: str | bytes = ""
    ) -> str:
        """Put an object, and deliver its notification."""
        self.lake.objects[bucket, key] = text
        self.lake.put_at[bucket, key], self.lake.sizes[bucket, key] = self.clock.now(), size
        return objects.match_object(self.ports, partitions.ObjectCreated(bucket, key, self.clock.now(), size, etag))

    def post(self, kind: str, source: str = "", namespace: str = "demo", **payload: Any) -> None:
        """Post a custom event; without a source each event is a new one."""
        self.posted += 1
        outbox.post(self.ports, namespace, [outbox.Envelope(kind, source or f"n{self.posted}", payload)])

    def alarm(self, name: str, state: str = "ALARM", delivered: bool = True) -> AlarmChange:
        """Set an alarm to a state, and deliver CloudWatch's event. Returns the change, to deliver it again."""
        arn, before = f"arn:aws:cloudwatch:us-east-1:000000000000:alarm:{name}", self.alarms.get(name)
        change = AlarmChange(name, arn, state, before, f"{name} is {state}", self.clock.now())
        self.alarms[name] = state
        if delivered:
            self.deliver_alarm(change)
        return change

    def deliver_alarm(self, change: AlarmChange) -> str:
        """Deliver the event of a change. Returns the result."""
        return outbox.match_alarm(self.ports, change)

    def emr_says(self, job_run_id: str, state: str, details: str = "") -> str:
        """EMR's run reaches a state, and its event arrives."""
        run = self.targets.emr.runs[job_run_id]
        run.state, run.details = state, details
        return complete.on_state_change(self.ports, state_change(job_run_id, state, self.clock.now()))

    def execution_says(self, execution: Execution, status: str, **why: str) -> str:
        """An execution of Step Functions reaches a status, and its event arrives."""
        if status == "RUNNING":
            execution.status, execution.ended = status, None
        else:
            self.targets.machines.end(execution, status, **why)
        return self.event(event_of(execution, self.clock.now()))

    def batch_says(self, job: BatchJob, status: str, why: str = "", **container: Any) -> str:
        """A job of Batch reaches a state, and its event arrives."""
        jobs = self.targets.batch_jobs
        if status == "RUNNING":
            jobs.begin(job)
        else:
            jobs.end(job, status, why, **container)
        return self.event(batch_jobs.event_of(jobs, job))

    def task_says(self, task: ecs_tasks.Task, exit_code: int | None = None, **ended: Any) -> str:
        """A task of ECS runs, or ends by an exit code or a stop code (``code``, ``reason``), and its event arrives."""
        if exit_code is None and not ended:
            self.targets.tasks.begin(task)
        else:
            self.targets.tasks.end(task, exit_code, **ended)
        return self.event(ecs_tasks.event_of(task, self.clock.now()))

    def job_run_says(self, run: JobRun, state: str, message: str = "") -> str:
        """A job run of Glue ends, and its event arrives."""
        self.targets.jobs.end(run, state, message)
        return self.event(glue.event_of(run, self.clock.now()))

    def eks_says(self, run: eks_runs.EksRun, state: str, details: str = "", failure: str = "") -> str:
        """A job run of EMR on EKS reaches a state, and its event arrives."""
        if state == "RUNNING":
            run.state = state
        else:
            self.targets.eks_runs.end(run, state, details, failure)
        return self.event(eks_runs.event_of(run, self.clock.now()))

    def query_says(self, query: Query, state: str, reason: str = "", **changed: Any) -> str:
        """A query of Athena reaches a state, and its event arrives."""
        if state == "RUNNING":
            query.state = state
        else:
            self.targets.queries.end(query, state, reason, **changed)
        return self.event(queries.event_of(query, self.clock.now()))

    def event(self, event: dict[str, Any]) -> str:
        """Deliver an event of EventBridge about a run at its target."""
        return complete.on_state_change(self.ports, registry.of_event(event).read_event(event))

    def finish(self, state: str = "SUCCESS", details: str = "") -> int:
        """End every EMR run that has not ended in this state. Returns how many there were."""
        live = [run.id for run in self.targets.emr.runs.values() if run.state in ("SUBMITTED", "RUNNING")]
        for run_id in live:
            self.emr_says(run_id, "RUNNING")
            self.emr_says(run_id, state, details)
        return len(live)

    # -- time ----------------------------------------------------------------------------------------------------

    def settle_only(self, name: str) -> None:
        """Let the hints about one schedule arrive; those about others stay in the queue."""
        mine = [hint for hint in self.hints.sent if hint[1].parts[0] == full(name)]
        others = [hint for hint in self.hints.sent if hint not in mine]
        self.hints.sent = mine
        self.settle()
        self.hints.sent += others

    # -- stored rows ---------------------------------------------------------------------------------------------

    def runs(self, name: str) -> list[Run]:
        """Runs of a schedule, oldest first."""
        return list(reversed(self.ports.runs.runs("schedule", full(name), 500, None).items))

    def jobs(self, name: str) -> list[Job]:
        schedule_state = self.ports.rows.get(ScheduleState, full(name))
        if schedule_state is None:
            return []
        found = lookup.every(partial(self.ports.jobs.jobs, full(name), schedule_state.generation))
        return [job for job in found if not job.closed]

    def records(self, name: str) -> list[Record]:
        return list(lookup.every(partial(self.ports.runs.records, "schedule", full(name))))[::-1]

    def limit_state(self, name: str) -> Any:
        return self.ports.jobs.limit_state(name)

    def context(self, run: Run) -> Any:
        return self.payloads.context(run.run_id)

    def given(self, run: Run) -> list[dict[str, Any]]:
        """The events that a run got, in its context or in its manifest."""
        found: list[dict[str, Any]] = self.context(run)["events"] or self.payloads.manifests[run.run_id]
        return found

    def with_ports(self, **changed: Any) -> Ports:
        return replace(self.ports, **changed)


def state_change(job_run_id: str, state: str, now: int) -> StateChange:
    """The event of EMR when a job run reaches a state."""
    detail = {"applicationId": APPLICATION, "jobRunId": job_run_id, "state": state}
    event = {"source": "aws.emr-serverless", "time": iso(now), "detail": detail}
    return registry.of_event(event).read_event(event)


def full(name: str) -> str:
    return name if name.count(".") == 2 else f"demo.flights.{name}"


def flights(schedules: dict[str, Any], **workflows: Any) -> dict[str, Any]:
    """An app over two datasets of days: flights (ready at its flag) and weather (ready at its first object)."""
    keys = ["year", "month", "day"]
    return {
        "datasets": {
            "flights": {"bucket": "lake", "prefix": "raw/flights/", "keys": keys, "ready": {"done_flag": "_SUCCESS"}},
            "weather": {"bucket": "lake", "prefix": "raw/weather/", "keys": keys},
        },
        "workflows": {"clean": {"target": EMR}, "join": {"target": EMR}, "notify": {"target": SQS}} | workflows,
        "schedules": schedules,
    }


def day(number: int, dataset: str = "flights", name: str = "_SUCCESS") -> str:
    return f"raw/{dataset}/year=2013/month=1/day={number}/{name}"
