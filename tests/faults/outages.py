"""Simulates some hours of a platform in which one or two services of AWS are down for an hour. Measures delays, losses,
and the duration of the backlog.

The load uses every feature: timers with each catch-up rule, Spark jobs with a limit, a DAG, pull workers, partitions,
custom events, and a backfill. Users change schedules during the load. Failed calls are repeated exactly as AWS repeats
them.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from chalicelib.core import states
from chalicelib.core.errors import SluiceError
from chalicelib.core.events import partitions
from chalicelib.core.instants import MINUTE, SECOND, Instant, Millis
from chalicelib.core.rows.run import Run
from chalicelib.flow.fires import emit
from chalicelib.flow.ingest import objects, outbox
from chalicelib.flow.runs import complete, dead_letters
from chalicelib.flow.system import dispatch, sweep
from tests.faults import invariants
from tests.faults.services import (
    INVOKED,
    AsyncLambda,
    Emr,
    Lake,
    Outage,
    Payloads,
    Queue,
    QueuedHints,
    Services,
    Stream,
    TargetQueue,
    fails_tables,
)
from tests.support import backfills, dags
from tests.support.fakes import EmrRun
from tests.support.pull_workers import POOL, PULLED, PullWorker
from tests.support.world import EMR, SQS, World, flights, full, state_change

BEFORE, HOUR, AFTER = 10, 60, 10  # minutes of the load
SHIFT = 30  # minutes by which the second outage of a pair begins later
MAX_REST = 150  # minutes after the load, in which active work ends
LATE: Millis = MINUTE  # a fire that starts this much after its instant is late
SPARK_TAKES = 90 * SECOND
PATIENT = {"tries": 3, "delay": "1s", "backoff": {"tries": 30, "delay": "10s", "max_delay": "5m"}}
ENTRIES = 8  # of the backfill
EVERY = {"tell": 2, "hasty": 4, "latest": 5, "none": 5, "spark": 6, "pulled": 10, "changed": 6}  # minutes
SILENCE: Millis = 3 * MINUTE  # after the end of a run; Sluice normally records the end within this time


@dataclass(frozen=True)
class Result:
    """The measured results, in minutes. ``recovery`` is the time from the end of the outage until nothing
    was behind.
    """

    fires: int
    late: int
    worst: int
    skipped: int
    spark_worst: int
    data_worst: int
    history_worst: int
    refused: str
    dead_letters: int
    twice: int
    recovery: int


class Platform(World):
    """A world whose queues, streams and services fail. It is a subclass because each fake of the world is replaced by
    one that can fail, and the checks of a world apply to the whole.
    """

    def __init__(self, outages: Sequence[Outage], seed: int = 1) -> None:
        super().__init__(wake_shards=1, history_shards=1)
        self.outages = outages
        self.services = Services(self.clock, outages, seed)
        self.hint_queue = Queue("HintsQueue", self.services, self.clock)
        self.objects = Queue("ObjectsQueue", self.services, self.clock)
        self.emr, self.queue = Emr(self.clock, self.services), TargetQueue(self.clock, self.services)
        self.targets.emr, self.targets.queue = self.emr, self.queue
        self.payloads, self.lake = Payloads(self.services), Lake(self.services)
        changed = {"hints": QueuedHints(self.hint_queue), "payloads": self.payloads, "lake": self.lake}
        self.ports = self.with_ports(**changed)
        self.stream = Stream(self.tables, self.services, self.clock)
        fails_tables(self.tables, self.services)
        self.run_state = AsyncLambda(self.services, self.clock, self._lives)
        self.custom = Queue("CustomQueue", self.services, self.clock)
        self.workers = [PullWorker(self, f"worker-{number}") for number in range(2)]
        self.unsent: list[partitions.ObjectCreated] = []  # notifications that S3 still has
        self.on_bus: list[Callable[[], Any]] = []  # custom events that EventBridge still has
        self.requests: list[Callable[[], Any]] = []  # of users and producers, who repeat them
        self.answers: Counter[int] = Counter()
        self.ended: dict[str, Instant] = {}  # runs of EMR
        self.put_at: dict[str, Instant] = {}
        self.posted_ids: list[str] = []
        self.failures: list[tuple[Instant, str]] = []  # of invocations while everything was up
        self.minutes = max(each.until for each in outages) + AFTER if outages else BEFORE + HOUR + AFTER
        self.end = max((each.until for each in outages), default=0)
        self.last_behind = 0
        self.letters = 0
        self.deploy(self._document())
        self.work()
        self.services.begin = self.begin = self.clock.now()

    def _document(self) -> dict[str, Any]:
        def every(name: str, workflow: str, **more: Any) -> dict[str, Any]:
            minutes = EVERY[name]
            trigger = {"type": "time", "expression": f"*/{minutes} * * * *", "repeats": self.minutes // minutes}
            return {"workflow": workflow, "trigger": trigger, "coalesce": False, "enabled": True, **more}

        partition = {"type": "partition", "dataset": "weather"}
        one_at_a_time = [{"type": "concurrency", "max": 3, "on_unmet": "wait"}]
        schedules = {
            "tell": every("tell", "tell"),
            "hasty": every("hasty", "notify"),
            "latest": every("latest", "tell", catch_up="latest"),
            "none": every("none", "tell", catch_up="none"),
            "spark": every("spark", "spark", constraints=one_at_a_time),
            "pulled": every("pulled", "pulled"),
            "data": {"workflow": "tell", "trigger": partition, "by": ["year", "month", "day"], "enabled": True},
            "orders": {"workflow": "tell", "trigger": {"type": "event", "event": "order"}, "enabled": True},
            "past": {"workflow": "old", "trigger": {"type": "time", "expression": "@daily"}, "enabled": True},
            "changed": every("changed", "tell"),
        }
        retries = {"attempts": 8, "delay": "30s"}
        spark = {name: {"target": EMR, "retries": retries} for name in ("spark", "old", *"abcd")}
        pulled = {"target": PULLED, "retries": retries}
        document = flights(schedules, tell={"target": SQS, "delivery": PATIENT}, pulled=pulled, **spark)
        nodes = {name: {"workflow": name} for name in "abcd"}
        graph = {"nodes": nodes, "edges": [dags.edge(each) for each in dags.DIAMOND], "catch_up": "all"}
        trigger = {"type": "time", "expression": "*/20 * * * *", "repeats": self.minutes // 20}
        return {**document, "dags": {"graph": {**graph, "trigger": trigger, "enabled": True}}}

    # -- time ----------------------------------------------------------------------------------------------------

    def play(self) -> Result:
        for minute in range(self.minutes):
            self._load(minute)
            self._minute()
            self._note_behind(minute)
        for minute in range(self.minutes, self.minutes + MAX_REST):
            self._minute()
            self._note_behind(minute)
            if not minute % 10:
                self._redrive()
            if minute > self.minutes + 4 and not self._under_way():
                break
        return self._result()

    def _minute(self) -> None:
        self._tick()
        end = (self.clock.now() // MINUTE + 1) * MINUTE
        while self._step(end):
            pass
        self.clock.wait_until(end)
        self._outside()

    def _tick(self) -> None:
        """The event of a tick is too old after a minute, and is not repeated."""
        if not self.services.how("eventbridge") and not self.services.refuses("lambda", INVOKED):
            steps = (emit.emit_due, sweep.hint_soon, sweep.sweep_all)
            for step in steps:
                self._lives(lambda step=step: step(self.ports))

    def _step(self, end: Instant) -> bool:
        """Deliver the next message before an instant. Returns False if there is none."""
        queues = (self.hint_queue, self.objects, self.custom)
        nexts = [at for queue in queues if (at := queue.next_at()) is not None]
        if min(nexts, default=end) >= end:
            return False
        self.clock.wait_until(min(nexts))
        self.work()
        return True

    def work(self) -> None:
        given = self.hint_queue.receive()
        failed = [message for message in given if not self._hinted(message.body)]
        self.hint_queue.settle(given, failed)
        given = self.objects.receive()
        failed = [message for message in given if not self._lives(
            lambda message=message: objects.match_object(self.ports, message.body))]  # fmt: skip
        self.objects.settle(given, failed)
        given = self.custom.receive()
        self.custom.settle(given, [message for message in given if not self._lives(message.body)])

    def _hinted(self, body: tuple[Any, Instant]) -> bool:
        """Handle a message as the handler of hints does."""
        refs, due = body
        now = self.clock.now()
        if due - now > 10 * SECOND:
            return self._lives(lambda: self.ports.hints.send_all([(due, refs)], now, must=True))
        left: list[Any] = []
        lived = self._lives(lambda: left.extend(dispatch.dispatch_together(self.ports, refs, due)))
        if left:
            self._failed(f"hints of {left}")
        return lived and not left

    def _lives(self, act: Callable[[], Any]) -> bool:
        """Run one invocation. Returns False if it failed."""
        try:
            act()
        except Exception as error:  # what the runtime sees
            self._failed(repr(error))
            return False
        return True

    def _failed(self, why: str) -> None:
        if not self.services.any_down():
            self.failures.append((self.clock.now(), why))

    def _outside(self) -> None:
        """Do what happens outside Sluice within a minute."""
        self._notify()
        self._spark_goes_on()
        if not self.services.how("eventbridge"):
            self.run_state.work()
            if not self.services.how("sqs"):  # what it could not deliver, it delivers twice
                answer, self.on_bus = self.on_bus, []
                for post in [*answer, *answer[:-1]]:
                    self.custom.send(post)
        for worker in self.workers:
            self._pulls(worker)
        self.stream.work()
        requests, self.requests = self.requests, []
        for request in requests:
            self._request(request)
        self.work()

    # -- the load ------------------------------------------------------------------------------------------------

    def _load(self, minute: int) -> None:
        if minute == 5:
            days = {"from_": "2026-01-01T00:00:00Z", "to": f"2026-01-{ENTRIES + 1:02d}T00:00:00Z"}
            self._request(lambda: backfills.begin(self, "past", "b1", concurrency=2, **days))
        if minute % 5 == 1:
            self._upload(minute)
        if minute % 4 == 1:
            self._post(minute)
        if minute % 20 == 3:
            self._request(lambda: self.run_now("spark", f"r{minute}"))
        if minute % 20 == 7:
            self._request(lambda: self.pause("changed", "backlog"))
        if minute % 20 == 9:
            self.requests.append(lambda: self.resume("changed"))

    def _upload(self, minute: int) -> None:
        key = f"raw/weather/year=2026/month={minute // 28 + 1}/day={minute % 28 + 1}/a.csv"
        self.lake.objects["lake-bucket", key] = "a"
        self.put_at[key] = self.clock.now()
        self.unsent.append(partitions.ObjectCreated("lake-bucket", key, self.clock.now()))

    def _notify(self) -> None:
        """S3 keeps its notifications while S3 or the queue is down. Then each comes twice, in any order."""
        if self.services.how("s3") == "unavailable" or self.services.how("sqs"):
            return
        waited = any(self.clock.now() - each.at > 2 * MINUTE for each in self.unsent)
        answer = self.services.shuffled([*self.unsent, *self.unsent]) if waited else list(self.unsent)
        self.unsent = []
        for created in answer:
            self.objects.send(created)

    def _post(self, minute: int) -> None:
        """Half of the custom events come through the bus, the others through the API. Each has an id."""
        name, at = f"order-{minute}", self.clock.now()
        self.posted_ids.append(name)

        def post() -> None:
            outbox.post(self.ports, "demo", [outbox.Envelope("order", name, {}, at)])

        if minute % 8 == 1:
            self._put_on_bus(post)
        else:
            self._request(post)

    def _put_on_bus(self, post: Callable[[], Any]) -> None:
        """A producer whose PutEvents call is refused repeats it a minute later."""
        if self.services.how("eventbridge"):
            self.requests.append(lambda: self._put_on_bus(post))
        else:
            self.on_bus.append(post)

    def _request(self, request: Callable[[], Any]) -> None:
        """Make a request to the API. A request that is refused temporarily is repeated a minute later."""
        if self.services.refuses("lambda"):
            self.answers[502] += 1
        else:
            try:
                self._answered(request)
                return
            except Refused:
                pass
            except SluiceError:  # refused for good: the schedule has ended
                return
        self.requests.append(request)

    def _answered(self, request: Callable[[], Any]) -> None:
        try:
            request()
        except SluiceError as error:
            self.answers[error.status] += 1
            if error.status != 503:
                raise
            raise Refused from error
        except Exception as error:
            self._failed(repr(error))
            self.answers[500] += 1
            raise Refused from error

    def _pulls(self, worker: PullWorker) -> None:
        """A worker reports its finished work and claims more. Without an answer it retries later."""
        while worker.leases:
            try:
                self._answered(lambda: worker.succeed(0)) if not self.services.refuses("lambda") else _refuse()
            except Refused:
                return
            except SluiceError:  # another worker has the lease
                pass
            worker.leases.pop(0)
        if not self.services.refuses("lambda"):
            with suppress(Refused):
                self._answered(lambda: worker.claim(capacity=10, pool=POOL))

    def _spark_goes_on(self) -> None:
        now = self.clock.now()
        for run, begun in list(self.emr.living.values()):
            if now - begun < SPARK_TAKES:
                continue
            del self.emr.living[run.id]
            self.ended[run.name] = now
            run.state = "FAILED" if run.name.endswith("-1") and self.services.happens(0.1) else "SUCCESS"
            self._tell_end(run)

    def _tell_end(self, run: EmrRun) -> None:
        """In an outage half of the events are lost: EMR and EventBridge emit and deliver them at best effort."""
        lost = 0.5 if self.services.how("emr") or self.services.how("eventbridge") else 0
        if not self.services.happens(lost):
            change = state_change(run.id, run.state, self.clock.now())
            self.run_state.put(lambda: complete.on_state_change(self.ports, change))

    def _redrive(self) -> None:
        """The operator redrives the dead letters after the outage."""
        page = dead_letters.listed(self.ports, "demo", None, 500, None)
        self.letters += len(page.items)
        for letter in page.items:
            dead_letters.redrive(self.ports, "demo", letter.run_id)

    # -- the result ----------------------------------------------------------------------------------------------

    def _note_behind(self, minute: int) -> None:
        if minute >= self.end and not self.services.any_down() and self.behind():
            self.last_behind = minute + 1

    def behind(self) -> list[str]:
        """Work that is overdue: rows to wake, runs whose end is not recorded, objects and events that are not accepted,
        and changes that are missing in the lake.
        """
        now = self.clock.now()
        stock = invariants.Stock(self)
        found = [name for at, name in stock.awake if at < now - invariants.MAX_OVERDUE]
        old = now - 2 * MINUTE
        ended = {name for name, at in self.ended.items() if at < now - SILENCE}
        found += [f"the end of {run.run_id}" for run in stock.runs
                  if run.request.name in ended and not states.is_terminal(run.state)]  # fmt: skip
        # Rows that an invocation leased without success, and that now wait for their lease.
        found += [f"the job {job.job_id}" for job in stock.jobs if job.leases > 1 and not job.closed]
        found += [f"the start of {run.run_id}" for run in stock.runs
                  if run.leases > 1 or (_is_to_start(run) and run.claimed_at < old)]  # fmt: skip
        found += [f"the object {each.body.key}" for each in self.objects.messages if each.sent_at < old]
        found += [f"the notification of {each.key}" for each in self.unsent if each.at < old]
        found += ["a custom event" for each in self.custom.messages if each.sent_at < old]
        if self.stream.behind > 6 * MINUTE:
            found.append("history")
        done = {(run.schedule, run.nominal_at) for run in stock.runs}
        found += [f"the fire {name} {at}" for name in ("tell", "hasty", "pulled") for at in self._due(name, old)
                  if (full(name), at) not in done]  # fmt: skip
        return found

    def _due(self, name: str, until: Instant) -> list[Instant]:
        every = EVERY[name] * MINUTE
        first = -(-(self.begin + 1) // every) * every
        return list(range(first, until, every))[: self.minutes * MINUTE // every]

    def _under_way(self) -> bool:
        stock = invariants.Stock(self)
        open_jobs = any(not job.closed for job in stock.jobs if job.schedule != full("past"))
        living = any(not states.is_terminal(run.state) for run in stock.runs)
        letters = dead_letters.listed(self.ports, "demo", None, 1, None).items
        return bool(open_jobs or living or letters or self.requests or self.stream.behind)

    def check(self) -> None:
        """Check that nothing is lost and nothing is done twice, for every outage."""
        assert self.failures == [], "an invocation failed while everything was up"
        assert self.answers[500] == 0, "a caller got an error of the service itself"
        kept = [*self.objects.dead, *self.custom.dead, *self.hint_queue.dead, *self.stream.lost]
        assert kept == [], "given up, for an operator to repair"
        behind = self.behind()
        assert behind == [], f"behind: {behind}"
        invariants.check_rest(self)
        stock = invariants.Stock(self)
        last: dict[str, Run] = {}
        for run in sorted(stock.runs, key=lambda run: run.attempt):
            last[run.run_id] = run
        assert [run for run in last.values() if run.state != "SUCCEEDED"] == [], "lost"
        self._check_fires(list(last.values()), stock)
        self._check_events(last, stock)
        assert self.queue.came.keys() == {
            run.run_id for run in last.values() if run.workflow.endswith(("tell", "notify"))
        }
        lines = {
            (line["id"], line.get("attempt", 0)) for part in self.stream.bucket.objects.values() for line in part.lines
        }
        rows = {(run.run_id, run.attempt) for run in stock.runs} | {(record.id, 0) for record in stock.records}
        assert lines == rows, "history is not complete"

    def _check_fires(self, last: Sequence[Run], stock: invariants.Stock) -> None:
        """Each instant of each schedule has one run, or is recorded as skipped by the schedule's catch-up rule."""
        fires = Counter((run.schedule, run.nominal_at) for run in last if run.kind == "scheduled" or run.nominal_at)
        assert max(fires.values()) == 1, "a fire came twice"
        skipped: Counter[str] = Counter()
        for record in stock.records:
            skipped[record.schedule] += record.count if record.kind == "SKIPPED" else 0
        for name in ("tell", "hasty", "spark", "pulled", "changed", "latest", "none"):
            ran = {at for schedule, at in fires if schedule == full(name)}
            due = self._due(name, self.clock.now())
            assert ran <= set(due)
            left_out = skipped[full(name)] if name in ("latest", "none") else 0
            assert len(ran) + left_out == len(due), f"fires of {name} are not accounted for"
        asked = [run for run in last if run.schedule == full("spark") and run.nominal_at is None]
        assert len(asked) == len(range(3, self.minutes, 20)), "a request for a run was lost, or came twice"
        rounds = Counter(run.schedule.rpartition("~")[2] for run in last if run.schedule.startswith(full("graph~")))
        assert rounds == dict.fromkeys(("", *"abcd"), self.minutes // 20), "rounds of a DAG"
        [backfill] = stock.backfills
        assert (backfill.state, backfill.succeeded) == ("DONE", ENTRIES), "a backfill that is not complete"

    def _check_events(self, last: Mapping[str, Run], stock: invariants.Stock) -> None:
        """Each object and each custom event counts once, in a run."""
        counted = [marker for marker in stock.applied if marker.event_job in last]
        data = [marker.event_job for marker in counted if marker.schedule == full("data")]
        assert len(data) == len(set(data)) == len(self.put_at), "objects"
        orders = {marker.event.id for marker in counted if marker.schedule == full("orders")}
        assert len(orders) == len(self.posted_ids), "custom events"

    def _result(self) -> Result:
        stock = invariants.Stock(self)
        runs = [run for run in stock.runs if run.attempt == 1]
        timed = [run for run in runs if run.nominal_at is not None and run.schedule in map(full, ("tell", "hasty"))]
        lateness = [_started(run) - (run.due_at or 0) for run in timed]
        started = {run.run_id: _started(run) for run in runs}
        data = [started[marker.event_job] - marker.event.instant for marker in stock.applied
                if marker.schedule == full("data")]  # fmt: skip
        spark = [self.emr.started_at[run.request.name] - run.due_at for run in runs
                 if run.schedule == full("spark") and run.due_at is not None]  # fmt: skip
        skipped = sum(record.count for record in stock.records if record.kind == "SKIPPED")
        return Result(
            fires=len(timed),
            late=sum(each > LATE for each in lateness),
            worst=_minutes(max(lateness)),
            skipped=skipped,
            spark_worst=_minutes(max(spark)),
            data_worst=_minutes(max(data)),
            history_worst=_minutes(self.stream.oldest),
            refused=" and ".join(str(status) for status in (502, 503) if self.answers[status]),
            dead_letters=self.letters,
            twice=sum(count - 1 for count in self.queue.came.values()),
            recovery=max(0, self.last_behind - self.end),
        )


class Refused(Exception):
    """A request failed, or its result is unknown."""


def _refuse() -> None:
    raise Refused


def _is_to_start(run: Run) -> bool:
    return run.state == "STARTING" and run.target_id is None and run.queued_in is None


def _started(run: Run) -> Instant:
    return run.start_requested_at if run.start_requested_at is not None else run.claimed_at


def _minutes(span: Millis) -> int:
    return math.ceil(span / MINUTE)


def outage_of(service: str, how: str = "unavailable", since: int = BEFORE) -> Outage:
    return Outage(service, how, since, since + HOUR)


def played(*outages: Outage, seed: int = 1) -> tuple[Platform, Result]:
    """Play the outages without a log: it would have a line for each check of a job, and a traceback for
    each failure.
    """
    logging.disable(logging.CRITICAL)
    try:
        platform = Platform(outages, seed)
        return platform, platform.play()
    finally:
        logging.disable(logging.NOTSET)
