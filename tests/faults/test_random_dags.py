"""W4 in random worlds: graphs of any shape, nodes that fail and are retried, killed Lambdas, repeated hints, re-runs
from any failed node. Every node runs once in a round, after its upstreams.
"""

from __future__ import annotations

import random
from collections import Counter

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


class DagWorld(World):
    def __init__(self, edges: list[str], seed: int) -> None:
        super().__init__(wake_shards=1, history_shards=1)
        self.chance = random.Random(seed)
        retried = {"attempts": 2, "delay": "30s"}
        document = dags.app(dags.dag(*edges))
        for name, workflow in document["workflows"].items():
            if name.startswith("w_") and self.chance.random() < 0.3:
                document["workflows"][name] = {**workflow, "retries": retried}
        self.deploy(document)
        self.points = wrap(self)
        self.points.armed = True
        self.ended: list[str] = []

    def step(self) -> None:
        """A run ends, with its event or without; a Lambda may be killed in it; old hints come again."""
        if self.chance.random() < 0.3:
            self.points.die_after = [self.points.count + self.chance.randint(1, 12)]
        live = dags.living(self)
        if live:
            node = self.chance.choice(sorted(live))
            outcome = "FAILED" if self.chance.random() < 0.25 else "SUCCESS"
            self.targets.emr.runs[live[node]].state = outcome
            if self.chance.random() < 0.7:
                lost(lambda: self.emr_says(live[node], outcome, "said so"))
        if self.chance.random() < 0.3:
            for _, ref in self.hints.sent[:3]:
                lost(lambda ref=ref: dispatch.dispatch(self.ports, ref))
        self.settle(lost)

    def rerun(self, run_id: str, node: str, request: str) -> None:
        """A user requests a re-run of a part, until it is acknowledged."""
        redelivered(lambda: runs.rerun(self.ports, DAILY, run_id, "from", node, "tester", request))
        self.settle(lost)

    def rest(self) -> None:
        """Time passes until no work is active: leases end, silent runs are polled, retries fall due."""
        for _ in range(40):
            if all(view["state"] != "RUNNING" for view in dags.views(self)) and self.points.die_after is None:
                return
            self.points.die_after = None
            for run_id in dags.living(self).values():
                self.targets.emr.runs[run_id].state = "FAILED" if self.chance.random() < 0.2 else "SUCCESS"
            self.clock.pass_by("11m")
            dying.tick(self)
        raise AssertionError(f"expected an end, got {dags.states(self)}")

    def check(self, edges: list[str]) -> None:
        """No node ran twice in a round, nor before its upstreams had succeeded in that round or an earlier one."""
        stock = [run for run in invariants.Stock(self).runs if run.schedule.count("~") == 2]
        attempts = Counter((run.run_id, run.attempt) for run in stock)
        assert set(attempts.values()) <= {1}
        by_round = {(run.schedule.rpartition("~")[2], str(rounds.of_run(run))): run for run in stock}
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
    world = DagWorld(edges, seed)
    for number in (1, 2):
        redelivered(lambda number=number: world.upload(day(number)))
        world.settle(lost)
    for _ in range(8):
        world.step()
    world.rest()
    world.check(edges)

    for attempt in range(30):
        failed = [
            (view["run_id"], node)
            for view in dags.views(world)
            for node, answer in view["nodes"].items()
            if answer["state"] in ("FAILED", "CANCELLED", "ABORTED")
        ]
        if not failed:
            break
        world.rerun(*failed[0], f"again{attempt}")
        world.step()
        world.rest()
        world.check(edges)
    assert {view["state"] for view in dags.views(world)} == {"SUCCEEDED"}
