"""Installations that move while grants, DAGs, messages and timers are at work, up to 20 minutes between export and
import (L14). Nothing runs in between. What was due then runs after the import, once; nothing is lost or doubled.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from chalicelib.core.instants import MINUTE
from tests.faults import invariants
from tests.faults.rests import come_to_an_end
from tests.support import dags
from tests.support.archives import emptied, exported, imported
from tests.support.schedules import after, partitions
from tests.support.world import EMR, SQS, World, day

DIAMOND = dags.dag(*dags.DIAMOND)
GRANTED = {"grants": [{"to": "demo", "run": ["core.*"], "policies": ["*"], "follow": ["core.*"]}]}
EVERY = {"trigger": {"type": "time", "expression": "@every 2m"}, "coalesce": False, "enabled": True}
SCHEDULES = {
    "every": {**EVERY, "workflow": "lake.core.count"},
    "told": {**EVERY, "workflow": "notify"},
    "four": {**EVERY, "workflow": "join", "trigger": {"type": "time", "expression": "R4/PT3M"}},
    "pairs": partitions(1, "join", dataset="weather", coalesce=False, policy="lake.calm"),
    "next": after("lake.core.count", "notify", coalesce=False),
}


class Moving(World):
    def __init__(self, seed: int) -> None:
        super().__init__(wake_shards=1, history_shards=1)
        self.chance = random.Random(seed)
        self.ports = replace(self.ports, settings=replace(self.ports.settings, authorization="enforce"))
        policies = {"calm": {"max_events": 3, "interval": "1m"}}
        self.deploy({"workflows": {"count": {"target": EMR}}, "policies": policies}, "lake", "core")
        self.grant("lake", GRANTED)
        self.deploy(dags.app(DIAMOND, SCHEDULES))
        self.uploaded: set[tuple[str, int]] = set()
        self.messages = 0

    def steps(self, count: int) -> None:
        for _ in range(count):
            match self.chance.randrange(5):
                case 0 | 1:
                    dataset, number = self.chance.choice(["flights", "weather"]), self.chance.randint(1, 9)
                    self.uploaded.add((dataset, number))
                    self.upload(day(number, dataset, "_SUCCESS" if dataset == "flights" else "a.csv"))
                case 2:
                    self.messages += 1
                    due = f"{self.chance.randint(1, 25)}m"
                    self.message(f"m{self.messages}", due_time=due, target=SQS, data=str(self.messages))
                case _:
                    self.ends()
            if self.chance.random() < 0.8:
                self.settle()
            self.pass_by(self.chance.choice(["7s", "25s", "50s"]))

    def ends(self) -> None:
        live = [made for made in self.targets.emr.runs.values() if made.state in ("SUBMITTED", "RUNNING")]
        if live:
            self.emr_says(self.chance.choice(live).id, "SUCCESS")

    def moves(self, minutes: int, everything: bool) -> None:
        """The source ends, the clock goes on, and only the files reach the new installation."""
        archive = exported(self, *([] if everything else ["demo", "lake"]))
        emptied(self.tables)
        self.hints.sent = []
        self.clock.wait_until(self.clock.now() + minutes * MINUTE)
        imported(self, archive)

    def rest(self) -> None:
        come_to_an_end(self, 40, ("every", "told", "four"))


def check(world: Moving, began: int) -> None:
    names = Counter(made.name for made in world.targets.emr.runs.values())
    assert [name for name, count in names.items() if count > 1] == [], "an attempt was started twice"
    for name in ("every", "told"):
        nominals = sorted(run.due_at for run in world.runs(name))
        assert nominals[0] == began + 2 * MINUTE
        assert [late - early for early, late in pairwise(nominals) if late - early != 2 * MINUTE] == [], name
    assert len(world.runs("four")) == 4
    assert len(world.runs("next")) == len(world.runs("every")), "each status was heard once"
    days = {dataset: len({n for named, n in world.uploaded if named == dataset}) for dataset in ("flights", "weather")}
    assert dags.states(world) == [dict.fromkeys("abcd", "SUCCEEDED")] * days["flights"]
    assert len(world.runs("pairs")) == days["weather"]
    sent = Counter(run.schedule for run in invariants.Stock(world).runs if run.schedule.startswith("demo.flights.~m"))
    assert list(sent.values()) == [1] * world.messages
    assert set(Counter(run_id for run_id, _ in world.targets.queue.messages).values()) <= {1}, (
        "a message was sent twice"
    )
    stock = invariants.Stock(world)
    assert [state for state in stock.lines.values() if (state.active, state.waiters) != (0, 0)] == []
    assert [job for job in stock.jobs if not job.closed and job.state != "PENDING_TRIGGER"] == []


def play(seed: int, minutes: int) -> None:
    world = Moving(seed)
    began = world.clock.now()
    world.steps(world.chance.randint(5, 20))
    world.moves(minutes, everything=world.chance.random() < 0.5)
    world.steps(5)
    world.rest()
    check(world, began)


@pytest.mark.parametrize("minutes", [0, 7, 20])
@pytest.mark.parametrize("seed", range(2))
def test_l14_what_is_due_between_export_and_import_runs_once(seed: int, minutes: int) -> None:
    play(seed, minutes)


@pytest.mark.long
@pytest.mark.parametrize("minutes", [0, 1, 3, 11, 20])
@pytest.mark.parametrize("seed", range(100, 160))
def test_l14_what_is_due_in_hundreds_of_moves_runs_once(seed: int, minutes: int) -> None:
    play(seed, minutes)
