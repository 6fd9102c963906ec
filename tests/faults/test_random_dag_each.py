"""W19 in random worlds: lists of any length, elements that fail and are retried, killed Lambdas, repeated hints, jobs
that people cancel, re-runs of some elements and of the node.

A plain oracle says, from the ends of the elements, which runs there must be, and the state of the node.
"""

from __future__ import annotations

import random
from functools import partial
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from chalicelib.core.dags import elements
from chalicelib.core.errors import SluiceError
from chalicelib.core.results import Result
from chalicelib.core.targets.answers import RunUpdate
from chalicelib.flow.dags import elements as elements_view
from chalicelib.flow.dags import runs
from chalicelib.flow.runs import complete
from chalicelib.flow.system import dispatch
from tests.faults import dying, invariants
from tests.support import dags
from tests.support.crash import lost, redelivered, wrap
from tests.support.fakes import EmrRun
from tests.support.world import World, day, full

DAILY = full("daily")


class Driver:
    """Plays random steps in a world with a DAG whose node ``load`` runs for each element of the list of ``scan``."""

    def __init__(self, seed: int, count: int, concurrency: int | None) -> None:
        self.world = World(wake_shards=1, history_shards=1)
        self.chance, self.count = random.Random(seed), count
        each = {"of": "scan", "concurrency": concurrency}
        load: dict[str, Any] = {"workflow": "w_load", "each": each}
        if self.chance.random() < 0.3:
            load["constraints"] = [{"type": "concurrency", "max": 2, "on_unmet": "wait"}]
        document = dags.app(dags.dag("scan -> load", "load -> report", nodes={"load": load}))
        if self.chance.random() < 0.3:
            document["workflows"]["w_load"] |= {"retries": {"attempts": 2, "delay": "30s"}}
        self.world.deploy(document)
        self.most, self.lists = concurrency or 2**9, [list(range(count))]
        self.points = wrap(self.world)
        self.points.armed = True
        redelivered(lambda: self.world.upload(day(1)))
        self.world.settle(lost)

    def hand_on(self) -> None:
        """The program of ``scan`` ends with the newest list, unless it has ended."""
        for run in [run for run in self.world.targets.emr.runs.values() if run.request["dag"]["node"] == "scan"]:
            if run.state in ("SUBMITTED", "RUNNING"):
                made = RunUpdate("SUCCEEDED", self.world.clock.now(), result=Result(self.lists[-1]))
                run_id, attempt = run.request["run_id"], run.request["attempt"]
                redelivered(partial(complete.advance_run, self.world.ports, run_id, attempt, made))
                run.state = "SUCCESS"
        self.world.settle(lost)

    def live(self) -> list[EmrRun]:
        """The active runs but those of ``scan``, which end when they hand on a list."""
        active = [run for run in self.world.targets.emr.runs.values() if run.state in ("SUBMITTED", "RUNNING")]
        return [run for run in active if run.request["dag"]["node"] != "scan"]

    def step(self) -> None:
        """An element's run ends, with its event or without; a Lambda may be killed in it; old hints come again."""
        if self.chance.random() < 0.3:
            self.points.die_after = [self.points.count + self.chance.randint(1, 12)]
        self.hand_on()
        live = self.live()
        assert len([run for run in live if "each" in run.request]) <= self.most
        for run in self.chance.sample(live, min(len(live), self.chance.randint(1, 3))):
            run.state = "FAILED" if self.chance.random() < 0.25 else "SUCCESS"
            if self.chance.random() < 0.7:
                lost(lambda run=run: self.world.emr_says(run.id, run.state, "said so"))
        if self.chance.random() < 0.3:
            for _, ref in self.world.hints.sent[:3]:
                lost(lambda ref=ref: dispatch.dispatch(self.world.ports, ref))
        self.world.settle(lost)

    def rest(self) -> None:
        """Time passes until no work is active."""
        for _ in range(60):
            if self.view["state"] != "RUNNING" and self.points.die_after is None:
                invariants.check_rest(self.world)
                return
            self.points.die_after = None
            self.hand_on()
            for run in self.live():
                run.state = "FAILED" if self.chance.random() < 0.1 else "SUCCESS"
            dying.passes(self.world, "11m")
        raise AssertionError(f"still active: {self.view}")

    @property
    def view(self) -> dags.Document:
        [view] = dags.views(self.world)
        return view

    def ends(self) -> dict[int, str]:
        run, found, cursor = runs.begun(self.world.ports, DAILY, self.view["run_id"]), {}, None
        while True:
            page = elements_view.page(self.world.ports, run, "load", 100, cursor)
            found |= {each["index"]: each["state"] for each in page.items}
            if (cursor := page.cursor) is None:
                return found

    def check(self, must: dict[int, set[int]]) -> dict[int, str]:
        """``must`` are the elements that each round runs. Returns how they ended."""
        started: dict[int, set[int]] = {}
        attempts = []
        for run in self.world.targets.emr.runs.values():
            if "each" in run.request:
                index, round_ = run.request["each"]["index"], run.request["dag"]["round"]
                started.setdefault(round_, set()).add(index)
                attempts.append((run.request["run_id"], run.request["attempt"]))
                assert run.request["each"]["value"] in [known[index] for known in self.lists if index < len(known)]
        assert len(attempts) == len(set(attempts)), "an element was started twice"
        assert started == {number: indexes for number, indexes in must.items() if indexes}
        ends, node = self.ends(), self.view["nodes"]["load"]
        assert sorted(ends) == list(range(len(self.lists[-1])))
        assert set(ends.values()) <= {"SUCCEEDED", "FAILED"}
        failed = sum(state == "FAILED" for state in ends.values())
        assert node["elements"] == {"count": len(ends), "succeeded": len(ends) - failed, "failed": failed}
        assert node["state"] == ("FAILED" if failed else "SUCCEEDED")
        row = self.world.ports.rows.get(elements.Elements, node["run_id"])
        assert row is not None and elements.is_over(row) and row.wake_at is None
        return ends


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 12), st.none() | st.integers(1, 4), st.integers(0, 10**6))
def test_w19_exactly_the_elements_run_that_have_to(count: int, concurrency: int | None, seed: int) -> None:
    driver = Driver(seed, count, concurrency)
    for _ in range(6):
        driver.step()
    driver.rest()
    must, number = {1: set(range(count))}, 1
    ends = driver.check(must)
    for request in range(4):
        failed = {index for index, state in ends.items() if state == "FAILED"}
        what: tuple[str, str, Any] = ("from", "load", None)
        chosen = set(range(len(driver.lists[-1])))
        kind = driver.chance.random()
        if kind < 0.5 and failed:
            what, chosen = ("from", "load", "failed"), failed
        elif kind < 0.7 and ends:
            chosen = {driver.chance.choice(sorted(ends))}
            what = ("from", "load", sorted(chosen))
        elif kind < 0.85:
            driver.lists.append([f"{request}-{index}" for index in range(driver.chance.randint(0, 6))])
            what, chosen = ("from", "scan", None), set(range(len(driver.lists[-1])))
        _again(driver, *what, request)
        number += 1
        must[number] = chosen
        driver.step()
        driver.rest()
        if driver.view["nodes"]["scan"]["state"] != "SUCCEEDED":
            return  # nothing hands on a list
        ends = driver.check(must)


def _again(driver: Driver, what: Any, node: str, chosen: Any, number: int) -> None:
    again = partial(
        runs.rerun, driver.world.ports, DAILY, driver.view["run_id"], what, node, "tester", f"again{number}", chosen
    )
    try:
        redelivered(again)
    except SluiceError as error:
        raise AssertionError(error) from None
    driver.world.settle(lost)
