"""W17 and W18 in random worlds: graphs of any shape with any join rules and branches, results that pick some nodes or
nothing, nodes that fail and are retried, killed Lambdas, repeated hints, another graph while runs are active, re-runs.

A plain recursive oracle says, from the ends and results of the nodes that ran, which nodes must have run, and the state
of the run.
"""

from __future__ import annotations

import random
from collections.abc import Callable
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
    """What must have become of a DAG run whose nodes have ended. ``ends`` are the states of those that ran, and
    ``results`` what they handed on."""

    def __init__(
        self, edges: list[str], rules: Rules, branches: set[str], ends: dict[str, str], results: dict[str, Any]
    ) -> None:
        self.edges, self.rules, self.ends = [edge.split(" -> ") for edge in edges], rules, ends
        self.branches, self.results = [edge.split(" -> ") for edge in branches], results
        self.nodes = sorted({node for edge in self.edges for node in edge})

    def state(self, node: str) -> str:
        before = [self.along(up, down) for up, down in self.edges if down == node]
        verdict = self._verdict(self.rules.get(node, "all_succeeded"), before)
        return self.ends.get(node, "must run") if verdict == "runs" else verdict

    def along(self, up: str, down: str) -> str:
        """What the node after an edge sees of the one before it."""
        state = self.state(up)
        if state != "SUCCEEDED" or [up, down] not in self.branches:
            return state
        result = self.results[up]
        if not isinstance(result, dict):
            return "BLOCKED"
        return state if down in result.get("pick", []) else "not picked"

    def _verdict(self, rule: str, before: list[str]) -> str:
        failed = any(state in BAD for state in before)
        succeeded, skipped, unpicked = "SUCCEEDED" in before, "SKIPPED" in before, "not picked" in before
        if rule == "always" or not before:
            return "runs"
        if rule == "all_done":
            return "SKIPPED" if unpicked else "runs"
        if rule == "one_failed":
            return "runs" if failed else "SKIPPED"
        if rule == "one_succeeded" and succeeded:
            return "runs"
        if failed:
            return "BLOCKED"
        if rule == "one_succeeded" or unpicked:
            return "SKIPPED"
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


def drawn_branches(edges: list[str], rules: Rules, chance: random.Random) -> set[str]:
    """Some of the edges that may have a pattern."""
    may = [edge for edge in edges if rules.get(edge[-1]) not in ("one_failed", "always")]
    return {edge for edge in may if chance.random() < 0.4}


Graph = tuple[list[str], Rules, set[str]]


def check(driver: DagDriver, graph_of: dict[str, Graph]) -> None:
    for view in dags.views(driver.world):
        nodes: dict[str, Any] = view["nodes"]
        ends = {node: each["state"] for node, each in nodes.items() if each["run_id"]}
        results = {node: _handed_on(driver, nodes[node]) for node, state in ends.items() if state == "SUCCEEDED"}
        assert {node: nodes[node].get("result") for node in results} == results
        edges, rules, branches = graph_of[view["graph"]]
        oracle = Oracle(edges, rules, branches, ends, results)
        expected = {node: oracle.state(node) for node in nodes}
        assert {node: each["state"] for node, each in nodes.items()} == expected, (rules, branches, results)
        assert view["state"] == oracle.run(), (rules, expected)
    started = [run.request["run_id"] for run in driver.world.targets.emr.runs.values()]
    attempts = {(run.request["run_id"], run.request["attempt"]) for run in driver.world.targets.emr.runs.values()}
    assert len(attempts) == len(started), "a node was started twice"


def _handed_on(driver: DagDriver, node: dict[str, Any]) -> Any:
    """The result of the last attempt of a node's run."""
    last = max(attempt for run_id, attempt in driver.handed_on if run_id == node["run_id"])
    return driver.handed_on[node["run_id"], last]


@settings(max_examples=40, deadline=None)
@given(graphs(), st.integers(0, 10**6))
def test_w18_exactly_the_nodes_run_that_rules_and_results_say(edges: list[str], seed: int) -> None:
    _play(edges, seed, drawn_branches)


@settings(max_examples=40, deadline=None)
@given(graphs(), st.integers(0, 10**6))
def test_w17_exactly_the_nodes_run_that_the_rules_say(edges: list[str], seed: int) -> None:
    _play(edges, seed, lambda *_: set())


def _play(edges: list[str], seed: int, branching: Callable[..., set[str]]) -> None:
    chance = random.Random(seed)
    rules, others = drawn(edges, chance), drawn(edges, chance)
    first, second = branching(edges, rules, chance), branching(edges, others, chance)
    driver = DagDriver(edges, seed, rules, first)
    world = driver.world
    graph_of = {_graph(driver): (edges, rules, first)}
    redelivered(lambda: world.upload(day(1)))
    world.settle(lost)
    for number in range(8):
        if number == 3:  # the first run keeps its rules
            redelivered(partial(dags.put, world, ruled(edges, others, second)))
            graph_of[_graph(driver)] = edges, others, second
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
