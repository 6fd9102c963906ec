"""`make smoke`: use a deployed stack as its users do, and report measurements.

    python -m infra.smoke                               the local cloud of this checkout
    python -m infra.smoke --stage dev --accept-cost     a stack in AWS, with the credentials of the environment

It creates a namespace, two queues and some objects, and removes them at the end. It prints what only an account can
settle, with its answers (`account.yaml`). The last line is JSON, with `"smoke": "ok"` if no check has failed. Exit code
0 for success, 1 for a failed check, 2 if nothing was tried.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

import boto3
from botocore.exceptions import BotoCoreError, ClientError
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from infra import account, preflight, stack
from infra.deploy import explain
from sluice.client import Client
from sluice.errors import Failure
from sluice.render import Terminal

N = TypeVar("N", int, float)
BURST = 1_000  # messages
BEATS = 3
APP = "smoke"
JOB = """
import sys
from pyspark.sql import SparkSession

with SparkSession.builder.appName("sluice smoke").getOrCreate() as spark:
    print("rows:", spark.range(1000).count(), "arguments:", sys.argv[1:])
"""
# A prediction in dollars of us-east-1. Three runs with a driver and an executor of 2 vCPUs and 8 GB each, for three
# minutes at $0.052624 per vCPU-hour and $0.0057785 per GB-hour, cost 5 cents. 1,100 deliveries at $20 per million cost
# 2 cents.
ESTIMATE = 0.10
EMR_RUN = {"workers": 1, "vcpu": 2}
NEVER = {"type": "time", "expression": "0 0 29 2 *"}  # only run by hand
POLL_EVERY = 1.0


class Broken(Exception):
    """A check failed. The message names the expected and the found value."""


class NotTried(Exception):
    """A check makes no sense on this account. The message has the reason, and what to do."""


@dataclass(frozen=True)
class Stage:
    """A deployed stack: its API, its names, and its AWS clients."""

    name: str
    client: Client
    aws: Callable[[str], Any]
    outputs: Mapping[str, str]
    patience: float  # seconds for a job run of EMR
    measured_as: str | None = None  # the `stage` dimension of its metrics in CloudWatch, if there are any


@dataclass
class Check:
    """The result of one check: its seconds, and its measurements by name."""

    name: str
    seconds: float = 0.0
    figures: dict[str, float] = field(default_factory=dict)
    error: str = ""
    not_tried: str = ""

    @property
    def report(self) -> str | dict[str, float]:
        """For the last line of the output: the measurements, or why there are none."""
        return self.error or self.not_tried or {name: round(value, 1) for name, value in self.figures.items()}


@dataclass(frozen=True)
class Arrived:
    """A delivery that arrived: its event and schedule, its due time, and when SQS received it, in ms since 1970."""

    event: str
    schedule: str
    due: int
    sent: int

    @property
    def late_ms(self) -> int:
        return self.sent - self.due


class Smoke:
    """One run of all checks, in its own namespace."""

    def __init__(self, stage: Stage, say: Callable[[str], None]) -> None:
        self._stage, self._say = stage, say
        self.name = f"smoke-{uuid.uuid4().hex[:8]}"
        self.base = f"/v1/namespaces/{self.name}"
        self._app = f"{self.base}/apps/{APP}"
        self._s3, self._sqs = stage.aws("s3"), stage.aws("sqs")
        self._lake, self._control = stage.outputs["LakeBucket"], stage.outputs["ControlBucket"]
        self._queues: list[str] = []
        self._objects: list[tuple[str, str]] = []
        self._came: list[Arrived] = []

    def checks(self) -> list[tuple[str, Callable[[], dict[str, float]]]]:
        """All checks in their order."""
        return [
            ("health", self._health),
            ("app deployed", self._deploy),
            ("schedule by cron", self._cron),
            ("message", self._message),
            ("pull worker", self._worker),
            ("dead letter redriven", self._redrive),
            (f"burst of {BURST:,}", self._burst),
            ("partition to Spark", self._partition),
            ("DAG of two nodes", self._dag),
        ]

    def play(self) -> list[Check]:
        """Run all checks. A failed check does not stop the others."""
        done: list[Check] = []
        for name, look in self.checks():
            self._say(f"{name} ...")
            check, begun = Check(name), time.monotonic()
            try:
                check.figures = look()
            except NotTried as reason:
                check.not_tried = str(reason)
            except (Broken, Failure, ClientError, BotoCoreError) as error:
                check.error = explain(error) if isinstance(error, ClientError | BotoCoreError) else str(error)
            check.seconds = time.monotonic() - begun
            done.append(check)
            if check.error and name in ("health", "app deployed"):
                break  # without it no other check can work
        return done

    def remove(self) -> list[str]:
        """Remove everything that was created. Returns what could not be removed, with the command that removes it."""
        client, s3, sqs = self._stage.client, self._s3, self._sqs
        acts: list[tuple[str, Callable[[], Any]]] = [
            (f"DELETE {self._app}", partial(client.request, "DELETE", self._app)),
            (f"DELETE {self.base}/datasets/drop", partial(client.request, "DELETE", f"{self.base}/datasets/drop")),
            (f"DELETE {self.base}", partial(client.request, "DELETE", self.base)),
            *((f"aws sqs delete-queue --queue-url {url}", partial(sqs.delete_queue, QueueUrl=url))
              for url in self._queues),
            *((f"aws s3 rm s3://{bucket}/{key}", partial(s3.delete_object, Bucket=bucket, Key=key))
              for bucket, key in self._objects),
        ]  # fmt: skip
        left: list[str] = []
        for command, act in acts:
            try:
                act()
            except (Failure, ClientError, BotoCoreError) as error:
                left.append(f"{command}  ({error})")
        return left

    def dollars(self) -> float:
        """The dollars that EMR has billed for the runs of this namespace, as far as known."""
        runs = self._stage.client.pages(f"{self.base}/runs")
        return sum(float((run.get("billed") or {}).get("cost_usd") or 0) for page in runs for run in page["items"])

    def throttled(self, since: datetime) -> int | None:
        """The table calls of the stack that DynamoDB has throttled since then, including those of other users; None
        without data. CloudWatch has the data a minute or two later."""
        if self._stage.measured_as is None:
            return None
        statistics = self._stage.aws("cloudwatch").get_metric_statistics(
            Namespace="Sluice",
            MetricName="ThrottledCalls",
            Dimensions=[{"Name": "stage", "Value": self._stage.measured_as}],
            StartTime=since,
            EndTime=datetime.now(UTC),
            Period=60,
            Statistics=["Sum"],
        )
        return round(sum(float(point["Sum"]) for point in statistics["Datapoints"]))

    # -- the checks --------------------------------------------------------------------------------------------------

    def _health(self) -> dict[str, float]:
        begun = time.monotonic()
        self._stage.client.get("/v1/health")
        return {"answer_ms": 1000 * (time.monotonic() - begun)}

    def _deploy(self) -> dict[str, float]:
        queue = self._queue("--now")
        self._missing = queue.removesuffix("--now") + "--later"
        key = f"code/{self.name}/job.py"
        self._put(self._control, key, JOB.encode())
        spark = {
            "target": {"type": "emr_serverless", "entry_point": f"s3://{self._control}/{key}"},
            "resources": EMR_RUN,
        }
        lost = {"target": {"type": "sqs", "queue_url": self._missing}, "delivery": {"tries": 1}}
        now = {"enabled": True}
        app: dict[str, Any] = {
            "datasets": {"drop": {"bucket": "lake", "prefix": f"{self.name}/drop/", "keys": ["n"]}},
            "workflows": {
                "tell": {"target": {"type": "sqs", "queue_url": queue}},
                "lost": lost,
                "spark": spark,
                "pull": {"target": {"type": "worker", "pool": "smoke"}},
            },
            "schedules": {
                "beat": {"workflow": "tell", **now, "trigger": {"type": "time", "expression": "@every 10s"}},
                "lost": {"workflow": "lost", **now, "trigger": NEVER},
                "pull": {"workflow": "pull", **now, "trigger": NEVER},
                "count": {"workflow": "spark", **now, "trigger": {"type": "partition", "dataset": "drop"}},
            },
            "dags": {
                "pair": {
                    **now,
                    "trigger": {"type": "event", "event": "smoke.go"},
                    "nodes": {"first": {"workflow": "spark"}, "second": {"workflow": "spark"}},
                    "edges": [{"from": "first", "to": "second"}],
                }
            },
        }
        self._stage.client.put(self.base, {"description": "make smoke"})
        # Beside other namespaces, the role of the stack needs a list. All else holds the name of the namespace.
        self._stage.client.put(f"{self.base}/allowed", {"execution_roles": [self._stage.outputs["EmrJobRoleArn"]]})
        self._stage.client.put(self._app, app)
        return {}

    def _cron(self) -> dict[str, float]:
        come = self._until(lambda: self._messages("beat")[:BEATS], 120, f"{BEATS} messages of @every 10s", BEATS)
        self._stage.client.post(f"{self._app}/schedules/beat/disable", {})
        return {"late_ms": max(delivery.late_ms for delivery in come)}

    def _message(self) -> dict[str, float]:
        self._stage.client.put(f"{self._app}/messages/note", {"due_time": "5s", "workflow": "tell", "data": {"a": 1}})
        [come] = self._until(lambda: self._messages("~note"), 60, "the message", 1)
        return {"late_ms": come.late_ms}

    def _worker(self) -> dict[str, float]:
        begun = time.monotonic()
        run_id = self._run_now("pull")

        def claimed() -> list[dict[str, Any]]:
            request = {"worker": "smoke", "capacity": 1, "wait": 0}
            leases: list[dict[str, Any]] = self._stage.client.post(f"/v1/workers/{self.name}.smoke/claim", request)[
                "leases"
            ]
            return leases

        [lease] = self._until(claimed, 60, "a run in the pool", 1)
        waited = time.monotonic() - begun
        path = f"/v1/leases/{lease['lease']}"
        self._stage.client.post(f"{path}/heartbeat", {"worker": "smoke"})
        self._stage.client.post(f"{path}/report", {"worker": "smoke", "state": "succeeded"})
        self._ended(run_id, 60)
        return {"start_ms": 1000 * waited}

    def _redrive(self) -> dict[str, float]:
        self._run_now("lost")
        letters = f"{self.base}/dead-letters"
        [letter] = self._until(lambda: self._stage.client.get(letters)["items"], 120, "a dead letter", 1)
        later = self._queue("--later")
        if later != self._missing:
            raise Broken(f"expected the queue {self._missing}, got {later}")
        begun = time.monotonic()
        self._stage.client.post(f"{letters}/{letter['run_id']}/redrive", {})
        self._until(lambda: self._received(later), 120, "the redriven event", 1)
        return {"start_ms": 1000 * (time.monotonic() - begun)}

    def _burst(self) -> dict[str, float]:
        limit = None if self._stage.measured_as is None else preflight.account_limit(self._stage.aws("lambda"))
        free = account.BURST_LAMBDAS if limit is None else limit["UnreservedConcurrentExecutions"]
        if free < account.BURST_LAMBDAS:
            raise NotTried(
                f"the account has {free} concurrent Lambdas that are not reserved, and the burst needs "
                f"{account.BURST_LAMBDAS}. Ask AWS for a higher quota (Service Quotas, AWS Lambda, Concurrent "
                f"executions), then repeat."
            )
        at = {"type": "time", "expression": "R1/PT30S"}
        many = {"workflow": "tell", "enabled": True, "trigger": at, "spread": {"count": BURST}}
        self._stage.client.put(f"{self._app}/schedules/burst", many)
        come = self._until(lambda: self._messages("burst"), 300, f"{BURST:,} messages", BURST)
        late = sorted(delivery.late_ms for delivery in come)
        doubled = len(come) - len({delivery.event for delivery in come})
        return {"late_ms": late[len(late) // 2], "last_ms": late[-1], "doubled": doubled}

    def _partition(self) -> dict[str, float]:
        put = time.time() * 1000
        self._put(self._lake, f"{self.name}/drop/n=1/part-0", b"x")
        self._put(self._lake, f"{self.name}/drop/n=1/_SUCCESS", b"")
        path = f"{self._app}/schedules/count/runs"
        [run] = self._until(lambda: self._stage.client.get(path)["items"], 300, "a run of the partition", 1)
        ended = self._ended(run["run_id"], self._stage.patience)
        return {"start_ms": _millis(ended["start_requested_at"]) - put, "run_s": _seconds(ended)}

    def _dag(self) -> dict[str, float]:
        begun = time.time() * 1000
        self._stage.client.post(f"{self.base}/events", {"events": [{"type": "smoke.go", "id": "1"}]})
        path = f"{self._app}/dags/pair/runs"
        [found] = self._until(lambda: self._stage.client.get(path)["items"], 300, "a run of the DAG", 1)
        end = time.monotonic() + 2 * self._stage.patience
        while (dag_run := self._stage.client.get(f"{path}/{found['run_id']}"))["state"] == "RUNNING":
            if time.monotonic() > end:
                raise Broken(f"expected the DAG to end within {2 * self._stage.patience:g} s, got {_brief(dag_run)}")
            time.sleep(POLL_EVERY)
        if dag_run["state"] != "SUCCEEDED":
            raise Broken(f"expected a DAG that succeeds, got {_brief(dag_run)}")
        return {"run_s": (time.time() * 1000 - begun) / 1000}

    # -- helpers -----------------------------------------------------------------------------------------------------

    def _queue(self, suffix: str) -> str:
        made = self._sqs.create_queue(QueueName=f"sluice-target-{self.name}{suffix}")
        self._queues.append(made["QueueUrl"])
        return str(made["QueueUrl"])

    def _put(self, bucket: str, key: str, body: bytes) -> None:
        self._s3.put_object(Bucket=bucket, Key=key, Body=body)
        self._objects.append((bucket, key))

    def _run_now(self, schedule: str) -> str:
        return str(self._stage.client.post(f"{self._app}/schedules/{schedule}/run", {})["job_id"])

    def _received(self, url: str) -> list[Arrived]:
        """The deliveries in a queue; they are removed from it."""
        taken: list[Arrived] = []
        while messages := self._sqs.receive_message(
            QueueUrl=url,
            MaxNumberOfMessages=10,
            WaitTimeSeconds=1,
            MessageSystemAttributeNames=["SentTimestamp"],
            MessageAttributeNames=["All"],
        ).get("Messages", []):
            for message in messages:
                attributes = {name: value["StringValue"] for name, value in message["MessageAttributes"].items()}
                due, sent = int(_millis(attributes["sluice-due-time"])), int(message["Attributes"]["SentTimestamp"])
                taken.append(Arrived(attributes["sluice-event-id"], attributes["sluice-schedule"], due, sent))
            entries = [
                {"Id": str(number), "ReceiptHandle": message["ReceiptHandle"]}
                for number, message in enumerate(messages)
            ]
            self._sqs.delete_message_batch(QueueUrl=url, Entries=entries)
        return taken

    def _messages(self, schedule: str) -> list[Arrived]:
        """All deliveries of a schedule that have arrived so far. The schedule of a message `m` is named `~m`."""
        self._came += self._received(self._queues[0])
        return [delivery for delivery in self._came if delivery.schedule == f"{self.name}.{APP}.{schedule}"]

    def _until(self, look: Callable[[], list[Any]], seconds: float, what: str, count: int) -> list[Any]:
        end = time.monotonic() + seconds
        while len(found := look()) < count:
            if time.monotonic() > end:
                raise Broken(f"expected {what} within {seconds:g} s, got {len(found)}; {self._why()}")
            time.sleep(POLL_EVERY)
        return found

    def _ended(self, run_id: str, seconds: float) -> dict[str, Any]:
        """A run that has succeeded. Raises `Broken` for any other end."""
        end = time.monotonic() + seconds
        while (run := self._stage.client.get(f"/v1/runs/{run_id}"))["state"] in ("STARTING", "RUNNING", "RETRYING"):
            if time.monotonic() > end:
                raise Broken(f"expected run {run_id} to end within {seconds:g} s, got {_brief(run)}")
            time.sleep(POLL_EVERY)
        if run["state"] != "SUCCEEDED":
            raise Broken(f"expected run {run_id} to succeed, got {_brief(run)}")
        return run

    def _why(self) -> str:
        """The jobs that still wait, with Sluice's reasons."""
        jobs = self._stage.client.get(f"{self.base}/jobs")["items"]
        reasons = [f"{job['schedule']} {job['state']}: {job['reason']}" for job in jobs[:3]]
        return "; ".join(reasons) or "no job waits"


