"""Backfills, re-processings, DAGs with re-runs and runs of pull workers after a restore of the three tables to
different instants (O4).

Each was requested or put before all of these instants: what a user changed later is lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from chalicelib.core.backfills.request import Reprocess
from chalicelib.core.errors import SluiceError
from chalicelib.flow.backfills import reprocess, reprocess_view
from tests.faults import invariants
from tests.faults.test_restores import Restored, repaired_after_deaths
from tests.support import backfills, dags
from tests.support.pull_workers import PULLED, PullWorker
from tests.support.schedules import BY_DAY, after, at, at_most, partitions
from tests.support.world import World, day, flights

DAYS = [f"2026-02-{number:02d}" for number in range(10, 16)]
DIAMOND = dags.dag(*dags.DIAMOND)


class Planned(Restored):
    """A backfill of six days in which two run at a time, a DAG for each day of data, and a workflow of pull workers."""

    def __init__(self, seed: int) -> None:
        World.__init__(self, wake_shards=1, history_shards=1)
        self._begin_work(seed)
        schedules = {
            "nightly": at("0 5 * * *", "join"),
            "pulled": partitions(1, "pull", dataset="weather", coalesce=False),
        }
        self.deploy(dags.app(DIAMOND, schedules, pull={"target": PULLED, "retries": {"attempts": 9, "delay": "1s"}}))
        interval = {"from_": f"{DAYS[0]}T00:00:00Z", "to": f"{DAYS[-1]}T23:59:00Z"}
        self.backfill = backfills.begin(self, "nightly", concurrency=2, **interval)
        self.worker = PullWorker(self, "w1")

    def some_work(self, minutes: int) -> None:
        """Minutes in which data comes, workers claim and report, EMR's runs end, and time passes, in any order."""
        end = self.clock.now() + minutes * 60_000
        while self.clock.now() < end:
            match self.chance.randrange(5):
                case 0:
                    dataset, number = self.chance.choice(["flights", "weather"]), self.chance.randint(1, 5)
                    self.uploaded.add((dataset, number))
                    self.upload(day(number, dataset, "_SUCCESS" if dataset == "flights" else "a.csv"))
                case 1 | 2:
                    self.ends("SUCCESS")
                case _:
                    self.works()
            if self.chance.random() < 0.8:
                self.keep()
                self.settle()
            self.keep()
            self.pass_by(self.chance.choice(["7s", "25s", "50s"]))
            self.keep()

    def works(self) -> None:
        if not self.worker.leases:
            self.worker.claim()
        elif self.chance.random() < 0.5:
            self.reports()

    def reports(self) -> None:
        """The worker reports its oldest run, unless the lease is no longer its own."""
        try:
            self.worker.succeed(0)
        except SluiceError as error:
            assert error.code in ("conflict", "not_found", "lease_lost", "gone"), error
        self.worker.leases.pop(0)

    def rest_all(self) -> None:
        for _ in range(30):
            self.pass_by("2m")
            self.finish()
            self.settle()
            while self.worker.leases:
                self.reports()
            while self.worker.claim():
                self.reports()
                self.settle()


def backfill_is_whole(world: Planned) -> None:
    assert backfills.counts(world, "nightly", world.backfill) == {"succeeded": len(DAYS)}
    assert Counter(backfills.about(run) for run in world.runs("nightly") if run.backfill) == Counter(DAYS)


def dag_is_whole(world: Planned) -> None:
    days = {number for dataset, number in world.uploaded if dataset == "flights"}
    assert dags.states(world) == [dict.fromkeys("abcd", "SUCCEEDED")] * len(days)


def workers_did_all(world: Planned) -> None:
    """The lease of a silent worker ends, so a run may have further attempts."""
    days = {number for dataset, number in world.uploaded if dataset == "weather"}
    last = {run.run_id: run.state for run in sorted(world.runs("pulled"), key=lambda run: run.attempt)}
    assert list(last.values()) == ["SUCCEEDED"] * len(days)


def nothing_started_twice(world: Planned) -> None:
    names = Counter(made.name for made in world.targets.emr.runs.values())
    assert [name for name, count in names.items() if count > 1] == []
    attempts = {f"{run.run_id}-{run.attempt}" for run in invariants.Stock(world).runs}
    assert set(names) <= attempts, "runs of EMR that no table has"


def nothing_waits(world: Planned) -> None:
    stock = invariants.Stock(world)
    assert [state for state in stock.lines.values() if (state.active, state.waiters) != (0, 0)] == []
    assert [job for job in stock.jobs if not job.closed and job.state != "PENDING_TRIGGER"] == []


CHECKS: list[Callable[[Planned], None]] = [
    nothing_started_twice, backfill_is_whole, dag_is_whole, workers_did_all, nothing_waits,
]  # fmt: skip


def play(seed: int, minutes: int) -> None:
    world = Planned(seed)
    world.settle()
    world.keep()
    world.some_work(8)
    since = world.restore(minutes)
    world.clock.pass_by("20m")
    world.repair(since)
    invariants._slots_are_counted(invariants.Stock(world))
    invariants._queues_are_what_jobs_say(invariants.Stock(world))
    world.rest_all()
    for check in CHECKS:
        check(world)


