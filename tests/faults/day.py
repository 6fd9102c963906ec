"""A whole day, minute by minute, of a platform: clocks that deliver, Spark jobs that fail and are tried again, DAGs,
pull workers that die, Lambdas that die, and an emitter that is away for half an hour.

Time is simulated, and everything else is real but the outside: EMR, the queue, the workers.
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
from tests.faults.memory_tables import QuickWorld
from tests.support import dags
from tests.support.crash import lost, wrap
from tests.support.fakes import APPLICATION, EmrRun, FakeEmr, FakeQueue
from tests.support.pull_workers import POOL, PULLED, PullWorker
from tests.support.world import EMR, SQS, flights

R = TypeVar("R")
DAY = 1_440  # minutes
OUTAGE = 30  # minutes in the middle, in which no tick comes
ALL = {"mode": "all"}  # what an outage has kept from being prepared is made up for, every fire of it
RETRIES = {"attempts": 6, "delay": "30s"}


@dataclass(frozen=True)
class Load:
    """How many schedules fire every minute, by what they start; every how many minutes each DAG is run; how long."""

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
        """How many there are, those of a DAG with its start and four nodes, without what is tried again."""
        return (self.delivered + self.spark + self.pulled) * self.minutes + self.dags * self.dag_runs * 5


class DayEmr(FakeEmr):
    """The same promises, for fifty thousand runs: a token is looked up."""

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
    """Keeps how often each message came, and which of them the present invocation has sent."""

    def __init__(self, clock: Any) -> None:
        super().__init__(clock)
        self.came: Counter[str] = Counter()
        self.just_sent: list[str] = []

    def start(self, run: Run, context: Mapping[str, Any]) -> Answer:
        self.came[run.run_id] += 1
        self.just_sent.append(run.run_id)
        return Started("m", done=True)


class Day(QuickWorld):
    """The day from midnight on. ``deaths`` is how many Lambdas die in it, at random moments."""

    def __init__(self, load: Load, deaths: int, seed: int) -> None:
        super().__init__(wake_shards=1, history_shards=1)
        self.load, self.chance = load, random.Random(seed)
        self.emr, self.queue = DayEmr(self.clock), DayQueue(self.clock)
        self.targets.emr, self.targets.queue = self.emr, self.queue
        self.workers = [PullWorker(self, f"worker-{number}") for number in range(4)]
        self.worker_deaths = self.died = 0
        # Messages whose Lambda died before it had recorded them, and how often: each may come once more for that (E6).
        self.in_doubt: Counter[str] = Counter()
        # Attempts that a worker was given, how often, and those whose success was taken from it.
        self.leased: Counter[tuple[str, int]] = Counter()
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
        """The day, and the time after it in which what is under way comes to its end."""
        quiet = range(self.load.minutes // 2, self.load.minutes // 2 + OUTAGE)
        for minute in range(self.load.minutes):
            self.minute(ticks=minute not in quiet, deaths=self.deadly[minute])
        for _ in range(100):
            self.minute()

    def minute(self, ticks: bool = True, deaths: int = 0) -> None:
        """The tick, hints at their instants, and what ends meanwhile. In some minutes Lambdas die of it."""
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
        """One Lambda, which nobody repeats. True if it died: then what it has sent and not recorded is in doubt."""
        self.queue.just_sent.clear()
        died = lost(act)
        for run_id in self.queue.just_sent if died else ():
            if self.ports.runs.run(run_id, 1) is None:
                self.in_doubt[run_id] += 1
        return died

    def _spark_ends(self) -> None:
        """A run takes a minute or two. Every tenth first attempt fails; of every twentieth end nobody is told."""
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
        """Each worker reports what it has done and takes what lies in the pool. Some die with work in their hands."""
        for worker in self.workers:
            for place, given in enumerate(worker.leases):
                if not self._invoke(lambda worker=worker, place=place: worker.succeed(place)):
                    self.acknowledged.add((given["run_id"], given["attempt"]))
            worker.leases.clear()
            self._invoke(lambda worker=worker: worker.claim(capacity=50, pool=POOL))
            self.leased.update((given["run_id"], given["attempt"]) for given in worker.leases)
            if worker.leases and self.chance.random() < 0.02:
                self.worker_deaths += 1
                worker.leases.clear()
        self.settle(self._invoke)

    # -- what became of it -----------------------------------------------------------------------------------------

    def check(self) -> None:
        """Of every fire there is one run, which succeeded; every start was made once, and nothing is left."""
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
        """Each schedule has a run for every minute, each DAG one of every node in every round, in the graph's order."""
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
        """Each came once, and once more for each Lambda that died between sending it and recording it, at most."""
        assert self.queue.came.keys() == sent
        doubled = {
            run_id: count for run_id, count in self.queue.came.items() if count > 1 + self.in_doubt.get(run_id, 0)
        }
        assert doubled == {}, "came again, and nobody died over it"

    def _check_spark(self, runs: list[Run]) -> None:
        """Each attempt is one run of EMR, which ended as the attempt did; nothing but a failure is tried again."""
        attempts = {run.request.name: run for run in runs if run.request.target["type"] == "emr_serverless"}
        started = Counter(run.name for run in self.emr.runs.values())
        assert started == Counter(attempts.keys()), "a start too many, or too few"
        ends = {"SUCCESS": "SUCCEEDED", "FAILED": "RETRYING"}
        other = [run.name for run in self.emr.runs.values() if ends.get(run.state) != attempts[run.name].state]
        assert other == [], "ended in another way at EMR"

    def _check_workers(self, runs: list[Run]) -> None:
        """No attempt was given to two workers, and what a worker has done is not done again."""
        attempts = {(run.run_id, run.attempt): run for run in runs if run.request.target["type"] == "worker"}
        assert self.leased.keys() <= attempts.keys()
        assert [lease for lease, count in self.leased.items() if count > 1] == [], "two workers at one attempt"
        again = [lease for lease in self.acknowledged if attempts[lease].state != "SUCCEEDED"]
        assert again == [], "done, and tried again"
        retried = sum(run.state == "RETRYING" for run in attempts.values())
        assert retried <= 50 * (self.worker_deaths + self.died), "tried again, and nobody died over it"

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
    """``tell0``; of the schedules of a DAG ``dag0~`` for its start and ``dag0~a`` for a node, whatever its graph."""
    head, *rest = schedule.rpartition(".")[2].split("~")
    return f"{head}~{rest[-1]}" if rest else head
