"""W18: branches. The result of a node chooses which nodes after it run; what is not chosen is skipped."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from chalicelib.core.definitions.dag import NewDag
from chalicelib.core.errors import SluiceError, from_validation
from chalicelib.core.targets.answers import Never
from chalicelib.flow.runs import dead_letters
from chalicelib.flow.views.explain_dag import why_dag
from tests.acceptance.words import day, doze
from tests.support import dags
from tests.support.answers import read
from tests.support.dags import dag, edge, ends, living, ran, rerun, state, states, views
from tests.support.world import EMR, World, full

FULL = edge("scan -> full", **{"if": {"mode": ["full"]}})
DELTA = edge("scan -> delta", **{"if": {"mode": [{"anything-but": "full"}]}})


@pytest.fixture
def world() -> World:
    return World(wake_shards=1, history_shards=1)


def begin(world: World, number: int = 1) -> None:
    world.upload(day(number))
    world.settle()


def node(name: str, rule: str) -> dict[str, Any]:
    return {name: {"workflow": f"w_{name}", "when": rule}}


def why(world: World, name: str) -> str:
    return str(views(world)[0]["nodes"][name]["why"])


def branched(*more: Any, **fields: Any) -> dict[str, Any]:
    return dag(FULL, DELTA, *more, **fields)


def test_w18_a_result_chooses_the_branch(world: World) -> None:
    world.deploy(dags.app(branched()))
    begin(world)
    assert state(world) == {"scan": "STARTING", "full": "PENDING", "delta": "PENDING"}
    ends(world, "scan", result={"mode": "full"})
    assert state(world) == {"scan": "SUCCEEDED", "full": "STARTING", "delta": "SKIPPED"}
    assert why(world, "delta") == 'needs a result of scan where mode is not \'full\', got {"mode": "full"}'
    ends(world, "full")
    assert views(world)[0]["state"] == "SUCCEEDED"
    begin(world, 2)
    ends(world, "scan", result={"mode": "delta"})
    assert states(world)[1] == {"scan": "SUCCEEDED", "full": "SKIPPED", "delta": "STARTING"}
    assert ran(world).count("full") == ran(world).count("delta") == 1


@pytest.mark.parametrize(
    ("pattern", "result", "chosen"),
    [
        ({"rows": [{"numeric": [">", 5]}]}, {"rows": 7}, True),
        ({"rows": [{"numeric": [">", 5]}]}, {"rows": 5}, False),
        ({"region": [{"prefix": "eu-"}]}, {"region": "eu-west-1"}, True),
        ({"error": [{"exists": False}]}, {"rows": 1}, True),
        ({"at": {"day": ["mon", "tue"]}}, {"at": {"day": "wed"}}, False),
        ({"$or": [{"a": [1]}, {"b": [2]}]}, {"b": 2}, True),
        ({"parts": ["x"]}, {"parts": ["w", "x"]}, True),
    ],
)
def test_w18_a_pattern_is_that_of_custom_events(world: World, pattern: Any, result: Any, chosen: bool) -> None:
    world.deploy(dags.app(dag(edge("a -> b", **{"if": pattern}))))
    begin(world)
    ends(world, "a", result=result)
    assert state(world)["b"] == ("STARTING" if chosen else "SKIPPED")


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("none_failed", "STARTING"),
        ("all_done", "STARTING"),
        ("one_succeeded", "STARTING"),
        ("all_succeeded", "SKIPPED"),
    ],
)
def test_w18_a_join_after_a_branch(world: World, rule: str, expected: str) -> None:
    world.deploy(dags.app(branched("full -> publish", "delta -> publish", nodes=node("publish", rule))))
    begin(world)
    ends(world, "scan", result={"mode": "full"})
    ends(world, "full")
    assert (state(world)["delta"], state(world)["publish"]) == ("SKIPPED", expected)
    if expected == "STARTING":
        ends(world, "publish")
    assert views(world)[0]["state"] == "SUCCEEDED"


def test_w18_what_follows_a_skipped_branch_is_skipped_with_it(world: World) -> None:
    world.deploy(dags.app(branched("full -> check", "check -> tidy", nodes=node("tidy", "none_failed"))))
    begin(world)
    ends(world, "scan", result={"mode": "delta"})
    assert state(world) | {"delta": ""} == {
        "scan": "SUCCEEDED",
        "full": "SKIPPED",
        "check": "SKIPPED",
        "tidy": "STARTING",
        "delta": "",
    }
    assert why(world, "check") == "needs full COMPLETED, which is SKIPPED"


@pytest.mark.parametrize(
    ("rule", "unmet", "failed"),
    [
        ("all_succeeded", "SKIPPED", "BLOCKED"),
        ("none_failed", "SKIPPED", "BLOCKED"),
        ("all_done", "SKIPPED", "STARTING"),
        ("one_succeeded", "STARTING", "STARTING"),
    ],
)
@pytest.mark.parametrize("first", ["a", "b"])
def test_w18_an_unmet_result_skips_whatever_the_rule(
    world: World, rule: str, unmet: str, failed: str, first: str
) -> None:
    """Also if the other node before it has succeeded, unless one success is enough; in any order of the ends."""
    world.deploy(dags.app(dag(edge("a -> z", **{"if": {"go": [True]}}), "b -> z", nodes=node("z", rule))))
    begin(world)
    for each in sorted("ab", reverse=first == "b"):
        ends(world, each, result={"go": False} if each == "a" else None)
    assert state(world)["z"] == unmet
    begin(world, 2)
    for each in sorted("ab", reverse=first == "b"):
        ends(world, each, "FAILED" if each == "a" else "SUCCESS")
    assert states(world)[1]["z"] == failed, "of a failure the rule decides alone"


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (None, "but scan gave none"),
        ([1, 2], "but it has no fields: [1, 2]"),
        ({"text": "x" * 11_000}, "but it was refused: expected a result of at most 10,000 bytes of JSON, got 11,011"),
    ],
)
def test_w18_a_branch_on_a_result_that_never_came_is_blocked(world: World, result: Any, reason: str) -> None:
    world.deploy(dags.app(branched("scan -> log")))
    begin(world)
    ends(world, "scan", result=result)
    assert state(world) == {"scan": "SUCCEEDED", "full": "BLOCKED", "delta": "BLOCKED", "log": "STARTING"}
    assert why(world, "full").startswith(f"needs a result of scan where mode is 'full', {reason}")
    ends(world, "log")
    assert views(world)[0]["state"] == "FAILED"


def test_w18_why_names_what_a_result_left_out(world: World) -> None:
    world.deploy(dags.app(branched("scan -> log")))
    begin(world)
    ends(world, "scan", result={"mode": "full"})
    [run] = views(world)
    assert run["nodes"]["delta"]["code"] == "not_chosen"
    said = read(why_dag(world.ports, full("daily")))["why"]
    assert said.startswith(f"run {run['run_id']}, node full is starting: ")
    assert f"; node delta is skipped: {why(world, 'delta')}" in said
    begin(world, 2)
    ends(world, "scan")
    found = read(why_dag(world.ports, full("daily")))["why"]
    assert "node full is blocked: needs a result of scan where mode is 'full', but scan gave none" in found


def test_w18_a_pattern_that_nothing_meets_skips_all(world: World) -> None:
    world.deploy(dags.app(branched()))
    begin(world)
    ends(world, "scan", result={"kind": "none"})
    assert state(world) == {"scan": "SUCCEEDED", "full": "SKIPPED", "delta": "SKIPPED"}
    assert why(world, "full") == (
        "needs a result of scan where mode is 'full', got no mode: there is an object with kind; "
        "hand on mode, or correct the pattern"
    )
    assert views(world)[0]["state"] == "SUCCEEDED"


def test_w18_a_failed_node_chooses_nothing(world: World) -> None:
    world.deploy(dags.app(branched()))
    begin(world)
    ends(world, "scan", "FAILED", result={"mode": "full"})
    assert state(world) == {"scan": "FAILED", "full": "BLOCKED", "delta": "BLOCKED"}
    assert why(world, "full") == "needs scan COMPLETED, which is FAILED"


def test_w18_a_retried_attempt_decides_once(world: World) -> None:
    world.deploy(dags.app(branched(), w_scan={"target": EMR, "retries": {"attempts": 2, "delay": "30s"}}))
    begin(world)
    ends(world, "scan", "FAILED", result={"mode": "full"})
    assert ran(world) == ["scan"]
    world.clock.pass_by("31s")
    world.tick()
    world.settle()
    ends(world, "scan", result={"mode": "delta"})
    assert ran(world) == ["scan", "scan", "delta"]


def test_w18_within_and_if_on_one_edge(world: World) -> None:
    """The node is chosen, and aborted because its job waits for longer than the success of a may be old."""
    window = {"type": "time_window", "start": "22:00", "end": "23:00", "on_unmet": "wait"}
    held = {"b": {"workflow": "w_b", "constraints": [window]}}
    world.deploy(dags.app(dag(edge("a -> b", within="1h", **{"if": {"go": [True]}}), nodes=held)))
    begin(world)
    ends(world, "a", result={"go": True})
    assert state(world)["b"] == "WAITING"
    doze(world, "10h1m")
    assert state(world)["b"] == "ABORTED"


def test_w18_a_rerun_from_the_branch_decides_anew(world: World) -> None:
    world.deploy(dags.app(branched("full -> publish", "delta -> publish", nodes=node("publish", "none_failed"))))
    begin(world)
    ends(world, "scan", result={"mode": "full"})
    ends(world, "full")
    ends(world, "publish")
    rerun(world, "from", "scan")
    world.settle()
    assert state(world) == {"scan": "STARTING", "full": "PENDING", "delta": "PENDING", "publish": "PENDING"}
    ends(world, "scan", result={"mode": "delta"})
    assert (state(world)["full"], state(world)["delta"]) == ("SKIPPED", "STARTING")
    ends(world, "delta")
    ends(world, "publish")
    assert ran(world) == ["scan", "full", "publish", "scan", "delta", "publish"]


def test_w18_a_rerun_from_a_chosen_node_uses_the_same_result(world: World) -> None:
    world.deploy(dags.app(branched()))
    begin(world)
    ends(world, "scan", result={"mode": "full"})
    ends(world, "full", "FAILED")
    rerun(world, "from", "full")
    world.settle()
    assert list(living(world)) == ["full"]
    ends(world, "full")
    assert state(world) == {"scan": "SUCCEEDED", "full": "SUCCEEDED", "delta": "SKIPPED"}


@pytest.mark.parametrize("what", ["from", "only"])
def test_w18_no_rerun_begins_at_a_node_that_was_not_chosen(world: World, what: str) -> None:
    world.deploy(dags.app(branched()))
    begin(world)
    ends(world, "scan", result={"mode": "full"})
    ends(world, "full")
    with pytest.raises(SluiceError) as refused:
        rerun(world, what, "delta")
    assert refused.value.message == (
        "expected a node whose upstreams have ended as it needs, "
        'got delta: it needs a result of scan where mode is not \'full\', got {"mode": "full"}'
    )
    assert refused.value.hint == "begin from scan, whose result decides"


@pytest.mark.parametrize("again", [{"mode": "delta"}, {"mode": "full"}, None])
def test_w18_a_rerun_of_the_branch_alone_decides_nothing(world: World, again: Any) -> None:
    world.deploy(dags.app(branched("full -> publish", "delta -> publish", nodes=node("publish", "none_failed"))))
    begin(world)
    ends(world, "scan", result={"mode": "full"})
    ends(world, "full")
    ends(world, "publish")
    before = state(world)
    rerun(world, "only", "scan")
    world.settle()
    ends(world, "scan", result=again)
    assert state(world) == before
    assert views(world)[0]["state"] == "SUCCEEDED"
    assert ran(world) == ["scan", "full", "publish", "scan"]
    assert why(world, "delta")
    assert "skipped" not in views(world)[0]["reruns"][0]


def test_w18_a_run_of_a_changed_dag_keeps_its_branches(world: World) -> None:
    """A run keeps the patterns with which it began."""
    world.deploy(dags.app(branched()))
    begin(world)
    swapped = dag(edge("scan -> full", **{"if": {"mode": ["delta"]}}), DELTA)
    dags.put(world, swapped)
    ends(world, "scan", result={"mode": "full"})
    assert state(world) == {"scan": "SUCCEEDED", "full": "STARTING", "delta": "SKIPPED"}


def test_w18_the_answer_of_a_function_chooses(world: World) -> None:
    """A Lambda that is called with wait may come before other nodes, since Sluice learns its end."""
    function = "arn:aws:lambda:eu-west-1:123456789012:function:scan"
    world.deploy(dags.app(branched(), w_scan={"target": {"type": "lambda", "function": function, "wait": True}}))
    world.targets.queue.returns = {"mode": "delta"}
    begin(world)
    assert state(world) == {"scan": "SUCCEEDED", "full": "SKIPPED", "delta": "STARTING"}
    assert views(world)[0]["nodes"]["scan"]["result"] == {"mode": "delta"}


def test_w18_a_function_that_fails_blocks_and_a_redrive_goes_on(world: World) -> None:
    function = "arn:aws:lambda:eu-west-1:123456789012:function:scan"
    scan = {"target": {"type": "lambda", "function": function, "wait": True}}
    world.deploy(dags.app(branched("scan -> tidy", nodes=node("tidy", "all_done")), w_scan=scan))
    world.targets.queue.down = Never("the function is gone")
    begin(world)
    assert state(world) == {"scan": "FAILED", "full": "BLOCKED", "delta": "BLOCKED", "tidy": "STARTING"}
    ends(world, "tidy")
    assert views(world)[0]["state"] == "FAILED"
    world.targets.queue.down = None
    world.targets.queue.returns = {"mode": "full"}
    run_id = views(world)[0]["nodes"]["scan"]["run_id"]
    dead_letters.redrive(world.ports, "demo", run_id)
    world.settle()
    assert state(world) == {"scan": "SUCCEEDED", "full": "STARTING", "delta": "SKIPPED", "tidy": "SUCCEEDED"}
    assert ran(world) == ["tidy", "full"]


QUEUE = {"type": "sqs", "queue_url": "https://sqs.eu-west-1.amazonaws.com/123456789012/out"}
LAMBDA = {"type": "lambda", "function": "arn:aws:lambda:eu-west-1:123456789012:function:scan"}


@pytest.mark.parametrize("target", [QUEUE, LAMBDA])
def test_w18_a_target_that_gives_no_end_and_no_result_is_refused(world: World, target: Any) -> None:
    with pytest.raises(SluiceError) as refused:
        world.deploy(dags.app(branched(), w_scan={"target": target}))
    assert refused.value.field is not None and refused.value.field.endswith("edges.0.from")
    assert "a node whose target reports how its runs end" in refused.value.message


@pytest.mark.parametrize(
    ("given", "field", "message"),
    [
        ({"if": {"mode": "full"}}, "edges.0.if.mode", 'expected a list of alternatives such as ["a", {"prefix": "b"}]'),
        ({"if": {"rows": [{"more-than": 5}]}}, "edges.0.if.rows.0.more-than", "expected an operator, one of prefix"),
        (
            {"if": {"rows": [{"numeric": [">", 5, "<", 3]}]}},
            "edges.0.if.rows.0.numeric",
            "bounds with a number between",
        ),
        ({"if": {"a": [1]}, "on": ["FAILED"]}, "edges.0.if", "expected if only on an edge that waits for COMPLETED"),
        ({"if": "mode is full"}, "edges.0.if", "expected an object"),
        ({"iff": {"a": [1]}}, "edges.0.iff", "unknown field 'iff'"),
    ],
)
def test_w18_a_wrong_branch_is_refused(world: World, given: Any, field: str, message: str) -> None:
    with pytest.raises((SluiceError, ValidationError)) as caught:
        NewDag.model_validate(dag(edge("a -> b", **given)), context={"sent": True})
    error = caught.value if isinstance(caught.value, SluiceError) else from_validation(caught.value, NewDag)
    assert error.field == field
    assert message in error.message
