"""Runs of a DAG that go one at a time, each with a node for each element of a list, after a restore of the three tables
to different instants (O4, W19, W20)."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.faults import invariants
from tests.faults.test_restores import Restored, repaired_after_deaths
from tests.support import dags
from tests.support.world import World, day

FILES = ["x", "y", "z", "u"]
EACH = {"b": {"workflow": "w_b", "each": {"of": "a", "path": "files", "concurrency": 2}}}
TIDY = {"tidy": {"workflow": "w_tidy", "when": "all_done"}}
ONE = {"max": 1, "on_unmet": "wait"}
DAYS = 2


class Mapped(Restored):
    """Two days of data. The run of the first one has begun, the other one waits for its place."""

    def __init__(self, seed: int) -> None:
        World.__init__(self, wake_shards=1, history_shards=1)
        self._begin_work(seed)
        self.deploy(dags.app(dags.dag("a -> b", "b -> tidy", nodes=EACH | TIDY, concurrency=ONE)))
        for number in range(1, DAYS + 1):
            self.upload(day(number))
            self.settle()
        self.keep()

    def writes_results(self) -> None:
        """The job of a has written its list by the time it ends."""
        for run in self.targets.emr.runs.values():
            if run.request["dag"]["node"] == "a":
                self.payloads.results[run.request["run_id"], run.request["attempt"]] = json.dumps(
                    {"files": FILES}
                ).encode()

    def some_work(self, minutes: int) -> None:
        """Minutes in which EMR's runs end and time passes, in any order."""
        end = self.clock.now() + minutes * 60_000
        while self.clock.now() < end:
            self.writes_results()
            if self.chance.random() < 0.7:
                self.ends("SUCCESS")
            if self.chance.random() < 0.8:
                self.keep()
                self.settle()
            self.keep()
            self.pass_by(self.chance.choice(["7s", "25s", "50s"]))
            self.keep()


def play(seed: int, minutes: int) -> None:
    world = Mapped(seed)
    world.some_work(5)
    since = world.restore(minutes)
    world.clock.pass_by("20m")
    repaired_after_deaths(world, since, 2)
    invariants._slots_are_counted(invariants.Stock(world))
    invariants._queues_are_what_jobs_say(invariants.Stock(world))
    for _ in range(30):
        world.pass_by("2m")
        world.writes_results()
        world.finish()
        world.settle()
    assert dags.states(world) == [{"a": "SUCCEEDED", "b": "SUCCEEDED", "tidy": "SUCCEEDED"}] * DAYS
    made = Counter(run.name for run in world.targets.emr.runs.values())
    assert [name for name, count in made.items() if count > 1] == [], "started twice"
    known = {f"{run.run_id}-{run.attempt}" for run in invariants.Stock(world).runs}
    assert set(made) <= known, "runs of EMR that no table has"
    ran = Counter(
        (run.request["dag"]["run_id"], run.request["each"]["index"])
        for run in world.targets.emr.runs.values()
        if "each" in run.request
    )
    assert sorted(ran.values()) == [1] * len(FILES) * DAYS, ran
    stock = invariants.Stock(world)
    assert [state for state in stock.lines.values() if (state.active, state.waiters) != (0, 0)] == []
    assert [job for job in stock.jobs if not job.closed and job.state != "PENDING_TRIGGER"] == []


@pytest.mark.parametrize("minutes", [0, 2, 5])
@pytest.mark.parametrize("seed", range(2))
def test_o4_elements_go_on_after_a_restore(seed: int, minutes: int) -> None:
    play(seed, minutes)


@pytest.mark.long
@pytest.mark.parametrize("minutes", [0, 1, 3, 5])
@pytest.mark.parametrize("seed", range(100, 140))
def test_o4_elements_go_on_after_many_restores(seed: int, minutes: int) -> None:
    play(seed, minutes)