def _brief(view: Mapping[str, Any]) -> str:
    return f"{view['state']}: {view.get('reason') or view.get('why') or 'no reason'}"


def _millis(instant: str) -> float:
    return datetime.fromisoformat(instant.replace("Z", "+00:00")).timestamp() * 1000


def _seconds(run: Mapping[str, Any]) -> float:
    return (_millis(run["ended_at"]) - _millis(run["started_at"])) / 1000


def local() -> Stage:
    """The local cloud of this checkout, started if necessary."""
    from infra.local import cloud

    endpoints = cloud.up().endpoints
    os.environ.update(endpoints.environment())
    return Stage("the local cloud", Client.from_environment(), endpoints.client, endpoints.outputs, 180)


def deployed(stage: str) -> Stage:
    """A stack in AWS. Raises `stack.DeployError` if it does not exist."""
    session: boto3.Session = preflight.session()
    name = f"sluice-{stage}"
    outputs = stack.outputs(session.client("cloudformation"), name)
    if not outputs:
        raise stack.DeployError(
            f"expected a stack {name} in {session.region_name}, got none: make deploy STAGE={stage}"
        )
    client = Client(outputs["ApiUrl"])
    return Stage(name, client, lambda service: session.client(service), outputs, 900, measured_as=stage)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make smoke", description="Use a deployed stack, and report measurements.")
    parser.add_argument(
        "--stage", default="", help="the stage of the stack in AWS; by default, the local cloud is used"
    )
    parser.add_argument("--accept-cost", action="store_true", help="start, although it costs money")
    options = parser.parse_args(argv)
    console, errors = Terminal(), Terminal(stderr=True)
    if options.stage and not options.accept_cost:
        errors.print(
            f"smoke: this starts three Spark jobs and sends some {BURST + 10:,} messages, for about ${ESTIMATE:.2f}. "
            f"Start it with: make smoke STAGE={options.stage} ACCEPT_COST=yes",
            highlight=False,
        )
        return 2
    try:
        stage = deployed(options.stage) if options.stage else local()
    except stack.DeployError as error:
        errors.print(f"smoke: {error}", style="red", highlight=False)
        return 2
    except (BotoCoreError, ClientError) as error:
        errors.print(f"smoke: {explain(error)}", style="red", highlight=False)
        return 2
    smoke = Smoke(stage, lambda text: console.print(text, style="dim"))
    begun = datetime.now(UTC)
    dollars: float | None = None
    throttled: int | None = None
    try:
        checks = smoke.play()
        dollars, throttled = _known(smoke.dollars), _known(lambda: smoke.throttled(begun))
    finally:
        left = smoke.remove()
    console.print(_table(stage.name, checks))
    refused = "not known" if throttled is None else throttled
    billed = "not known" if dollars is None else f"${dollars:.4f}"
    console.print(f"billed by EMR so far: {billed}; table calls throttled: {refused}", highlight=False)
    for item in left:
        errors.print(f"smoke: not removed. {item}", style="red", highlight=False)
    ok = all(not check.error for check in checks)
    known = account.answers(
        {check.name: (not check.error, check.error or _measured(check)) for check in checks if not check.not_tried},
        None if stage.measured_as is None else stage.aws,
        stage.outputs,
    )
    console.print(_account_table(known))
    summary = {
        "smoke": "ok" if ok else "failed",
        "stack": stage.name,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "emr_usd": None if dollars is None else round(dollars, 4),
        "throttled_calls": throttled,
        "checks": {check.name: check.report for check in checks},
        "account": {name: answer.verdict for name, answer in known.items()},
        "not_removed": len(left),
    }  # fmt: skip
    print(json.dumps(summary))
    return 0 if ok else 1