@pytest.mark.parametrize("minutes", [0, 1, 3, 8])
@pytest.mark.parametrize("seed", range(3))
def test_o4_plans_go_on_after_a_restore(seed: int, minutes: int) -> None:
    play(seed, minutes)


@pytest.mark.long
@pytest.mark.parametrize("minutes", [0, 1, 3, 8])
@pytest.mark.parametrize("seed", range(100, 160))
def test_o4_plans_go_on_after_hundreds_of_restores(seed: int, minutes: int) -> None:
    play(seed, minutes)


class Again(Restored):
    """Four days of data that were processed by two schedules, and one that has begun: of the days again, in two steps,
    or of a part of the DAG run of a day."""

    def __init__(self, seed: int, kind: str) -> None:
        World.__init__(self, wake_shards=1, history_shards=1)
        self._begin_work(seed)
        chain = {"clean": partitions(by=BY_DAY, **at_most(1)), "join": after("clean", "join", by=BY_DAY)}
        self.deploy(flights(chain) if kind == "reprocess" else dags.app(DIAMOND))
        for number in range(1, 5 if kind == "reprocess" else 2):
            self.upload(day(number))
            self.settle()
        for _ in range(10):
            self.finish()
            self.settle()
            self.pass_by("1m")
        self.first = len(self.targets.emr.runs)
        if kind == "reprocess":
            asked = {"dataset": "flights", "from": {"year": 2013}, "concurrency": 2, "properties": {"again": "yes"}}
            begun = reprocess.begin(self.ports, "demo", Reprocess.model_validate(asked), "tester", "r1")
            self.asked = begun.id
        else:
            dags.rerun(self, kind, "b")
        self.keep()

    def some_work(self, minutes: int) -> None:
        """Minutes in which EMR's runs end and time passes, in any order."""
        end = self.clock.now() + minutes * 60_000
        while self.clock.now() < end:
            if self.chance.random() < 0.6:
                self.ends("SUCCESS")
            if self.chance.random() < 0.8:
                self.keep()
                self.settle()
            self.keep()
            self.pass_by(self.chance.choice(["7s", "25s", "50s"]))
            self.keep()


def play_again(kind: str, seed: int, minutes: int) -> Again:
    world = Again(seed, kind)
    world.some_work(4)
    since = world.restore(minutes)
    world.clock.pass_by("20m")
    repaired_after_deaths(world, since, 2)
    invariants._slots_are_counted(invariants.Stock(world))
    invariants._queues_are_what_jobs_say(invariants.Stock(world))
    for _ in range(20):
        world.pass_by("2m")
        world.finish()
        world.settle()
    names = Counter(made.name for made in world.targets.emr.runs.values())
    assert [name for name, count in names.items() if count > 1] == []
    attempts = {f"{run.run_id}-{run.attempt}" for run in invariants.Stock(world).runs}
    assert set(names) <= attempts, "runs of EMR that no table has"
    stock = invariants.Stock(world)
    assert [state for state in stock.lines.values() if (state.active, state.waiters) != (0, 0)] == []
    assert [job for job in stock.jobs if not job.closed and job.state != "PENDING_TRIGGER"] == []
    return world


def reprocessed(seed: int, minutes: int) -> None:
    world = play_again("reprocess", seed, minutes)
    shown = reprocess_view.reprocess_view(world.ports, reprocess.existing(world.ports, "demo", world.asked))
    assert (shown["state"], [step["state"] for step in shown["steps"]]) == ("DONE", ["succeeded", "succeeded"])
    for name in ("clean", "join"):
        days = Counter(str(run.partition and run.partition["day"]) for run in world.runs(name) if run.backfill)
        assert days == Counter("1234"), name


def rerun_of_dag(kind: str, seed: int, minutes: int) -> None:
    world = play_again(kind, seed, minutes)
    assert dags.states(world) == [dict.fromkeys("abcd", "SUCCEEDED")]
    ran = Counter(run.schedule.rpartition("~")[2] for run in invariants.Stock(world).runs)
    again = {"b", "d"} if kind == "from" else {"b"}
    assert {node: count for node, count in ran.items() if node} == {n: 1 + (n in again) for n in "abcd"}


@pytest.mark.parametrize("minutes", [0, 2, 4])
@pytest.mark.parametrize("seed", range(3))
def test_o4_a_reprocessing_goes_on_after_a_restore(seed: int, minutes: int) -> None:
    reprocessed(seed, minutes)


@pytest.mark.parametrize("minutes", [0, 2, 4])
@pytest.mark.parametrize("kind", ["from", "only"])
@pytest.mark.parametrize("seed", range(2))
def test_o4_a_rerun_of_a_dag_goes_on_after_a_restore(seed: int, kind: str, minutes: int) -> None:
    rerun_of_dag(kind, seed, minutes)


@pytest.mark.long
@pytest.mark.parametrize("minutes", [0, 1, 2, 4])
@pytest.mark.parametrize("seed", range(100, 130))
def test_o4_reprocessings_and_reruns_go_on_after_many_restores(seed: int, minutes: int) -> None:
    reprocessed(seed, minutes)
    rerun_of_dag("from", seed, minutes)
    rerun_of_dag("only", seed, minutes)
