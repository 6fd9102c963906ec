"""`make example NAME=backups.run`: a thousand backups are due in one minute; a policy limits the rate of their starts.

The target is a queue, whose consumer backs up real objects. The last line of the output is JSON.
"""

from __future__ import annotations

import gzip
import json
import math
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from examples.backups.consumer import Arrival, Consumer
from examples.backups.logs import Log, busiest
from examples.flights import watch
from examples.progress import counting
from examples.stage import Document, Failed, Stage, check, exit_code_of
from infra.local import cloud

HERE = Path(__file__).parent
URGENT = 9  # the priority of the busiest tenth; the others have the default, 5
MARGIN = timedelta(seconds=20)  # from the end of the deployment to the first instant, if all apps take equally long
LINES = 30  # of the chart
WIDEST = 50  # characters of the chart's longest bar


@dataclass(frozen=True)
class Scale:
    """The size of the example: the number of logs and of apps, and the policy: ``most`` starts in any ``interval``
    seconds. All backups are due within ``window`` seconds."""

    logs: int = 1_000
    apps: int = 20
    most: int = 80
    interval: int = 10
    window: int = 60

    @property
    def patience(self) -> float:
        """The time limit in seconds from the first due instant: the window, four times the policy's span, a minute."""
        return 60 + self.window + 4 * self.logs * self.interval / self.most


@dataclass(frozen=True)
class Outcome:
    """The result: the received messages, the runs of the API, the largest depth of the queue."""

    due: datetime
    arrivals: Sequence[Arrival]
    runs: Sequence[Document]
    deepest: int
    repeats: int
    why: str  # the reason of a job while it waited


