"""W17 to W20 together in random worlds: graphs of any shape with join rules, branches, and nodes with a list; elements
that fail and are retried; DAG runs that wait for each other, take too long, and are cancelled; another graph while runs
are active; killed Lambdas; re-runs of the run, of nodes, and of the elements that failed.

The recursive oracle of `test_random_dag_rules` says from the ends of the nodes which ones must have run. What a node
with a list must have done follows here from the ends of its elements.
"""

from __future__ import annotations

import random
from collections import Counter
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chalicelib.core.definitions.dag import Dag
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import HOUR
from chalicelib.core.rows.definition import Definition
from chalicelib.flow.dags import runs
from chalicelib.flow.runs import actions as run_actions
from chalicelib.flow.system import dispatch
from tests.core.dags.test_dags import graphs
from tests.faults import dying, invariants
from tests.faults.test_random_dag_rules import Oracle, drawn, drawn_branches
from tests.faults.test_random_dags import DAILY, ruled
from tests.support import dags
from tests.support.crash import lost, redelivered, wrap
from tests.support.fakes import EmrRun
from tests.support.world import World, day

START = "daily~"
SLOTS = "dag:demo.flights.daily"
OVER = {"SUCCEEDED", "FAILED", "CANCELLED", "ABORTED", "BLOCKED", "SKIPPED"}


class Plan:
    """A random DAG: its edges, rules and branches, and for each node with a list the node that hands it on."""

    def __init__(self, edges: list[str], chance: random.Random) -> None:
        self.edges, self.rules = edges, drawn(edges, chance)
        self.lists: dict[str, str] = {}
        for up, down in (edge.split(" -> ") for edge in edges):
            waits = self.rules.get(down) in (None, "none_failed", "all_done")
            if waits and up not in self.lists and down not in self.lists.values() and chance.random() < 0.8:
                self.lists.setdefault(down, up)
        self.at_once = {node: chance.choice([None, 1, 2]) for node in sorted(self.lists)}
        self.branches = {e for e in drawn_branches(edges, self.rules, chance) if e[0] not in self.lists}

    def document(self, limits: dict[str, Any]) -> dags.Document:
        made = ruled(self.edges, self.rules, self.branches, **limits)
        for node, of in self.lists.items():
            made["nodes"][node]["each"] = {"of": of, "path": "list", "concurrency": self.at_once[node]}
        return made


