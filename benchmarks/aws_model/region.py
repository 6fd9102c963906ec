"""A deployed installation in virtual time: the product's handlers, flows and adapters on the services of the model.

Every environment of a function has ports of its own, as a Lambda has. Only one task runs at a time, so the handlers
find the ports of the invocation that runs.
"""

from __future__ import annotations

import gc
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

from benchmarks.aws_model.assumptions import Assumptions, Draws
from benchmarks.aws_model.dynamo import ModelDynamo
from benchmarks.aws_model.functions import Account, Context, Function, Lambda, Pollers, Source
from benchmarks.aws_model.invocation import CallPath, Cpu
from benchmarks.aws_model.services import BURSTS, HINTS, OBJECTS, S3, Emr, Sqs, Target
from benchmarks.aws_model.throughput import Warm
from benchmarks.aws_model.timeline import Timeline
from benchmarks.cost.plant import BEGIN, CONTROL, LAKE, ROLE, Targets, fresh_tables
from benchmarks.cost.prices import LAMBDA_GB_SECOND, LAMBDA_REQUEST
from benchmarks.cost.services import APPLICATION
from chalicelib import handlers
from chalicelib.aws.failures import FailedMessages
from chalicelib.aws.hints import SqsHints
from chalicelib.aws.s3.lake import S3Lake
from chalicelib.aws.s3.payloads import S3Payloads
from chalicelib.aws.tables.audited import AuditedLedger
from chalicelib.aws.tables.dynamo import Dynamo
from chalicelib.aws.tables.table_ports import table_ports
from chalicelib.aws.tables.tries import Patience
from chalicelib.aws.targets.emr_serverless import EmrServerlessTarget
from chalicelib.aws.targets.sqs import SqsTarget
from chalicelib.core.definitions.app import App
from chalicelib.core.instants import MINUTE, Instant, iso
from chalicelib.flow.definitions import store
from chalicelib.flow.deploy import deploy
from chalicelib.log import logger
from chalicelib.ports import Ports
from chalicelib.settings import Settings
from chalicelib.wiring import AUTHOR, acting

# As in .chalice/config.json and the defaults of infra/resources/parameters.yaml; a test compares them.
FUNCTIONS = {
    "api": Function("api", 1769, 29_000),
    "tick": Function("tick", 1024, 60_000),
    "objects": Function("objects", 512, 60_000),
    "check": Function("check", 512, 120_000),
    "burst": Function("burst", 1769, 120_000, code_of="check"),
    "run_state": Function("run_state", 512, 60_000),
}
# The queues that invoke functions, likewise.
SOURCES = {HINTS: Source(10, 20), BURSTS: Source(1, 100), OBJECTS: Source(10, 10)}
VISIBILITY_MS = 720_000.0
WARM_TABLES = ("CatalogTable", "JobsTable", "RunsTable")  # of WarmWriteUnits; a test compares them
ARN = "arn:aws:sqs:us-east-1:123456789012:"


class ModelClock:
    """Implements `ports.Clock` in virtual time."""

    def __init__(self, path: CallPath) -> None:
        self._path = path

    def now(self) -> Instant:
        return int(self._path.timeline.local)

    def wait_until(self, instant: Instant) -> None:
        self._path.wait_until(float(instant))


