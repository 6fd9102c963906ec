"""W17: the join rules, each by the table of `docs/dags.md`, and the state of a DAG run."""

from __future__ import annotations

import re
from itertools import permutations, product
from pathlib import Path
from typing import Any, get_args

import pytest

from chalicelib.core.dags import join
from chalicelib.core.dags import status as dag_status
from chalicelib.core.dags.join import Outcome
from chalicelib.core.dags.rounds import Round
from chalicelib.core.dags.status import NodeRows, NodeStatus
from chalicelib.core.definitions.dag import JoinRule
from chalicelib.core.why import NONE
from tests.core.dags.test_dags import made, refused
from tests.support.dags import edge

RULES = get_args(JoinRule)
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
PAGE = (Path(__file__).parents[3] / "docs" / "dags.md").read_text()
ROW = re.compile(r"^\| `(\w+)`[^|]*\|" + r" ([^|]+) \|" * 4 + "$", flags=re.M)
# The columns of the page: the node before alone has ended like this, and another one has succeeded.
COLUMNS: tuple[Outcome, ...] = ("met", "failed", "skipped", "failed")
SAID = {"START": "runs", "SKIPPED": "SKIPPED", "BLOCKED": "BLOCKED"}


def test_w17_the_page_has_each_rule_as_it_is() -> None:
    table = {name: cells for name, *cells in ROW.findall(PAGE)}
    assert tuple(table) == RULES
    for rule in RULES:
        assert table[rule] == [SAID[join.judge(rule, [outcome])] for outcome in COLUMNS], rule


@pytest.mark.parametrize("rule", RULES)
def test_w17_the_order_of_ends_decides_nothing(rule: JoinRule) -> None:
    """What is decided while nodes are open stays so, for each of their ends and in every order."""
    for outcomes in product(OUTCOMES, repeat=3):
        decided = {join.judge(rule, order) for order in permutations(outcomes)}
        assert len(decided) == 1
        if decided == {"OPEN"}:
            assert "open" in outcomes
            continue
        for closed in product(("met", "unmet", "skipped", "failed"), repeat=outcomes.count("open")):
            rest = iter(closed)
            ends = [next(rest) if outcome == "open" else outcome for outcome in outcomes]
            assert {join.judge(rule, ends)} == decided, (outcomes, ends)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rule", "alone", "beside_a_success", "beside_a_failure"),
    [
        ("all_succeeded", "SKIPPED", "SKIPPED", "BLOCKED"),
        ("none_failed", "SKIPPED", "SKIPPED", "BLOCKED"),
        ("all_done", "SKIPPED", "SKIPPED", "SKIPPED"),
        ("one_succeeded", "SKIPPED", "START", "BLOCKED"),
    ],
)
def test_w18_a_result_that_does_not_match_skips_its_node(
    rule: JoinRule, alone: str, beside_a_success: str, beside_a_failure: str
) -> None:
    assert join.judge(rule, ["unmet"]) == alone
    assert join.judge(rule, ["unmet", "skipped"]) == "SKIPPED"
    assert join.judge(rule, ["met", "unmet"]) == beside_a_success
    assert join.judge(rule, ["unmet", "failed"]) == beside_a_failure


@pytest.mark.parametrize(
    ("states", "state"),
    [
        ({"load": "SUCCEEDED", "publish": "SUCCEEDED", "tidy": "SUCCEEDED", "repair": "SKIPPED"}, "SUCCEEDED"),
        ({"load": "FAILED", "publish": "BLOCKED", "tidy": "SUCCEEDED", "repair": "SUCCEEDED"}, "SUCCEEDED"),
        ({"load": "FAILED", "publish": "BLOCKED", "tidy": "SUCCEEDED", "repair": "FAILED"}, "FAILED"),
        ({"load": "SUCCEEDED", "publish": "CANCELLED", "tidy": "SUCCEEDED", "repair": "SUCCEEDED"}, "SUCCEEDED"),
        ({"load": "SUCCEEDED", "publish": "SUCCEEDED", "tidy": "ABORTED", "repair": "SKIPPED"}, "FAILED"),
        ({"load": "SUCCEEDED", "publish": "SUCCEEDED", "tidy": "RUNNING", "repair": "SKIPPED"}, "RUNNING"),
    ],
)
def test_w17_a_run_fails_by_what_no_rule_took_care_of(states: dict[str, Any], state: str) -> None:
    """`tidy` runs beside a failure and takes care of none; `repair` takes care, also of what blocked `publish`."""
    nodes = {"tidy": {"workflow": "w", "when": "all_done"}, "repair": {"workflow": "w", "when": "one_failed"}}
    dag = made("load -> publish", "publish -> tidy", "publish -> repair", nodes=nodes)
    found = {node: NodeStatus(each, NONE, Round("r"), NodeRows()) for node, each in states.items()}
    assert dag_status.state_of(dag, found) == state


def test_w17_a_failure_with_another_way_out_fails_the_run() -> None:
    """A blocked node that no rule takes care of fails the run, also if another one takes care of the failure."""
    dag = made("load -> publish", "load -> repair", nodes={"repair": {"workflow": "w", "when": "one_failed"}})
    ends: dict[str, Any] = {"load": "FAILED", "publish": "BLOCKED", "repair": "SUCCEEDED"}
    found = {node: NodeStatus(each, NONE, Round("r"), NodeRows()) for node, each in ends.items()}
    assert dag_status.state_of(dag, found) == "FAILED"


def test_w17_rules_that_mean_nothing_are_refused() -> None:
    first = refused("a -> b", nodes={"a": {"workflow": "w", "when": "all_done"}})
    assert (first.field, first.hint) == (
        "nodes.a.when",
        "leave when out: a node without edges runs when the run begins",
    )
    rule = {"b": {"workflow": "w", "when": "all_done"}}
    both = refused(edge("a -> b", on=["FAILED"]), nodes=rule)
    assert both.field == "edges.0.on"
    assert "the rule all_done of b says how the nodes before it must end" in both.message
    assert refused(edge("a -> b", within="1h"), nodes=rule).field == "edges.0.within"
    assert refused("a -> b", nodes={"b": {"workflow": "w", "when": "all_success"}}).field == "nodes.b.when"


def test_w17_a_graph_without_rules_is_stored_as_before() -> None:
    assert "when" not in made("a -> b").model_dump(mode="json")["nodes"]["b"]
    ruled = made("a -> b", nodes={"b": {"workflow": "w_b", "when": "all_done"}})
    assert ruled.model_dump(mode="json")["nodes"]["b"]["when"] == "all_done"
