"""The whole system with a meter at every connection: the real handlers, flows and adapters, the tables in memory.

The benchmark sets the clock and simulates external systems: objects arrive, hints become due, EMR reports states,
minutes pass. Every message causes one invocation, as in a quiet system; under load up to ten share one, which is
cheaper.
"""

from __future__ import annotations

import heapq
import io
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, redirect_stdout
from functools import cache
from itertools import count
from typing import Any
from unittest.mock import patch

from benchmarks.cost.meter import MeteredDynamo, Schema, table_of
from benchmarks.cost.services import APPLICATION, S3, Clock, Emr, Sqs
from benchmarks.cost.tally import LAMBDA_LINES, Tally
from benchmarks.machine import ROOT
from chalicelib import handlers
from chalicelib.aws.hints import SqsHints
from chalicelib.aws.metrics import EmfMetrics
from chalicelib.aws.s3.lake import S3Lake
from chalicelib.aws.s3.payloads import S3Payloads
from chalicelib.aws.tables.dynamo import Dynamo
from chalicelib.aws.tables.items import to_item
from chalicelib.aws.tables.table_ports import table_ports
from chalicelib.aws.targets.emr_serverless import EmrServerlessTarget
from chalicelib.aws.targets.sqs import SqsTarget
from chalicelib.core import zones
from chalicelib.core.definitions.app import App
from chalicelib.core.instants import MINUTE, iso, parse_instant
from chalicelib.core.rows.schedule import ZoneRules
from chalicelib.core.runs.target_roles import NotAssumed, TargetRole
from chalicelib.core.targets.answers import Never, NoAnswer
from chalicelib.flow.definitions import store
from chalicelib.flow.deploy import deploy
from chalicelib.log import logger
from chalicelib.ports import NoMetrics, Ports, TargetAdapter
from chalicelib.settings import Settings
from sluice.testing.memory_tables import MemoryTables
from tests.support import tables as template_tables

# Names as long as real ones: they are in rows, which are billed by size.
LAKE = "sluice-prod-lake-123456789012-us-east-1"
CONTROL = "sluice-prod-control-123456789012-us-east-1"
ROLE = "arn:aws:iam::123456789012:role/sluice-prod-jobs"
HINTS, BURSTS = "hints", "bursts"
RECEIVERS = {HINTS: "check", BURSTS: "burst"}  # the Lambda of each queue of hints
# Ticks come at an arbitrary but constant fraction of a second. With this one, a hint for a whole second arrives half a
# second before its head start, which is the average.
BEGIN = parse_instant("2026-03-02T12:00:20.300Z")


_definitions = cache(template_tables.definitions)


class Targets:
    def __init__(self, emr: EmrServerlessTarget, sqs: SqsTarget) -> None:
        self._by_kind: dict[str, TargetAdapter] = {"emr_serverless": emr, "sqs": sqs}

    def of(self, kind: str, role: TargetRole | None = None) -> TargetAdapter:
        return self._by_kind[kind]

    def assume(self, kind: str, role: TargetRole) -> NotAssumed | None:
        raise NotImplementedError("no measured path has a target role")

    def check(self, target: Mapping[str, Any]) -> None:
        raise NotImplementedError("no measured path puts a call of an API")

    def probe(
        self, target: Mapping[str, Any], question: Mapping[str, Any], role: TargetRole | None = None
    ) -> bytes | Never | NoAnswer:
        raise NotImplementedError("no measured path has a probe")

    def measure(self, source: Mapping[str, Any]) -> float | Never | NoAnswer:
        raise NotImplementedError("no measured path has a load constraint")