class NoFlush:
    """Metrics that discard every measurement; their CPU is part of `runtime_cpu_ms`."""

    def add(self, measure: object, value: float, reason: str = "") -> None: ...

    def flush(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Setup:
    """What distinguishes one installation of the model from another. ``warm_writes`` and ``warm_reads`` are the
    parameters WarmWriteUnits and WarmReadUnits; 0 leaves the tables new."""

    assumed: Assumptions = field(default_factory=Assumptions)
    seed: int = 1
    functions: Mapping[str, Function] = field(default_factory=lambda: FUNCTIONS)
    sources: Mapping[str, Source] = field(default_factory=lambda: SOURCES)
    settings: Mapping[str, Any] = field(default_factory=dict)
    warm_writes: float = 0.0
    warm_reads: float = 12_000.0

    @property
    def warm(self) -> dict[str, Warm]:
        return dict.fromkeys(WARM_TABLES, Warm(self.warm_writes, self.warm_reads)) if self.warm_writes else {}

    def at_memory(self, memory: int, *names: str) -> Setup:
        """The same with this memory (MB) for some functions, or for all."""
        changed = {
            name: replace(function, memory=memory) if name in names or not names else function
            for name, function in self.functions.items()
        }
        return replace(self, functions=changed)


class Region:
    """An installation. Use it in a ``with`` statement of `opened`, which ends its threads."""

    def __init__(self, setup: Setup, cpu: Cpu) -> None:
        self.setup = setup
        self.timeline = Timeline(float(BEGIN))
        self.target = Target()
        self.noticed: list[float] = []  # when S3 has sent each notification
        self.raised: list[str] = []  # errors of handlers that Lambda would report
        handlers.follower.cache_clear()  # the tick of a new installation reads which rules of zones its rows follow
        draws = Draws(setup.assumed, setup.seed)
        self.path = CallPath(self.timeline, setup.assumed, draws)
        self.tables, names, schema = fresh_tables()
        self.dynamo = ModelDynamo(self.tables, schema, self.path, setup.warm)
        self._clock = ModelClock(self.path)
        self.sqs = Sqs(self.path, self.target)
        self.objects = Sqs(self.path, self.target)
        self.s3 = S3(self.path)
        self.emr = Emr(self.path, self.target, self._reports)
        self._settings = Settings(
            catalog_table=names["catalog_table"],
            jobs_table=names["jobs_table"],
            runs_table=names["runs_table"],
            hints_queue_url=HINTS,
            burst_hints_queue_url=BURSTS,
            lake_bucket=LAKE,
            control_bucket=CONTROL,
            emr_application_id=APPLICATION,
            emr_job_role_arn=ROLE,
            **({"keep_warm": True} | dict(setup.settings)),
        )
        self.account = Account(setup.assumed.account_concurrency, list(setup.functions.values()))
        self.lambdas = {
            name: Lambda(function, self.path, cpu, self._ports, self.account)
            for name, function in setup.functions.items()
        }
        self._ports_of_task: dict[int, Ports] = {}
        self.free = self._ports()
        self.check = self._pollers("check", self.sqs, HINTS, handlers.hints)
        self.bursts = self._pollers("burst", self.sqs, BURSTS, handlers.hints)
        self._objects = self._pollers("objects", self.objects, OBJECTS, lambda event, _: handlers.objects(event))

    # -- what happens ------------------------------------------------------------------------------------------------

    def deploy(self, app: dict[str, Any]) -> None:
        """Deploy an app at once, without duration: to set up a scenario."""
        store.put(self.free, "namespace", "demo", {}, "bench")
        deploy.deploy(self.free, "demo", "flights", App.model_validate(app), "bench")

    def tick_every_minute(self) -> None:
        """Ticks at a constant part of each minute, each a little late, now and then twice."""
        assumed, draws = self.setup.assumed, self.path.draws
        part = draws.between(0, MINUTE)

        def minute(start: float) -> None:
            for _ in range(2 if draws.happens(assumed.tick_twice_share) else 1):
                at = start + draws.duration(assumed.tick_late_ms)
                self.timeline.at(at, lambda: self.invoke("tick", lambda: handlers.tick()))
            self.timeline.at(start + MINUTE, lambda: minute(start + MINUTE))

        minute(self.timeline.now // MINUTE * MINUTE + part)

    def upload(self, key: str) -> None:
        """An object was put: S3 reports it."""
        entity = {"bucket": {"name": LAKE}, "object": {"key": key.replace("=", "%3D")}}
        record = {"eventName": "ObjectCreated:Put", "eventTime": iso(int(self.timeline.local)), "s3": entity}
        assumed = self.setup.assumed
        delay = self.path.draws.duration(assumed.s3_notification_ms, assumed.s3_notification_sigma)
        self.noticed.append(self.timeline.local + delay)
        self.objects.enqueue(OBJECTS, json.dumps({"Records": [record]}), delay)

    def invoke(
        self, name: str, act: Callable[[], Any], then: Callable[[bool], None] = lambda whole: None, kind: str = ""
    ) -> None:
        """An invocation of a function that no queue drives; ``kind`` as in `Lambda.invoke`."""

        def work(ports: Ports, context: Context) -> None:
            self._run(ports, act)

        if not self.lambdas[name].invoke(work, 1, then, kind):
            retry = self.setup.assumed.throttled_retry_ms
            self.timeline.at(self.timeline.local + retry, lambda: self.invoke(name, act, then, kind))

    @property
    def present(self) -> Ports:
        """The ports of the running invocation."""
        return self._ports_of_task[id(self.timeline.current)]

    @property
    def wake_shards(self) -> int:
        return self._settings.wake_shards

    def usd_of_lambda(self) -> float:
        """Dollars of the functions so far."""
        return sum(
            one.usage.billed_ms / 1000 * one.function.memory / 1024 * LAMBDA_GB_SECOND
            + one.usage.invocations * LAMBDA_REQUEST
            for one in self.lambdas.values()
        )

    # -- parts -------------------------------------------------------------------------------------------------------

    def _reports(self, application: str, run_id: str, state: str) -> None:
        detail = {"applicationId": application, "jobRunId": run_id, "state": state}
        event = {"source": "aws.emr-serverless", "time": iso(int(self.timeline.local)), "detail": detail}
        self.invoke("run_state", lambda: handlers.run_state(event))

    def _pollers(
        self, name: str, sqs: Sqs, queue: str, handle: Callable[[dict[str, Any], Any], dict[str, Any]]
    ) -> Pollers[Ports]:
        def run(ports: Ports, event: dict[str, Any], context: Context) -> dict[str, Any]:
            answer: dict[str, Any] | None = self._run(ports, lambda: handle(event, context))
            if answer is None:  # an error of the handler fails the whole batch
                return {"batchItemFailures": [{"itemIdentifier": each["messageId"]} for each in event["Records"]]}
            return answer

        source = self.setup.sources[queue]
        pollers = Pollers(self.lambdas[name], sqs, self.path, run, ARN + queue, VISIBILITY_MS, source)
        sqs.comes[queue] = pollers.comes
        return pollers

    def _run(self, ports: Ports, act: Callable[[], Any]) -> Any:
        """The answer of a handler; None if it raised."""
        task = id(self.timeline.current)
        self._ports_of_task[task] = ports
        try:
            return act()
        except Exception as error:
            self.raised.append(f"{type(error).__name__}: {error}")
            return None
        finally:
            del self._ports_of_task[task]

    def _ports(self) -> Ports:
        """The ports of a new environment."""
        local = self.timeline
        patience = Patience(
            now=lambda: local.local / 1000,
            sleep=lambda seconds: self.path.wait_until(local.local + 1000 * seconds),
            draw=self.path.draws.between,
        )
        dynamo = Dynamo(self.dynamo, self._settings, patience, now=self._clock.now)
        emr = EmrServerlessTarget(
            self.emr, APPLICATION, ROLE, CONTROL, lambda seconds: self.path.wait_until(local.local + 1000 * seconds)
        )
        return Ports(
            clock=self._clock,
            ledger=AuditedLedger(dynamo, AUTHOR.get, self._clock, self._settings.audit_days),
            **table_ports(dynamo),
            hints=SqsHints(self.sqs, HINTS, self._clock, BURSTS),
            targets=Targets(emr, SqsTarget(self.sqs)),
            payloads=S3Payloads(self.s3, CONTROL),
            lake=S3Lake(self.s3),
            settings=self._settings,
            author=AUTHOR.get,
            acting=acting,
        )


@contextmanager
def opened(setup: Setup, cpu: Cpu) -> Iterator[Region]:
    """A region whose handlers run on its services. Ends its threads."""
    region = Region(setup, cpu)
    present, messages = (lambda: region.present), FailedMessages
    level = logger.log_level
    gc.disable()  # the rows of the tables are many, and their collection is no part of the model
    logger.setLevel(logging.CRITICAL)
    with (
        patch.object(handlers, "ports", present),
        patch.object(handlers, "metrics", lambda: NoFlush()),
        patch.object(handlers, "failed_messages", lambda arn: messages(region.sqs, arn)),
    ):
        try:
            yield region
        finally:
            region.timeline.close()
            gc.enable()
            logger.setLevel(level)
