"""Plays the examples of the pages on a world, and writes down what happens.

Each line has the instant at which it happened. Starts and records are read from the world; the story does not name
them.
"""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from chalicelib.core.instants import MINUTE, SECOND, Instant, duration, iso
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Run
from chalicelib.core.sizes import parse_bytes
from chalicelib.flow.jobs import actions
from chalicelib.flow.runs import context
from chalicelib.flow.schedules import pauses
from tests.support import backfills, iceberg_files
from tests.support.answers import explain
from tests.support.world import EMR, World, day, flights, full

WIDTH = 118  # of a line in a page's block
MARGIN = " " * 14
Documents = dict[str, Any]


class Story:
    """An example's schedules in the app that the pages describe, enabled on Monday, 2 March 2026, at 12:00 UTC."""

    def __init__(self, world: World, schedules: Documents) -> None:
        self.world = world
        self.names = list(schedules)
        self.documents = schedules
        self.reported: list[str] = []
        self._seen: set[str] = set()
        self._last = ""
        enabled = {name: {"enabled": True} | document for name, document in schedules.items()}
        app = flights(enabled, report={"target": EMR}, urgent={"target": EMR})
        app["datasets"]["orders"] = iceberg_files.TABLE | {"single_writer": True}
        period = {"each": "day", "format": "day=%Y-%m-%d", "zone": "Europe/Paris"}
        app["datasets"]["sales"] = {"bucket": "lake", "prefix": "raw/sales/", "keys": ["day"], "period": period}
        world.deploy(app)
        self._commits: list[Documents] = []
        world.settle()

    # -- what happens ----------------------------------------------------------------------------------------------

    def ready(self, *days: int, dataset: str = "flights") -> None:
        """Days of a dataset become ready, one after the other at the same instant."""
        for number in days:
            self._tell(f"day {number} of {dataset} is ready")
            self.world.upload(day(number, dataset, "_SUCCESS" if dataset == "flights" else "part-0.csv"))
            self._settle()

    def comes(self, name: str, size: str, dataset: str = "flights", number: int = 1) -> None:
        """An object of a size is put into a day of a dataset."""
        self._tell(f"{name} comes to day {number} of {dataset}, {size}")
        self.world.upload(day(number, dataset, name), size=parse_bytes(size, "size"))
        self._settle()

    def comes_for(self, date: str) -> None:
        """An object is put into the folder of a date of `sales`."""
        self._tell(f"day={date} of sales is ready")
        self.world.upload(f"raw/sales/day={date}/part-0.csv")
        self._settle()

    def commits(self, operation: str, records: int) -> None:
        """A snapshot is committed to the table `orders`."""
        number = len(self._commits) + 1
        self._tell(f"commit {number} to orders: {operation}, {records} records added")
        made = iceberg_files.snapshot(
            number, number - 1 or None, self.world.clock.now(), operation, **{"added-records": str(records)}
        )
        self._commits.append(made)
        key = iceberg_files.file(number)
        self.world.upload(key, text=json.dumps(iceberg_files.metadata(*self._commits, former=number - 1)))
        self._settle()

    def posts(self, kind: str, source: str = "", **payload: Any) -> None:
        named = f" under the id {source}" if source else ""
        self._tell(f"{kind} is posted{named}: {json.dumps(payload)}")
        self.world.post(kind, source, **payload)
        self._settle()

    def alarms(self, name: str, state: str) -> None:
        """An alarm of the account changes to a state."""
        self._tell(f"alarm {name} goes to {state}")
        self.world.alarm(name, state)
        self._settle()

    def says(self, *answers: Documents) -> None:
        """Set the answers of the probe, one after the other; the last one repeats."""
        self._tell(f"the probe will answer {', then '.join(json.dumps(answer) for answer in answers)}")
        self.world.targets.says = [json.dumps(answer).encode() for answer in answers]

    def measures(self, value: float) -> None:
        """Set the value of the external measurement."""
        self._tell(f"the metric is at {value}")
        self.world.targets.load = value

    def approves(self, who: str, reason: str) -> None:
        """A user approves the one waiting job."""
        self._tell(f'approve by {who}: "{reason}"')
        actions.approve(self.world.ports, self._waiting(None).job_id, who, reason)
        self._settle()

    def ends(self, state: str = "SUCCESS") -> None:
        """Every active run ends in a state of EMR Serverless."""
        living = [run for name in self.names for run in self.world.runs(name) if run.state in ("STARTING", "RUNNING")]
        for workflow, count in Counter(_short(run.workflow) for run in living).items():
            self._tell(f"{workflow} ends: {state}" if count == 1 else f"{count} runs of {workflow} end: {state}")
        self.world.finish(state)
        self._settle()

    def pauses(self, mode: str, stop_timeouts: bool = False) -> None:
        self._tell(f"pause {self.names[0]}, mode {mode}{', timeouts stop' if stop_timeouts else ''}")
        self.world.pause(self.names[0], mode, stop_timeouts)
        self._settle()

    def asks(self, action: str) -> None:
        """A user resumes, disables or enables the schedule."""
        self._tell(f"{action} {self.names[0]}")
        getattr(self.world, action)(self.names[0])
        self._settle()

    def skips(self, span: str) -> None:
        """A user skips the occurrence that is this far ahead."""
        at = self.world.clock.now() + duration(span)
        self._tell(f"skip {self.names[0]} at {iso(at)}")
        pauses.skip(self.world.ports, full(self.names[0]), at, "tester")

    def puts(self, what: str, **changed: Any) -> None:
        """A user replaces the schedule by another one; ``what`` describes the difference."""
        self._tell(f"put {self.names[0]}: {what}")
        self.world.put(self.names[0], self.documents[self.names[0]] | changed)
        self._settle()

    def backfills(self, **action: Any) -> str:
        """A user requests a backfill. Returns its id."""
        answer = ", ".join(f"{key.rstrip('_')} {json.dumps(value)}" for key, value in action.items())
        self._tell(f"backfill {self.names[0]}: {answer}")
        backfill = backfills.begin(self.world, self.names[0], **action)
        self._settle()
        return backfill

    def cancels(self, backfill: str) -> None:
        self._tell("cancel the backfill")
        backfills.stop(self.world, self.names[0], backfill)
        self._settle()

    def counts(self, backfill: str) -> None:
        """The state and the counts of a backfill."""
        view = backfills.seen(self.world, self.names[0], backfill)
        counts = ", ".join(f"{view[what]} {what}" for what in backfills.COUNTS if view[what])
        left = ", ".join("/".join(entry.values()) for entry in view["in_flight"])
        self._tell(f"the backfill is {view['state']}: {counts}{f'; left alone: {left}' if left else ''}")

    def passes(self, span: str) -> None:
        """Let a span of time pass. All but its last two minutes pass at once, with one tick: nothing may be due in
        them.
        """
        end = self.world.clock.now() + duration(span)
        self.world.clock.wait_until(end - 2 * MINUTE)
        self.world.tick()
        self._find()
        self.world.pass_by(f"{end - self.world.clock.now()}ms")
        self._find()

    # -- what `why` answers ----------------------------------------------------------------------------------------

    def why(self, name: str | None = None) -> None:
        """The answer of `why` for a schedule at this moment."""
        view = explain.why_schedule(self.world.ports, full(name or self.names[0]))
        self._tell(f"why: {view['why']}")

    def wakes(self, name: str | None = None) -> None:
        """The answer of `why` for the one waiting job, and what will wake it."""
        view = explain.why_job(self.world.ports, self._waiting(name))
        self._tell(f"why: {view['why']}")
        self._tell(f"wakes: {view['wakes']}")

    def waits(self, name: str | None = None) -> None:
        """The answer of `why` for each constraint of the one waiting job."""
        for each in explain.why_job(self.world.ports, self._waiting(name))["constraints"]:
            self._tell(f"{each['type']}: {each['why']}")

    def _waiting(self, name: str | None) -> Job:
        """The one waiting job, without fires that are prepared for a later instant."""
        now = self.world.clock.now()
        (job,) = [job for job in self.world.jobs(name or self.names[0]) if (job.due_at or 0) <= now]
        return job

    @property
    def contexts(self) -> list[Any]:
        """The context of each run that has started: by reference, or in its message."""
        answer = [self.world.context(run) for name in self.names for run in self.world.runs(name)]
        return [each for each in answer if each is not None] + [sent for _, sent in self.world.targets.queue.messages]

    # -- how it is written down ------------------------------------------------------------------------------------

    def _settle(self) -> None:
        self.world.settle()
        self._find()

    def _find(self) -> None:
        """Write down all new starts and records, in the order of their instants."""
        for at, key, line in sorted(self._changes()):
            if key not in self._seen:
                self._seen.add(key)
                self._tell(line, at)

    def _changes(self) -> Iterator[tuple[Instant, str, str]]:
        for name in self.names:
            for run in self.world.runs(name):
                fired_by = _events(context.events_of(self.world.ports, run))
                # Runs of a backfill that start together are in the order of its plan.
                place = f"{run.created_at:015d}" if run.backfill else ""
                yield (
                    run.claimed_at,
                    f"{place}{run.run_id}#{run.attempt}",
                    f"{_starts(run, name)}: {fired_by}{_properties(run)}",
                )
                if run.state == "CANCELLED":
                    over = f"the run of {_short(run.workflow)} is cancelled"
                    yield run.state_at or run.claimed_at, f"{run.run_id} over", over
            for record in self.world.records(name):
                yield record.recorded_at, record.id, f"record {record.kind}: {record.reason.text}"

    def _tell(self, line: str, at: Instant | None = None) -> None:
        clock = _clock(self.world.clock.now() if at is None else at)
        margin = MARGIN if clock == self._last else f"{clock:14}"
        self._last = clock
        self.reported += textwrap.wrap(
            line, WIDTH, initial_indent=margin, subsequent_indent=MARGIN + "  ", break_long_words=False,
            break_on_hyphens=False,
        )  # fmt: skip