class Plant:
    """``around`` wraps the metered client, so every call of the product passes it, and no other call does. ``logged``:
    count what the Lambdas log, metrics included, instead of showing it."""

    def __init__(
        self,
        client: Any,
        names: dict[str, str],
        schema: Schema,
        around: Callable[[Any], Any] = lambda metered: metered,
        *,
        logged: bool = False,
    ) -> None:
        self.tally = new_tally()
        self._metrics = EmfMetrics("prod") if logged else None
        self.ticks = 0
        self._agenda: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()
        self.clock = Clock(BEGIN, lambda: self.tally)
        self._dynamo = MeteredDynamo(client, schema, self.tally)
        sqs = Sqs(lambda: self.tally, self._later, self._on_hint)
        emr = Emr(lambda: self.tally, self._later, self._on_run_state)
        self.sqs, self.emr = sqs, emr
        settings = Settings(
            catalog_table=names["catalog_table"],
            jobs_table=names["jobs_table"],
            runs_table=names["runs_table"],
            hints_queue_url=HINTS,
            lake_bucket=LAKE,
            control_bucket=CONTROL,
            emr_application_id=APPLICATION,
            emr_job_role_arn=ROLE,
        )
        dynamo = Dynamo(around(self._dynamo), settings, now=self.clock.now, metrics=self._metrics)
        self.ports = Ports(
            clock=self.clock,
            ledger=dynamo,
            **table_ports(dynamo),
            hints=SqsHints(sqs, HINTS, self.clock, BURSTS),
            targets=Targets(EmrServerlessTarget(emr, APPLICATION, ROLE, CONTROL), SqsTarget(sqs)),
            payloads=S3Payloads(S3(lambda: self.tally), CONTROL),
            lake=S3Lake(S3(lambda: self.tally)),
            settings=settings,
            metrics=self._metrics or NoMetrics(),
        )
        self._later(MINUTE, self._on_minute)

    @property
    def launched(self) -> int:
        """The number of runs that have reached their target."""
        return len(self.emr.names) + self.sqs.delivered_to_targets

    def deploy(self, app: dict[str, Any]) -> None:
        store.put(self.ports, "namespace", "demo", {}, "bench")
        deploy.deploy(self.ports, "demo", "flights", App.model_validate(app), "bench")

    def restart_meter(self) -> None:
        """Reset the counters; the state of the system stays."""
        self.tally = self._dynamo.tally = new_tally()
        self.ticks = 0

    def upload(self, key: str) -> None:
        """Put an object into the lake, and its S3 notification into the queue."""
        self.tally.call("sqs", "SendMessage")
        entity = {"bucket": {"name": LAKE}, "object": {"key": key.replace("=", "%3D")}}
        record = {"eventName": "ObjectCreated:Put", "eventTime": iso(self.clock.now()), "s3": entity}
        self._from_queue("objects", handlers.objects, json.dumps({"Records": [record]}))

    def pass_by(self, span: int) -> None:
        """Advance the clock by a span in ms, and handle everything that becomes due."""
        end = self.clock.now() + span
        while self._agenda and self._agenda[0][0] <= end:
            at, _, act = heapq.heappop(self._agenda)
            self.clock.instant = max(self.clock.instant, at)
            act()
        self.clock.instant = max(self.clock.instant, end)

    def _later(self, milliseconds: int, act: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (self.clock.now() + milliseconds, next(self._order), act))

    def _on_minute(self) -> None:
        self._later(MINUTE, self._on_minute)
        self.ticks += 1
        self.invoke("tick", lambda _: handlers.tick(), {})

    def _on_hint(self, queue: str, body: str) -> None:
        self._from_queue(RECEIVERS.get(queue, "check"), handlers.hints, body)

    def _on_run_state(self, job_run_id: str, state: str) -> None:
        detail = {"applicationId": APPLICATION, "jobRunId": job_run_id, "state": state}
        event = {"source": "aws.emr-serverless", "time": iso(self.clock.now()), "detail": detail}
        self.invoke("run_state", handlers.run_state, event)

    def _from_queue(self, name: str, handler: Callable[[dict[str, Any]], Any], body: str) -> None:
        self.tally.call("sqs", "ReceiveMessage")
        answer = self.invoke(name, handler, {"Records": [{"messageId": "m", "body": body}]})
        if answer["batchItemFailures"]:
            raise RuntimeError(f"Lambda {name} failed for {body}")
        self.tally.call("sqs", "DeleteMessageBatch")

    def invoke(self, name: str, handler: Callable[[dict[str, Any]], Any], event: dict[str, Any]) -> Any:
        counted = self._logs(self._metrics) if self._metrics else nullcontext()
        with self.tally.invocation(name), counted, patch.object(handlers, "ports", lambda: self.ports):
            return handler(event)

    @contextmanager
    def _logs(self, metrics: EmfMetrics) -> Iterator[None]:
        written, shown = io.StringIO(), logger.registered_handler
        assert isinstance(shown, logging.StreamHandler)
        former = shown.setStream(written)
        try:
            with redirect_stdout(written):
                yield
                metrics.flush()
        finally:
            shown.setStream(former)
            self.tally.logged(LAMBDA_LINES + written.getvalue())


def fresh_tables() -> tuple[MemoryTables, dict[str, str], Schema]:
    """Tables in memory, made from the deployed template: their client, names by setting, and schema.

    They answer like moto (tests/faults/test_memory_tables.py), a hundred times faster. Their instants follow the
    present rules of time zones, so that no tick has to look at them.
    """
    client, names, schema = MemoryTables(), {}, {}
    for logical_id, arguments in _definitions().items():
        client.create_table(logical_id, **arguments)
        title = logical_id.removesuffix("Table").lower()
        names[f"{title}_table"], schema[logical_id] = logical_id, table_of(title, arguments)
    done = to_item(ZoneRules(zones.version(), 0, done=True), 1, 1)
    client.put_item(TableName=names["catalog_table"], Item=done)
    return client, names, schema


def new_tally() -> Tally:
    stages = json.loads((ROOT / ".chalice/config.json").read_text())["stages"]["sluice"]["lambda_functions"]
    return Tally({name: body["lambda_memory_size"] / 1024 for name, body in stages.items()})
