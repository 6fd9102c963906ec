"""W4 in random worlds: graphs of any shape, nodes that fail and are retried, killed Lambdas, repeated hints, re-runs
from any failed node. Every node runs once in a round, after its upstreams.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from chalicelib.core.dags import rounds
from chalicelib.flow.dags import runs
from chalicelib.flow.system import dispatch
from tests.core.dags.test_dags import graphs
from tests.faults import dying, invariants
from tests.support import dags
from tests.support.crash import lost, redelivered, wrap
from tests.support.world import World, day, full

DAILY = full("daily")


DAYS = {"each": "day", "format": "year=%Y/month=%m/day=%-d"}
OF_PERIOD = {"trigger": {"type": "partition", "dataset": "flights", "of": "period"}, "by": [], "per": "day"}


def ruled(edges: list[str], rules: dict[str, str], branches: Collection[str] = (), **rest: Any) -> dags.Document:
    """A DAG of these edges, some of whose nodes have join rules. Those in ``branches`` need a result that picks the
    node after them."""
    nodes = {node: {"workflow": f"w_{node}", "when": rule} for node, rule in rules.items()}
    asked = {each: {"if": {"pick": [each[-1]]}} if each in branches else {} for each in edges}
    return dags.dag(*(dags.edge(each, **more) for each, more in asked.items()), nodes=nodes, **rest)


class DagDriver:
    """Plays random steps in a world with a DAG, which has a run for each day: by the keys of the partition, or by its
    period."""

    def __init__(
        self, edges: list[str], seed: int, rules: dict[str, str] | None = None, branches: Collection[str] = ()
    ) -> None:
        self.world = World(wake_shards=1, history_shards=1)
        self.chance = random.Random(seed)
        retried = {"attempts": 2, "delay": "30s"}
        self.by_period = self.chance.random() < 0.5
        self.handed_on: dict[tuple[str, int], Any] = {}  # the results of the attempts that succeeded
        document = dags.app(ruled(edges, rules or {}, branches, **(OF_PERIOD if self.by_period else {})))
        document["datasets"]["flights"] |= {"period": DAYS} if self.by_period else {}
        for name, workflow in document["workflows"].items():
            if name.startswith("w_") and self.chance.random() < 0.3:
                document["workflows"][name] = {**workflow, "retries": retried}
        self.world.deploy(document)
        self.points = wrap(self.world)
        self.points.armed = True

    def step(self) -> None:
        """A run ends, with its event or without; a Lambda may be killed in it; old hints come again."""
        if self.chance.random() < 0.3:
            self.points.die_after = [self.points.count + self.chance.randint(1, 12)]
        live = dags.living(self.world)
        if live:
            node = self.chance.choice(sorted(live))
            outcome = "FAILED" if self.chance.random() < 0.25 else "SUCCESS"
            self._end(live[node], outcome)
            if self.chance.random() < 0.7:
                lost(lambda: self.world.emr_says(live[node], outcome, "said so"))
        if self.chance.random() < 0.3:
            for _, ref in self.world.hints.sent[:3]:
                lost(lambda ref=ref: dispatch.dispatch(self.world.ports, ref))
        self.world.settle(lost)

    def _end(self, job_run_id: str, outcome: str) -> None:
        """The program of a run hands on which nodes it picks, or nothing, or something without fields, and ends."""
        run = self.world.targets.emr.runs[job_run_id]
        picked = {"pick": [node for node in "abcdefg" if self.chance.random() < 0.5]}
        result = self.chance.choice([picked, picked, picked, {}, None, "none"])
        if result is not None:
            dags.hands_on(self.world, run, result)
        self.handed_on[run.request["run_id"], run.request["attempt"]] = result
        run.state = outcome

    def rerun(self, run_id: str, node: str, request: str) -> None:
        """A user requests a re-run of a part, until it is acknowledged."""
        redelivered(lambda: runs.rerun(self.world.ports, DAILY, run_id, "from", node, "tester", request))
        self.world.settle(lost)

    def rest(self) -> None:
        """Time passes until no work is active: leases end, silent runs are polled, retries fall due."""
        for _ in range(40):
            if all(view["state"] != "RUNNING" for view in dags.views(self.world)) and self.points.die_after is None:
                return
            self.points.die_after = None
            for run_id in dags.living(self.world).values():
                self._end(run_id, "FAILED" if self.chance.random() < 0.2 else "SUCCESS")
            self.world.clock.pass_by("11m")
            dying.tick(self.world)
        raise AssertionError(f"expected an end, got {dags.states(self.world)}")

    def check(self, edges: list[str]) -> None:
        """No node ran twice in a round, nor before its upstreams had succeeded in that round or an earlier one."""
        stock = [run for run in invariants.Stock(self.world).runs if run.schedule.count("~") == 2]
        attempts = Counter((run.run_id, run.attempt) for run in stock)
        assert set(attempts.values()) <= {1}
        last = sorted(stock, key=lambda run: run.attempt)
        days = {view["run_id"]: (view["partition"] or {}).get("day") for view in dags.views(self.world)}
        for context in [run.request for run in self.world.targets.emr.runs.values()] if self.by_period else ():
            assert context["period"]["label"] == days[context["dag"]["run_id"]]
        by_round = {(run.schedule.rpartition("~")[2], str(rounds.of_run(run))): run for run in last}
        assert len(by_round) == len({run.run_id for run in stock}), "a node ran twice in a round"
        for (node, round_), run in by_round.items():
            own = rounds.parse(round_)
            for each in (edge for edge in edges if edge.endswith(f" -> {node}")):
                before = [
                    other
                    for (name, value), other in by_round.items()
                    if name == each[0] and rounds.parse(value).dag_run == own.dag_run
                    if rounds.parse(value).number <= own.number and other.state == "SUCCEEDED"
                ]
                assert any((other.state_at or 0) <= run.claimed_at for other in before), f"{run} before {each}"


@settings(max_examples=40, deadline=None)
@given(graphs(), st.integers(0, 10**6))
def test_w4_every_node_runs_once_a_round_after_its_upstreams(edges: list[str], seed: int) -> None:
    driver = DagDriver(edges, seed)
    world = driver.world
    for number in (1, 2):
        redelivered(lambda number=number: world.upload(day(number)))
        world.settle(lost)
    for _ in range(8):
        driver.step()
    driver.rest()
    driver.check(edges)

    for attempt in range(30):
        failed = [
            (view["run_id"], node)
            for view in dags.views(world)
            for node, answer in view["nodes"].items()
            if answer["state"] in ("FAILED", "CANCELLED", "ABORTED")
        ]
        if not failed:
            break
        driver.rerun(*failed[0], f"again{attempt}")
        driver.step()
        driver.rest()
        driver.check(edges)
    assert {view["state"] for view in dags.views(world)} == {"SUCCEEDED"}
