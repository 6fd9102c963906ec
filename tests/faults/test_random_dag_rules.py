"""W17 in random worlds: graphs of any shape with any join rules, nodes that fail and are retried, killed Lambdas,
repeated hints, another graph while runs are active, re-runs.

A plain recursive oracle says, from the ends of the nodes that ran, which nodes must have run, and the state of the run.
"""

from __future__ import annotations

import random
from functools import partial
from typing import Any, get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from chalicelib.core.definitions.dag import JoinRule
from chalicelib.core.errors import SluiceError
from chalicelib.flow.dags import actions, runs
from tests.core.dags.test_dags import graphs
from tests.faults.test_random_dags import DAILY, DagDriver, ruled
from tests.support import dags
from tests.support.crash import lost, redelivered
from tests.support.world import day

Rules = dict[str, str]
BAD = ("FAILED", "CANCELLED", "ABORTED", "BLOCKED")


class Oracle:
    """What must have become of a DAG run whose nodes have ended. ``ends`` are the states of those that ran."""

    def __init__(self, edges: list[str], rules: Rules, ends: dict[str, str]) -> None:
        self.edges, self.rules, self.ends = [edge.split(" -> ") for edge in edges], rules, ends
        self.nodes = sorted({node for edge in self.edges for node in edge})

    def state(self, node: str) -> str:
        before = [self.state(up) for up, down in self.edges if down == node]
        verdict = self._verdict(self.rules.get(node, "all_succeeded"), before)
        return self.ends.get(node, "must run") if verdict == "runs" else verdict

    def _verdict(self, rule: str, before: list[str]) -> str:
        failed = any(state in BAD for state in before)
        succeeded, skipped = "SUCCEEDED" in before, "SKIPPED" in before
        if rule in ("always", "all_done") or not before:
            return "runs"
        if rule == "one_failed":
            return "runs" if failed else "SKIPPED"
        if rule == "one_succeeded" and succeeded:
            return "runs"
        if failed:
            return "BLOCKED"
        return "SKIPPED" if skipped and rule != "none_failed" else "runs"

    def is_handled(self, node: str) -> bool:
        for down in (down for up, down in self.edges if up == node):
            if self.rules.get(down) in ("one_failed", "one_succeeded") and self.state(down) == "SUCCEEDED":
                return True
            if self.state(down) == "BLOCKED" and self.is_handled(down):
                return True
        return False

    def run(self) -> str:
        failed = [node for node in self.nodes if self.state(node) in BAD and not self.is_handled(node)]
        return "FAILED" if failed else "SUCCEEDED"


def drawn(edges: list[str], chance: random.Random) -> Rules:
    """A rule for most nodes to which an edge leads."""
    after = sorted({edge.split(" -> ")[1] for edge in edges})
    rules = [rule for rule in get_args(JoinRule) if rule != "all_succeeded"]
    return {node: chance.choice(rules) for node in after if chance.random() < 0.7}


def check(driver: DagDriver, graph_of: dict[str, tuple[list[str], Rules]]) -> None:
    for view in dags.views(driver.world):
        nodes: dict[str, Any] = view["nodes"]
        edges, rules = graph_of[view["graph"]]
        oracle = Oracle(edges, rules, {node: each["state"] for node, each in nodes.items() if each["run_id"]})
        expected = {node: oracle.state(node) for node in nodes}
        assert {node: each["state"] for node, each in nodes.items()} == expected, rules
        assert view["state"] == oracle.run(), (rules, expected)
    started = [run.request["run_id"] for run in driver.world.targets.emr.runs.values()]
    attempts = {(run.request["run_id"], run.request["attempt"]) for run in driver.world.targets.emr.runs.values()}
    assert len(attempts) == len(started), "a node was started twice"


@settings(max_examples=40, deadline=None)
@given(graphs(), st.integers(0, 10**6))
def test_w17_exactly_the_nodes_run_that_the_rules_say(edges: list[str], seed: int) -> None:
    chance = random.Random(seed)
    rules, others = drawn(edges, chance), drawn(edges, chance)
    driver = DagDriver(edges, seed, rules)
    world = driver.world
    graph_of = {_graph(driver): (edges, rules)}
    redelivered(lambda: world.upload(day(1)))
    world.settle(lost)
    for number in range(8):
        if number == 3:  # the first run keeps its rules
            redelivered(partial(dags.put, world, ruled(edges, others)))
            graph_of[_graph(driver)] = edges, others
            redelivered(lambda: world.upload(day(2)))
        driver.step()
    driver.rest()
    check(driver, graph_of)

    for number in range(3):
        view = chance.choice(dags.views(world))
        what, node = ("all", None) if chance.random() < 0.3 else ("from", chance.choice(sorted(view["nodes"])))
        again = partial(runs.rerun, world.ports, DAILY, view["run_id"], what, node, "tester", f"again{number}")
        try:
            redelivered(again)
        except SluiceError as error:
            assert error.code == "invalid", error
            continue
        world.settle(lost)
        driver.step()
        driver.rest()
        check(driver, graph_of)


def _graph(driver: DagDriver) -> str:
    [graph] = {
        name.rpartition("~")[0].rpartition("~")[2]
        for name in actions.dag_view(driver.world.ports, DAILY)["schedules"]
        if name.count("~") == 2
    }
    return graph