def _known(read: Callable[[], N | None]) -> N | None:
    """A value, or None if it cannot be read: missing permissions must not fail a check."""
    try:
        return read()
    except (Failure, ClientError, BotoCoreError):
        return None


def _table(name: str, checks: Sequence[Check]) -> Table:
    table = Table(title=f"smoke: {name}", title_justify="left")
    for column in ("check", "result", "seconds", "measured"):
        table.add_column(column, overflow="fold")
    for check in checks:
        result = Text(check.error, "red") if check.error else Text("ok", "green")
        if check.not_tried:
            result = Text(f"not tried: {check.not_tried}", "yellow")
        table.add_row(check.name, result, f"{check.seconds:.1f}", _measured(check))
    return table


def _measured(check: Check) -> str:
    return ", ".join(f"{key} {value:,.0f}" for key, value in check.figures.items())


def _account_table(known: Mapping[str, account.Answer]) -> Table:
    """What only an account can settle: the answers of this one, or how to find them."""
    table = Table(title="what only an account can settle", title_justify="left")
    for column in ("claim", "holds", "what was seen, or how to check it"):
        table.add_column(column, overflow="fold")
    for name, answer in known.items():
        table.add_row(account.questions()[name].claim, answer.verdict, escape(answer.seen))
    return table


if __name__ == "__main__":
    sys.exit(main())
