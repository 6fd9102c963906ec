"""Simulates a whole day of a platform, minute by minute. Schedules deliver messages, Spark jobs fail and are retried,
and DAGs run. Pull workers crash, Lambdas are killed, and the emitter is down for half an hour.

Time is simulated, and so are the services outside Sluice: EMR, the queue, the workers. Everything else is real.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from chalicelib.aws.tables import items
from chalicelib.core.dags import rounds as dag_rounds
from chalicelib.core.instants import MINUTE, SECOND, Instant
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.answers import Answer, Started
from chalicelib.flow.fires import emit
from chalicelib.flow.system import sweep
from tests.support import dags
from tests.support.crash import lost, wrap
from tests.support.fakes import APPLICATION, EmrRun, FakeEmr, FakeQueue
from tests.support.pull_workers import POOL, PULLED, PullWorker
from tests.support.world import EMR, SQS, World, flights

R = TypeVar("R")
DAY = 1_440  # minutes
OUTAGE = 30  # minutes in the middle, in which no tick comes
ALL = {"mode": "all"}  # every fire that was not prepared in the outage is made up for
RETRIES = {"attempts": 6, "delay": "30s"}


@dataclass(frozen=True)
class Load:
    """The load of a day: schedules per target that fire every minute, DAGs, the minutes between two runs of a DAG, and
    the length of the day in minutes.
    """

    delivered: int
    spark: int
    pulled: int
    dags: int
    dag_every: int
    minutes: int = DAY

    @property
    def dag_runs(self) -> int:
        return self.minutes // self.dag_every

    @property
    def jobs(self) -> int:
        """The number of jobs, without retries. A run of a DAG counts as five: its start and four nodes."""
        return (self.delivered + self.spark + self.pulled) * self.minutes + self.dags * self.dag_runs * 5


class DayEmr(FakeEmr):
    """Behaves as `FakeEmr`, for fifty thousand runs: finds a run by its token in a dictionary."""

    def __init__(self, clock: Any) -> None:
        super().__init__(clock)
        self.by_token: dict[str, EmrRun] = {}
        self.living: dict[str, tuple[EmrRun, Instant]] = {}
        self.repeated = 0

    def start(self, run: Run, context: Mapping[str, Any]) -> Answer:
        known = self.by_token.get(run.request.client_token)
        if known is None:
            name = run.request.name
            known = EmrRun(f"jr{len(self.runs) + 1:05d}", name, run.request.client_token)
            self.runs[known.id] = self.by_token[known.token] = known
            self.living[known.id] = known, self._clock.now()
        else:
            self.repeated += 1
        return Started(f"{APPLICATION}/{known.id}")


class DayQueue(FakeQueue):
    """Counts the sends of each message, and keeps the messages that the present invocation has sent."""

    def __init__(self, clock: Any) -> None:
        super().__init__(clock)
        self.came: Counter[str] = Counter()
        self.just_sent: list[str] = []

    def start(self, run: Run, context: Mapping[str, Any]) -> Answer:
        self.came[run.run_id] += 1
        self.just_sent.append(run.run_id)
        return Started("m", done=True)


class Day(World):
    """A day that begins at midnight. ``deaths`` is the number of Lambdas that are killed, at random moments. It is a
    subclass because its targets and workers answer by its clock, and checks of a world read its rows."""

    def __init__(self, load: Load, deaths: int, seed: int) -> None:
        super().__init__(wake_shards=1, history_shards=1)
        self.load, self.chance = load, random.Random(seed)
        self.emr, self.queue = DayEmr(self.clock), DayQueue(self.clock)
        self.targets.emr, self.targets.queue = self.emr, self.queue
        self.workers = [PullWorker(self, f"worker-{number}") for number in range(4)]
        self.worker_deaths = self.died = 0
        # Messages whose Lambda was killed before it recorded them, and how often. Each may be sent once more per kill
        # (E6).
        self.in_doubt: Counter[str] = Counter()
        # How often each attempt was leased to a worker, and how often that worker crashed before it began, so that the
        # attempt is offered again; and the attempts whose success Sluice acknowledged.
        self.leased: Counter[tuple[str, int]] = Counter()
        self.not_begun: Counter[tuple[str, int]] = Counter()
        self.acknowledged: set[tuple[str, int]] = set()
        self.clock.pass_by("12h")  # from noon to midnight
        self.begin = self.clock.now()
        self.deploy(self._document())
        self.settle()
        self.points = wrap(self)
        self.deadly = Counter(self.chance.randrange(load.minutes) for _ in range(deaths))

    def _document(self) -> dict[str, Any]:
        load = self.load

        def every(expression: str, count: int) -> dict[str, Any]:
            return {"trigger": {"type": "time", "expression": expression, "repeats": count}, "enabled": True}

        kinds = {"tell": load.delivered, "spark": load.spark, "pulled": load.pulled}
        minutely = every("* * * * *", load.minutes) | {"catch_up": ALL, "coalesce": False}
        schedules = {
            f"{kind}{n}": {"workflow": kind, **minutely} for kind, count in kinds.items() for n in range(count)
        }
        spark = {name: {"target": EMR, "retries": RETRIES} for name in ("spark", *"abcd")}
        document = flights(schedules, pulled={"target": PULLED, "retries": RETRIES}, tell={"target": SQS}, **spark)
        nodes = {name: {"workflow": name} for name in "abcd"}
        graph = {"nodes": nodes, "edges": [dags.edge(each) for each in dags.DIAMOND], "catch_up": ALL}
        timed = graph | every(f"*/{load.dag_every} * * * *", load.dag_runs)
        return {**document, "dags": {f"dag{number}": timed for number in range(load.dags)}}

    # -- a minute --------------------------------------------------------------------------------------------------

    def play(self) -> None:
        """Play the day, then some minutes in which the active work ends."""
        quiet = range(self.load.minutes // 2, self.load.minutes // 2 + OUTAGE)
        for minute in range(self.load.minutes):
            self.minute(ticks=minute not in quiet, deaths=self.deadly[minute])
        for _ in range(100):
            self.minute()

    def minute(self, ticks: bool = True, deaths: int = 0) -> None:
        """Play one minute: the tick, hints at their instants, and the ends of runs. ``deaths`` Lambdas are killed in
        it.
        """
        self.points.armed = bool(deaths)
        self.points.die_after = [self.points.count + self.chance.randint(1, 40 * (each + 1)) for each in range(deaths)]
        before = self.points.count
        if ticks:
            self._tick()
        end = self.clock.now() + MINUTE
        while (due := min((at for at, _ in self.hints.sent), default=end)) < end:
            self.clock.wait_until(max(due, self.clock.now()))
            self.settle(self._invoke)
        self.clock.wait_until(end)
        self.settle(self._invoke)
        self._spark_ends()
        self._workers_go_on()
        self.died += sum(before < each <= self.points.count for each in self.points.die_after)
        self.points.armed, self.points.die_after = False, None

    def _tick(self) -> None:
        for step in (emit.emit_due, sweep.hint_soon, sweep.sweep_all):
            self._invoke(lambda step=step: step(self.ports))
        self.settle(self._invoke)

    def _invoke(self, act: Callable[[], Any]) -> bool:
        """Run one Lambda, without a retry. Returns True if it was killed. What it sent and did not record is then in
        doubt.
        """
        self.queue.just_sent.clear()
        died = lost(act)
        for run_id in self.queue.just_sent if died else ():
            if self.ports.rows.get(Run, run_id, 1) is None:
                self.in_doubt[run_id] += 1
        return died

    def _spark_ends(self) -> None:
        """A run takes a minute or two. One in ten first attempts fails, and the event of one end in twenty is lost."""
        now = self.clock.now()
        for run, begun in list(self.emr.living.values()):
            if now - begun < 70 * SECOND:
                continue
            del self.emr.living[run.id]
            fails = run.name.endswith("-1") and self.chance.random() < 0.1
            run.state = "FAILED" if fails else "SUCCESS"
            if self.chance.random() < 0.95:
                self._invoke(lambda run=run: self.emr_says(run.id, run.state))
        self.settle(self._invoke)

    def _workers_go_on(self) -> None:
        """Each worker reports its finished work and claims the offers of the pool. Some workers crash while they hold
        leases.
        """
        for worker in self.workers:
            for place, given in enumerate(worker.leases):
                if not self._invoke(lambda worker=worker, place=place: worker.succeed(place)):
                    self.acknowledged.add((given["run_id"], given["attempt"]))
            worker.leases.clear()
            self._invoke(lambda worker=worker: worker.claim(capacity=50, pool=POOL))
            self.leased.update((given["run_id"], given["attempt"]) for given in worker.leases)
            if worker.leases and self.chance.random() < 0.02:
                self.worker_deaths += 1
                self.not_begun.update((given["run_id"], given["attempt"]) for given in worker.leases)
                worker.leases.clear()
        self.settle(self._invoke)

    # -- the result ------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Check that each fire has one run that succeeded, that each start was made once, and that no work is left."""
        attempts: dict[str, list[Run]] = {}
        for run in self._rows(Run, "RunsTable", "A#"):
            attempts.setdefault(run.run_id, []).append(run)
        last = [max(runs, key=lambda run: run.attempt) for runs in attempts.values()]
        assert [run for run in last if run.state != "SUCCEEDED"] == [], "lost"
        for runs in attempts.values():
            assert sorted(run.attempt for run in runs) == list(range(1, len(runs) + 1))
            assert all(run.state == "RETRYING" for run in runs if run.attempt < len(runs)), "went on after its end"
        self._check_fires(last)
        self._check_messages({run.run_id for run in last if run.workflow.endswith(".tell")})
        self._check_spark([run for runs in attempts.values() for run in runs])
        self._check_workers([run for runs in attempts.values() for run in runs])
        self._check_rest()

    def _check_fires(self, last: list[Run]) -> None:
        """Each schedule has one run per minute, and each DAG has one run per node and round, in the order of
        the graph.
        """
        fires = Counter(_short(run.schedule) for run in last)
        assert fires == self._expected()
        early = [run for run in last if run.due_at is not None and run.claimed_at < run.due_at]
        assert early == [], "before it was due"
        timed = [run for run in last if "~" not in run.schedule]
        minutes = Counter((run.schedule, run.nominal_at) for run in timed)
        assert len(minutes) == len(timed), "a minute came twice"

        rounds: dict[str, dict[str, Run]] = {}
        in_dags = [run for run in last if "~" in run.schedule]
        for run in in_dags:
            rounds.setdefault(dag_rounds.which(run.partition) or "", {})[_short(run.schedule).partition("~")[2]] = run
        assert sum(map(len, rounds.values())) == len(in_dags), "a node ran twice in a round"
        for nodes in rounds.values():
            assert nodes.keys() == {"", *"abcd"}
            for before, after in (graph_edge.split(" -> ") for graph_edge in dags.DIAMOND):
                assert nodes[after].claimed_at >= (nodes[before].ended_at or 0), "before what leads to it had ended"

    def _check_messages(self, sent: set[str]) -> None:
        """Each message was sent once, and at most once more for each Lambda that was killed between the send and its
        record.
        """
        assert self.queue.came.keys() == sent
        doubled = {
            run_id: count for run_id, count in self.queue.came.items() if count > 1 + self.in_doubt.get(run_id, 0)
        }
        assert doubled == {}, "came again, and nobody died over it"

    def _check_spark(self, runs: list[Run]) -> None:
        """Each attempt is one run of EMR with the same end. Only failed attempts are retried."""
        attempts = {run.request.name: run for run in runs if run.request.target["type"] == "emr_serverless"}
        started = Counter(run.name for run in self.emr.runs.values())
        assert started == Counter(attempts.keys()), "a start too many, or too few"
        ends = {"SUCCESS": "SUCCEEDED", "FAILED": "RETRYING"}
        other = [run.name for run in self.emr.runs.values() if ends.get(run.state) != attempts[run.name].state]
        assert other == [], "ended in another way at EMR"

    def _check_workers(self, runs: list[Run]) -> None:
        """No attempt was leased again unless its worker had crashed before it began, and no acknowledged work was done
        again."""
        attempts = {(run.run_id, run.attempt): run for run in runs if run.request.target["type"] == "worker"}
        assert self.leased.keys() <= attempts.keys()
        twice = [lease for lease, count in self.leased.items() if count > 1 + self.not_begun[lease]]
        assert twice == [], "two workers at one attempt"
        again = [lease for lease in self.acknowledged if attempts[lease].state != "SUCCEEDED"]
        assert again == [], "done, and tried again"
        retried = sum(run.state == "RETRYING" for run in attempts.values())
        assert retried <= 50 * (self.worker_deaths + self.died), "more retries than deaths explain"

    def _check_rest(self) -> None:
        left = [job for job in self._rows(Job, "JobsTable", "FIRE#", "JOB#", "GATHERING", "RETRY#") if not job.closed]
        assert left == []
        lines = [row for name, row in self.tables.rows() if name == "JobsTable" and row["sk"]["S"] == "STATE"]
        counted = [{name: int(row.get(name, {"N": "0"})["N"]) for name in ("active", "waiters")} for row in lines]
        assert all(books == {"active": 0, "waiters": 0} for books in counted), "a permit that never came back"

    def _expected(self) -> Counter[str]:
        load = self.load
        made = {"tell": load.delivered, "spark": load.spark, "pulled": load.pulled}
        expected = Counter({f"{kind}{n}": load.minutes for kind, count in made.items() for n in range(count)})
        nodes = {f"dag{number}~{node}": load.dag_runs for number in range(load.dags) for node in ("", *"abcd")}
        return expected + Counter(nodes)

    def _rows(self, kind: type[R], table: str, *heads: str) -> Iterator[R]:
        for name, row in self.tables.rows():
            if name == table and row["sk"]["S"].startswith(heads):
                yield items.from_item(kind, row)


def _short(schedule: str) -> str:
    """A short name: ``tell0``; for the schedules of a DAG ``dag0~`` (its start) and ``dag0~a`` (a node), for
    any graph.
    """
    head, *rest = schedule.rpartition(".")[2].split("~")
    return f"{head}~{rest[-1]}" if rest else head