def _clock(at: Instant) -> str:
    moment = datetime.fromtimestamp(at // 1000, UTC)
    return f"{moment:%a %H:%M:%S}" if at % MINUTE >= SECOND else f"{moment:%a %H:%M}"


def _starts(run: Run, name: str) -> str:
    has_queue = run.request.target["type"] == "sqs"
    return f"{name} sends to its queue" if has_queue else f"{name} starts {_short(run.workflow)}"


def _properties(run: Run) -> str:
    return f", properties {json.dumps(dict(run.request.properties))}" if run.request.properties else ""


def _events(events: Sequence[Event]) -> str:
    return ", ".join(_event(event) for event in events) or "the time has come"


def _event(event: Event) -> str:
    match event.kind:
        case "partition" if event.payload is not None:
            return f"commit {event.payload['id']} to {_short(event.dataset or '')}"
        case "partition":
            return f"day {(event.partition or {})['day']} of {_short(event.dataset or '')}"
        case "size":
            return (event.path or "").rpartition("/")[2]
        case "program_status":
            return f"{_short(event.workflow or '')} {event.status}"
        case "event":
            return f"{event.key.rpartition(':')[2]} {json.dumps(event.payload)}"
        case "cloudwatch_alarm":
            return f"alarm {(event.payload or {})['alarm']} in {(event.payload or {})['state']}"
        case "time":
            return f"the time {_clock(event.instant)}"
        case "run_now":
            return "somebody asked"
        case "elapsed":
            return "its span has elapsed"
        case "absent" if event.partition:
            return f"day={event.partition['day']} of {_short(event.dataset or '')} did not come"
        case "absent":
            return "nothing came"


def _short(name: str) -> str:
    return name.rpartition(".")[2]