class Fleet:
    """The logs, their buckets, the queue, and the schedules."""

    def __init__(self, stage: Stage, scale: Scale) -> None:
        self.stage, self.scale = stage, scale
        self.logs = busiest(scale.logs)
        self.urgent = {schedule_name(log) for log in self.logs[: len(self.logs) // 10]}
        self.source, self.target = f"sluice-{stage.name}-logs", f"sluice-{stage.name}-backups"
        # Separate buckets: the lake would notify Sluice of every object, and no schedule waits for these.
        for bucket in (self.source, self.target):
            stage.s3.create_bucket(Bucket=bucket)
        self.sqs = stage.endpoints.client("sqs")
        self.queue = self.sqs.create_queue(QueueName=f"sluice-target-{stage.name}")["QueueUrl"]

    def upload(self) -> None:
        with counting(self.stage.console, "logs uploaded", len(self.logs)) as counter:
            for number, log in enumerate(self.logs, 1):
                self.stage.s3.put_object(Bucket=self.source, Key=log.key, Body=log.content)
                counter.at(number, log.tail)

    def deploy(self) -> datetime:
        """Deploy the apps. Returns the instant from which on their schedules are due, soon after the expected end of
        the deployment."""
        began = datetime.now(UTC)
        self.put(0, began + timedelta(hours=1))
        lead = MARGIN + self.scale.apps * (datetime.now(UTC) - began)
        due = (datetime.now(UTC) + lead).replace(microsecond=0)
        done = 0
        with counting(self.stage.console, "schedules deployed", len(self.logs)) as counter:
            for number in range(self.scale.apps):
                done += self.put(number, due)
                counter.at(done, f"fleet-{number + 1}")
        if datetime.now(UTC) > due:
            raise Failed(f"expected the deployment within {lead.seconds} s; the machine is too busy just now")
        return due

    def put(self, number: int, due: datetime) -> int:
        """Deploy one app. Returns the number of its schedules."""
        own = {schedule_name(log): log for log in self.logs[number :: self.scale.apps]}
        schedules = {name: schedule_of(log, name in self.urgent, due, self.scale.window) for name, log in own.items()}
        values = {"queue": self.queue, "most": str(self.scale.most), "interval": f"{self.scale.interval}s"}
        app = f"fleet-{number + 1}"
        self.stage.deploy(app, HERE / "app.yaml", {**values, "app": app}, schedules=schedules)
        return len(own)

    def consume(self, due: datetime) -> Outcome:
        """Run the consumer until it has backed up all logs. Returns the result."""
        until_due = (due - datetime.now(UTC)).total_seconds()
        window = f"{self.scale.window} s from {due:%H:%M:%S} UTC on"
        self.stage.say("due", f"{len(self.logs):,} of them within {window}, which is in {until_due:.0f} s")
        why = ""
        with (
            Consumer(self.stage.endpoints.client, self.queue, self.source, self.target) as consumer,
            counting(self.stage.console, "logs backed up", len(self.logs)) as counter,
        ):

            def all_there() -> bool:
                nonlocal why
                if consumer.failure is not None:
                    raise Failed(f"the consumer ended: {consumer.failure!r}")
                if not why and len(consumer.arrivals) > len(self.logs) // 4:
                    why = self.why()
                counter.at(len(consumer.arrivals), f"{consumer.deepest} at most in the queue")
                return len(consumer.arrivals) >= len(self.logs)

            self.stage.until(all_there, f"{len(self.logs)} backups", until_due + self.scale.patience)
        return Outcome(due, consumer.arrivals, self.runs(), consumer.deepest, consumer.repeats, why)

    def why(self) -> str:
        """The reason of one waiting job; empty if no job waits."""
        jobs = self.stage.client.get(f"{self.stage.base}/jobs", {"limit": 1})["items"]
        return f"{watch.short(jobs[0]['schedule'])} {jobs[0]['reason']}" if jobs else ""

    def runs(self) -> list[Document]:
        """The runs, once the history has all of them: Sluice stores a run after its message was sent."""
        found: list[Document] = []

        def all_kept() -> bool:
            found[:] = self.stage.runs()
            return len(found) >= len(self.logs)

        self.stage.until(all_kept, f"{len(self.logs)} runs", 30)
        return found

    def stop(self) -> None:
        """Delete the apps and the queue, because the schedules would continue every day."""
        for number in range(self.scale.apps):
            self.stage.client.delete(f"{self.stage.base}/apps/fleet-{number + 1}")
        self.sqs.delete_queue(QueueUrl=self.queue)

    def verify(self, outcome: Outcome) -> None:
        """Compare the result with the schedules and the policy. Raises `Failed` if they differ."""
        count, most, span = len(self.logs), self.scale.most, self.scale.interval
        came = Counter(watch.short(arrival.schedule) for arrival in outcome.arrivals)
        check(came == Counter(map(schedule_name, self.logs)), "each schedule once", came.most_common(3))
        early = [arrival for arrival in outcome.arrivals if arrival.sent_at / 1000 < arrival.due.timestamp()]
        check(not early, "no message before its instant", early[:1])
        window = {(arrival.due - outcome.due).total_seconds() for arrival in outcome.arrivals}
        check(0 <= min(window) <= max(window) <= self.scale.window, f"all within {self.scale.window} s", max(window))
        states = Counter(run["state"] for run in outcome.runs)
        check(states == Counter(SUCCEEDED=count), f"{count} runs that succeeded", states)
        starts = sorted(watch.instant(run["start_requested_at"]).timestamp() for run in outcome.runs)
        check(most_within(starts, span) <= most, f"at most {most} starts in any {span} s", most_within(starts, span))
        check(outcome.deepest <= most, f"at most {most} messages in the queue", outcome.deepest)
        places = [watch.short(arrival.schedule) in self.urgent for arrival in sorted(outcome.arrivals, key=sent)]
        own, others = mean_place(places, True), mean_place(places, False)
        check(own < others, "urgent ones before the others", f"on the {own:.0f}th place on average, not {others:.0f}th")
        for log in self.logs:
            body = self.stage.s3.get_object(Bucket=self.target, Key=f"{log.key}.gz")["Body"].read()
            check(gzip.decompress(body) == log.content, f"the log of {log.tail} in its backup", "another content")


def schedule_name(log: Log) -> str:
    return log.tail.lower()


def schedule_of(log: Log, urgent: bool, due: datetime, window: int) -> Document:
    """A daily schedule that is first due within ``window`` seconds from ``due`` on, at an instant that follows from its
    name."""
    trigger = {"type": "time", "expression": "@every 24h", "due_time": due.isoformat(), "jitter": f"{window}s"}
    document = {"workflow": "backup", "enabled": True, "policy": "vault", "properties": {"source": log.key}}
    return {**document, "trigger": trigger, **({"priority": URGENT} if urgent else {})}


def sent(arrival: Arrival) -> int:
    return arrival.sent_at


def most_within(instants: Sequence[float], span: float) -> int:
    """The largest number of instants, in order, in any ``[instant, instant + span)``."""
    most = first = 0
    for last, instant in enumerate(instants):
        while instant - instants[first] >= span:
            first += 1
        most = max(most, last - first + 1)
    return most


def mean_place(places: Sequence[bool], urgent: bool) -> float:
    """The mean position, from 1 on, of the urgent (or other) backups in the order of arrival."""
    own = [place for place, is_urgent in enumerate(places, 1) if is_urgent == urgent]
    return sum(own) / max(1, len(own))


def picture(outcome: Outcome) -> list[str]:
    """A chart of the due and the received backups for each span from the first due instant on, in at most 30 lines."""
    began = outcome.due.timestamp()
    due = [arrival.due.timestamp() - began for arrival in outcome.arrivals]
    came = [arrival.sent_at / 1000 - began for arrival in outcome.arrivals]
    width = math.ceil((max(came) + 1) / LINES)
    of_due, of_came = (Counter(int(at // width) for at in instants) for instants in (due, came))
    scale = WIDEST / max(*of_due.values(), *of_came.values())
    return [
        f"{at * width:>5} s {of_due[at]:>5} {of_came[at]:>5}  {'█' * round(scale * of_came[at])}"
        for at in range(max(of_came) + 1)
    ]


def summary(outcome: Outcome, fleet: Fleet) -> Table:
    scale = fleet.scale
    table = Table(title="By priority", title_justify="left", show_edge=False, pad_edge=False)
    for name in ("priority", "backups", "first, s", "half of them, s", "last, s"):
        table.add_column(name, justify="right")
    began = outcome.due.timestamp()
    for priority, is_urgent in ((URGENT, True), (5, False)):
        own = [a for a in outcome.arrivals if (watch.short(a.schedule) in fleet.urgent) == is_urgent]
        late = sorted(arrival.sent_at / 1000 - began for arrival in own)
        spans = (late[0], late[len(late) // 2], late[-1])
        table.add_row(str(priority), f"{len(own):,}", *(f"{span:.1f}" for span in spans))
    starts = sorted(watch.instant(run["start_requested_at"]).timestamp() for run in outcome.runs)
    table.caption = f"most in any {scale.interval} s: {most_within(starts, scale.interval)}, allowed: {scale.most}"
    return table


def play(stage: Stage, scale: Scale) -> dict[str, Any]:
    """Run the whole example. Returns the content of the last line of the output."""
    fleet = Fleet(stage, scale)
    fleet.upload()
    try:
        outcome = fleet.consume(fleet.deploy())
        fleet.verify(outcome)
    except BaseException:
        stage.say("left", f"the apps fleet-1 to fleet-{scale.apps} of {stage.name}, for a look at them")
        raise
    fleet.stop()
    stage.console.print()
    stage.console.print("   from   due  came  at the queue", highlight=False)
    for line in picture(outcome):
        stage.console.print(line, highlight=False)
    stage.console.print()
    stage.console.print(summary(outcome, fleet))
    stage.console.print()
    if outcome.why:
        stage.say("why", outcome.why)
    stage.say("queue", f"{outcome.deepest} messages at most; without the policy they would come as they are due")
    stage.say("verified", f"{scale.logs:,} backups, each its log, byte for byte; {outcome.repeats} messages came twice")
    starts = sorted(watch.instant(run["start_requested_at"]).timestamp() for run in outcome.runs)
    return {"backups": len(outcome.arrivals), "most": most_within(starts, scale.interval), "deepest": outcome.deepest}


def main() -> int:
    began = time.monotonic()
    console = Console()
    console.rule("Sluice: a thousand backups at their own pace")
    with console.status("starting the local cloud, or using the one that is up"):
        endpoints = cloud.ensure_up()
    result = play(Stage(endpoints, "backups", console), Scale())
    sys.stdout.flush()
    print(json.dumps({"example": "ok", **result, "seconds": round(time.monotonic() - began, 1)}))
    return 0


if __name__ == "__main__":
    sys.exit(exit_code_of("example NAME=backups.run", main))