class Driver:
    """Plays random steps in a world with such a DAG, and remembers what its programs handed on."""

    def __init__(self, edges: list[str], seed: int) -> None:
        self.world, self.chance = World(wake_shards=1, history_shards=1), random.Random(seed)
        self.limits: dict[str, Any] = {}
        if self.chance.random() < 0.6:
            self.limits["concurrency"] = {"max": 1, "on_unmet": self.chance.choice(["wait", "wait", "cancel_other"])}
        if self.chance.random() < 0.5:
            self.limits["run_timeout"] = "2h"
        self.plan = Plan(edges, self.chance)
        document = dags.app(self.plan.document(self.limits))
        for name, workflow in document["workflows"].items():
            if name.startswith("w_") and self.chance.random() < 0.3:
                workflow["retries"] = {"attempts": 2, "delay": "30s"}
        self.world.deploy(document)
        self.plans = {self.graph: self.plan}
        self.handed_on: dict[tuple[str, int], Any] = {}
        self.alone: dict[tuple[str, int, str], set[int]] = {}  # the elements of a round that ran again
        self.points = wrap(self.world)
        self.points.armed = True

    @property
    def graph(self) -> str:
        row = self.world.ports.rows.get(Definition, "dag", DAILY)
        assert row is not None
        return runs.graph_name(DAILY, Dag.model_validate(row.document)).rpartition("~")[2]

    def replaced(self, edges: list[str]) -> None:
        """Another graph, while runs of the first are active."""
        self.plan = Plan(edges, self.chance)
        redelivered(partial(dags.put, self.world, self.plan.document(self.limits)))
        self.plans[self.graph] = self.plan

    def active(self) -> list[EmrRun]:
        return [run for run in self.world.targets.emr.runs.values() if run.state in ("SUBMITTED", "RUNNING")]

    def end(self, run: EmrRun, failing: float) -> None:
        """The program of a run hands on a list and which nodes it picks, or nothing, or no object; and it ends."""
        made: Any = {
            "pick": [node for node in "abcdefg" if self.chance.random() < 0.6],
            "list": [self.chance.randint(0, 9) for _ in range(self.chance.randint(0, 4))],
        }
        result = self.chance.choice([made] * 9 + [{}, None, "none"])
        if result is not None:
            dags.hands_on(self.world, run, result)
        self.handed_on[run.request["run_id"], run.request["attempt"]] = result
        run.state = "FAILED" if self.chance.random() < failing else "SUCCESS"

    def step(self) -> None:
        """Some runs end, with their events or without; a person may cancel a DAG run; a Lambda may be killed in it; old
        hints come again."""
        if self.chance.random() < 0.3:
            self.points.die_after = [self.points.count + self.chance.randint(1, 12)]
        self.check_active()
        live = self.active()
        for run in self.chance.sample(live, min(len(live), self.chance.randint(1, 3))):
            self.end(run, 0.2)
            if self.chance.random() < 0.7:
                lost(lambda run=run: self.world.emr_says(run.id, run.state, "said so"))
        lasting = [run for run in self.world.runs(START) if run.state == "RUNNING"]
        if lasting and self.chance.random() < 0.07:
            lost(lambda: run_actions.cancel(self.world.ports, lasting[0].run_id, "ann"))
        if self.chance.random() < 0.3:
            for _, ref in self.world.hints.sent[:3]:
                lost(lambda ref=ref: dispatch.dispatch(self.world.ports, ref))
        self.world.settle(lost)

    def check_active(self) -> None:
        """No more elements and DAG runs are active at once than may be."""
        live = Counter((r.request["schedule"], str(r.request["dag"])) for r in self.active() if "each" in r.request)
        for (schedule, _), count in live.items():
            graph, node = schedule.rsplit("~", 2)[1:]
            assert count <= (self.plans[graph].at_once[node] or 9)
        if "concurrency" in self.limits:
            assert len([run for run in self.world.runs(START) if run.state == "RUNNING"]) <= 1

    def rest(self) -> None:
        """Time passes until no work is active. Some programs hang until they are cancelled."""
        hang = {run.id for run in self.active() if "run_timeout" in self.limits and self.chance.random() < 0.1}
        for turn in range(50):
            waits = self.world.jobs(START) or any(view["state"] == "RUNNING" for view in dags.views(self.world))
            if not waits and self.points.die_after is None:
                return
            self.points.die_after = None
            for run in self.active():
                if run.id not in hang or turn > 30:
                    self.end(run, 0.1)
            dying.passes(self.world, "11m")
        raise AssertionError(f"expected an end, got {dags.states(self.world)}")

    # -- the oracle ----------------------------------------------------------------------------------------------------

    def check(self) -> None:
        invariants.check_rest(self.world)
        assert self.active() == []
        attempts = [(run.request["run_id"], run.request["attempt"]) for run in self.world.targets.emr.runs.values()]
        assert len(attempts) == len(set(attempts)), "a run was started twice"
        if "concurrency" in self.limits:
            assert self.world.limit_state(SLOTS).active == 0
            self.check_apart()
        for view in dags.views(self.world):
            [start] = self.world.ports.runs.attempts(view["run_id"])
            if self.limits and not view["reruns"]:
                assert (start.state == "SUCCEEDED") == (view["state"] == "SUCCEEDED")
            self.check_run(view, start.cancel)

    def check_apart(self) -> None:
        """With one run of the DAG at a time, each begins when the one before it has ended."""
        starts = sorted(self.world.runs(START), key=lambda run: (run.claimed_at, run.state_at or 0))
        for one, two in pairwise(starts):
            assert one.state_at is not None and one.state_at <= two.claimed_at

    def check_run(self, view: dags.Document, cancelled: bool) -> None:
        plan, nodes = self.plans[view["graph"]], view["nodes"]
        states = {node: each["state"] for node, each in nodes.items()}
        assert set(states.values()) <= OVER
        if "run_timeout" in self.limits and not view["reruns"]:
            begun = [r for r in self.world.ports.runs.attempts(view["run_id"]) if r.outcome == "timed_out"]
            assert all((run.state_at or 0) >= run.claimed_at + 2 * HOUR for run in begun)
        for node in plan.lists:
            self.check_elements(view, node, cancelled)
        if cancelled:
            return
        ends = {node: each["state"] for node, each in nodes.items() if each["run_id"]}
        results = {node: self.result_of(plan, node, nodes[node]) for node, end in ends.items() if end == "SUCCEEDED"}
        assert {node: nodes[node].get("result") for node in results} == results
        oracle = Oracle(plan.edges, plan.rules, plan.branches, ends, results)
        expected = {node: oracle.state(node) for node in nodes}
        assert states == expected, (plan.rules, plan.branches, plan.lists, results)
        assert view["state"] == oracle.run(), (plan.rules, expected)

    def result_of(self, plan: Plan, node: str, view: dags.Document) -> Any:
        """The result of the last attempt of a node's run; a node with a list has none."""
        known = [attempt for run_id, attempt in self.handed_on if run_id == view["run_id"]]
        return None if node in plan.lists else self.handed_on[view["run_id"], max(known)]

    def check_elements(self, view: dags.Document, node: str, cancelled: bool) -> None:
        """In each round, each element ran that had to; the node ended as they did."""
        ended: dict[int, str] = {}
        found = [run for run in self.world.targets.emr.runs.values() if "each" in run.request]
        of_node = [run for run in found if run.request["dag"]["run_id"] == view["run_id"]]
        of_node = [run for run in of_node if run.request["dag"]["node"] == node]
        rounds = sorted({run.request["dag"]["round"] for run in of_node})
        for number in rounds:
            ran = [run for run in of_node if run.request["dag"]["round"] == number]
            chosen = self.alone.get((view["run_id"], number, node))
            ended = {} if chosen is None else ended
            ended |= {run.request["each"]["index"]: run.state for run in sorted(ran, key=_attempt)}
            must = set(range(ran[0].request["each"]["count"])) if chosen is None else chosen
            assert {run.request["each"]["index"] for run in ran} <= must
            whole = self.world.ports.runs.attempts(view["nodes"][node]["run_id"] or "")
            if not cancelled and not (whole and whole[-1].cancel):
                assert {run.request["each"]["index"] for run in ran} == must
        shown = view["nodes"][node].get("elements")
        state = view["nodes"][node]["state"]
        if shown is None or cancelled:
            assert cancelled or state != "SUCCEEDED"
            return
        full = runs.view(self.world.ports, runs.begun(self.world.ports, DAILY, view["run_id"]), in_full=True)
        if shown["count"] and full["nodes"][node]["round"] == (rounds or [0])[-1]:
            failed = sum(end != "SUCCESS" for end in ended.values())
            assert shown == {"count": len(ended), "succeeded": len(ended) - failed, "failed": failed}
        assert state == ("FAILED" if shown["failed"] else "SUCCEEDED")

    # -- re-runs -------------------------------------------------------------------------------------------------------

    def rerun(self, number: int) -> None:
        view = self.chance.choice(dags.views(self.world))
        node: str | None = self.chance.choice(sorted(view["nodes"]))
        what: Any = "from"
        elements: str | None = None
        failed = [name for name, each in view["nodes"].items() if each.get("elements", {}).get("failed")]
        if failed and self.chance.random() < 0.6:
            node, elements = self.chance.choice(failed), "failed"
            run = runs.begun(self.world.ports, DAILY, view["run_id"])
            known = {index for index, end in self.ends(view, str(node)).items() if end != "SUCCESS"}
            round_ = len(runs.view(self.world.ports, run)["reruns"]) + 2
            if len(known) == view["nodes"][node]["elements"]["failed"]:
                self.alone[view["run_id"], round_, str(node)] = known
            else:  # some of them never ran, because the node was cancelled
                elements = None
        elif self.chance.random() < 0.3:
            what, node = "all", None
        again = partial(
            runs.rerun, self.world.ports, DAILY, view["run_id"], what, node, "tester", f"again{number}", elements
        )
        try:
            redelivered(again)
        except SluiceError as error:
            assert error.code == "invalid", error
        self.world.settle(lost)

    def ends(self, view: dags.Document, node: str) -> dict[int, str]:
        """The last end of each element of a node."""
        found = [run for run in self.world.targets.emr.runs.values() if "each" in run.request]
        mine = [run for run in found if run.request["dag"]["run_id"] == view["run_id"]]
        ran = [run for run in mine if run.request["dag"]["node"] == node]
        full = max((r.request["dag"]["round"] for r in ran if self._is_full(view, r, node)), default=1)
        ran = [run for run in ran if run.request["dag"]["round"] >= full]
        return {run.request["each"]["index"]: run.state for run in sorted(ran, key=_attempt)}

    def _is_full(self, view: dags.Document, run: EmrRun, node: str) -> bool:
        return (view["run_id"], run.request["dag"]["round"], node) not in self.alone


def _attempt(run: EmrRun) -> tuple[int, int]:
    return run.request["dag"]["round"], run.request["attempt"]


def play(edges: list[str], seed: int) -> None:
    driver = Driver(edges, seed)
    world = driver.world
    redelivered(lambda: world.upload(day(1)))
    world.settle(lost)
    for number in range(8):
        if number == 3:
            driver.replaced(edges)
            redelivered(lambda: world.upload(day(2)))
        driver.step()
    driver.rest()
    driver.check()
    for number in range(3):
        driver.rerun(number)
        driver.step()
        driver.rest()
        driver.check()


@settings(max_examples=8, deadline=None)
@given(graphs(), st.integers(0, 10**6))
def test_w20_exactly_the_work_is_done_that_has_to_be(edges: list[str], seed: int) -> None:
    play(edges, seed)


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(graphs(), st.integers(0, 10**6))
def test_w20_exactly_the_work_is_done_in_many_worlds(edges: list[str], seed: int) -> None:
    play(edges, seed)
