"""DAGs under test: nodes by their plain names, the state of a run, re-runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from sluice.errors import WrongUsage
from sluice.testing import ApiRefused, App, seen
from tests.testing.test_apps import AT, EMR

NIGHTLY: dict[str, Any] = {
    "enabled": True,
    "trigger": {"type": "partition", "dataset": "flights"},
    "by": ["day"],
    "nodes": {name: {"workflow": "step"} for name in ("load", "check", "report")},
    "edges": [{"from": "load", "to": "check"}, {"from": "check", "to": "report"}],
}
DOCUMENT: dict[str, Any] = {
    "namespace": "demo",
    "app": "flights",
    "datasets": {"flights": {"bucket": "lake", "prefix": "raw/flights/", "keys": ["day"]}},
    "workflows": {"step": {"target": EMR}},
    "dags": {"nightly": NIGHTLY},
}


@pytest.fixture
def app(sluice_app: type[App]) -> App:
    return sluice_app(DOCUMENT, at=AT)


def test_the_nodes_of_a_dag_run_by_their_plain_names(app: App) -> None:
    app.partition("flights", day=1)
    assert app.dag_run("nightly").states == {"load": "RUNNING", "check": "PENDING", "report": "PENDING"}
    app.run("nightly/load").succeed()
    assert app.run("nightly/check").schedule == "demo.flights.nightly/check"
    app.run("nightly/check").fail("3 rows without a key")
    run = app.dag_run("nightly", day=1)
    assert (run.state, run.states) == ("FAILED", {"load": "SUCCEEDED", "check": "FAILED", "report": "BLOCKED"})
    assert run.node("check").why == "3 rows without a key"
    assert app.runs("nightly/report") == []


def test_a_dag_runs_again_from_a_node(app: App) -> None:
    app.partition("flights", day=1)
    run = app.dag_run("nightly")
    run.node("load").succeed()
    run.node("check").fail()
    run.rerun("check")
    run.node("check").succeed()
    run.node("report").succeed()
    assert run.state == "SUCCEEDED"
    assert [each.state for each in app.runs("nightly/check")] == ["FAILED", "SUCCEEDED"]
    run.rerun(only="load")
    assert (len(app.runs("nightly/load")), len(app.runs("nightly/report"))) == (2, 1)


def test_each_day_has_a_dag_run_of_its_own(app: App) -> None:
    app.partition("flights", day=1)
    app.partition("flights", day=2)
    first, second = (app.dag_run("nightly", day=day) for day in (1, 2))
    second.node("load").succeed()
    assert (first.states["load"], second.states["load"]) == ("RUNNING", "SUCCEEDED")
    assert {first, second} == set(app.dag_runs("nightly"))
    with pytest.raises(AssertionError, match="expected one run of DAG nightly, got 2"):
        app.dag_run("nightly")


def test_a_changed_dag_keeps_the_runs_of_its_nodes(app: App) -> None:
    app.partition("flights", day=1)
    app.run("nightly/load").succeed()
    shorter = NIGHTLY | {"nodes": {name: {"workflow": "step"} for name in ("load", "check")}, "edges": []}
    app.apply(DOCUMENT | {"dags": {"nightly": shorter}})
    app.partition("flights", day=2)
    assert [run.state for run in app.runs("nightly/load")] == ["SUCCEEDED", "RUNNING"]
    assert app.dag_run("nightly", day=2).states == {"load": "RUNNING", "check": "RUNNING"}


def test_a_dag_is_paused_and_run_now_by_its_name(app: App) -> None:
    app.pause("nightly")
    app.partition("flights", day=1)
    assert app.dag_runs("nightly") == []
    with pytest.raises(AssertionError, match=r"expected a run of DAG nightly, got none: the schedule has been paused"):
        app.dag_run("nightly")
    app.resume("nightly")
    assert app.dag_run("nightly").state == "RUNNING"
    app.run_now("nightly", {"day": 2}, limit=3)
    assert app.dag_run("nightly", day=2).node("load").run.context["upstream"]["properties"] == {"limit": 3}


def test_a_wrong_name_of_a_dag_or_node_lists_what_exists(app: App) -> None:
    app.partition("flights", day=1)
    for ask, hint in (
        (lambda: app.dag_run("nihgtly"), "did you mean 'demo.flights.nightly'? Known: demo.flights.nightly"),
        (lambda: app.run("nightly/laod"), "did you mean 'load'? Known: check, load, report"),
        (lambda: app.dag_run("nightly").node("laod"), "did you mean 'load'? Known: check, load, report"),
        (lambda: app.run("nihgtly/load"), "did you mean 'demo.flights.nightly/load'? Known: "),
    ):
        with pytest.raises(ApiRefused) as refused:
            ask()
        assert refused.value.code == "not_found"
        assert str(refused.value.hint).startswith(hint)


def test_a_node_that_has_not_run_says_why(app: App) -> None:
    app.partition("flights", day=1)
    with pytest.raises(AssertionError, match="expected a run of node report, got none: it is PENDING, waits for check"):
        app.dag_run("nightly").node("report").succeed()


BRANCHED: dict[str, Any] = NIGHTLY | {
    "edges": [{"from": "load", "to": "check", "if": {"mode": ["full"]}}, {"from": "load", "to": "report"}]
}


def test_w18_a_test_gives_a_run_a_result(sluice_app: type[App]) -> None:
    app = sluice_app(DOCUMENT | {"dags": {"nightly": BRANCHED}}, at=AT)
    app.partition("flights", day=1)
    app.run("nightly/load").succeed(result={"mode": "delta"})
    assert app.run("nightly/load").result == {"mode": "delta"}
    run = app.dag_run("nightly")
    assert run.states == {"load": "SUCCEEDED", "check": "SKIPPED", "report": "RUNNING"}
    assert run.node("check").why == 'needs a result of load where mode is \'full\', got {"mode": "delta"}'
    assert app.run("nightly/report").context["upstream"]["result"] == {"mode": "delta"}


def test_w18_a_test_sees_that_a_result_is_refused(sluice_app: type[App]) -> None:
    app = sluice_app(DOCUMENT | {"dags": {"nightly": BRANCHED}}, at=AT)
    app.partition("flights", day=1)
    load = app.run("nightly/load")
    load.succeed(result="x" * 11_000)
    assert (load.state, load.result) == ("SUCCEEDED", None)
    assert load.result_refused.startswith("expected a result of at most 10,000 bytes of JSON, got 11,002")
    assert app.dag_run("nightly").states["check"] == "BLOCKED"


def test_w18_a_test_sets_what_functions_return(sluice_app: type[App]) -> None:
    function = {"type": "lambda", "function": "arn:aws:lambda:eu-west-1:123456789012:function:scan", "wait": True}
    workflows = {"step": {"target": EMR}, "scan": {"target": function}}
    dag = BRANCHED | {"nodes": BRANCHED["nodes"] | {"load": {"workflow": "scan"}}}
    app = sluice_app(DOCUMENT | {"workflows": workflows, "dags": {"nightly": dag}}, at=AT)
    app.answer_functions("nightly/load", {"mode": "full"}, {"mode": "delta"})
    for day in (1, 2, 3):
        app.partition("flights", day=day)
    states = [app.dag_run("nightly", day=day).states["check"] for day in (1, 2, 3)]
    assert states == ["RUNNING", "SKIPPED", "SKIPPED"]
    with pytest.raises(
        WrongUsage,
        match="expected an answer and a schedule with a Lambda target that waits, or a call with result, got",
    ):
        app.answer_functions("nightly/check", {"mode": "full"})


def test_w22_a_call_plays_in_a_test(sluice_app: type[App]) -> None:
    call = {"type": "aws_api", "service": "ssm", "action": "get_parameter", "input": {"Name": "/mode"}, "result": True}
    dag = BRANCHED | {"nodes": BRANCHED["nodes"] | {"load": {"workflow": "ask"}}}
    app = sluice_app(
        DOCUMENT | {"workflows": {"step": {"target": EMR}, "ask": {"target": call}}, "dags": {"nightly": dag}}, at=AT
    )
    app.answer_functions("nightly/load", {"mode": "full"})
    app.partition("flights", day=1)
    assert app.dag_run("nightly", day=1).states["check"] == "RUNNING"
    wrong = {"ask": {"target": {**call, "input": {"Nam": "/mode"}}}}
    with pytest.raises(ApiRefused, match="unknown field 'Nam'"):
        sluice_app({"namespace": "demo", "app": "wrong", "workflows": wrong}, at=AT)


INTERNAL = re.compile(r"~[0-9a-f]{8}(?![0-9a-f])|[\w-]~(?![\w.])")
ID = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+~(?:[0-9a-f]{8}~[\w-]+)?\.[0-9a-z]+\.[0-9a-f]{20}")


def shown_by(value: Any, depth: int = 0) -> Iterator[str]:
    """Each text that a value of the kit shows: itself, and its public properties but what programs get."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from shown_by(key, depth)
            yield from shown_by(inner, depth)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from shown_by(inner, depth)
    elif type(value).__module__ == seen.__name__ and depth < 3:
        yield repr(value)
        for name, part in vars(type(value)).items():
            if isinstance(part, property) and name not in ("view", "context", "events") and not name.startswith("_"):
                try:
                    yield from shown_by(getattr(value, name), depth + 1)
                except AssertionError as error:
                    yield str(error)


def test_w20_the_kit_shows_no_internal_name(sluice_app: type[App]) -> None:
    sns = {"type": "sns", "topic_arn": "arn:aws:sns:eu-west-1:123456789012:team"}
    nodes = {
        "scan": {"workflow": "step"},
        "load": {"workflow": "step", "each": {"of": "scan"}},
        "held": {
            "workflow": "step",
            "constraints": [{"type": "delay", "after": "5h", "on_unmet": "wait"}],
        },
    }
    edges = [{"from": "scan", "to": ["load", "held"]}]
    notify = [{"on": ["failed"], "to": sns}]
    dag = {**NIGHTLY, "nodes": nodes, "edges": edges, "notify": notify, "concurrency": {"max": 1, "on_unmet": "wait"}}
    app = sluice_app({**DOCUMENT, "dags": {"nightly": dag}}, at=AT)
    app.partition("flights", day=1)
    app.partition("flights", day=2)
    run = app.dag_run("nightly", day=1)
    run.node("scan").run.succeed(result=["x.csv", "y.csv"])
    run.node("load").elements[0].fail("no space left")
    run.node("load").elements[1].succeed()
    found = [*app.runs(), *app.jobs(), *app.records(), *app.dag_runs("nightly")]
    texts = [text for each in found for text in shown_by(each)]
    texts += [app.explain(), *(app.why(name) for name in ("nightly", "nightly/load", "nightly/held"))]
    for refused in (
        lambda: app.run("nightly/none"),
        lambda: app.run("nihgtly/load"),
        lambda: app.pause("nightly/load"),
        lambda: app.run_now("nightly/load"),
        lambda: app.run("nightly/load", day=9),
        lambda: run.node("none"),
        lambda: run.rerun("none"),
    ):
        with pytest.raises((ApiRefused, AssertionError)) as raised:
            refused()
        texts += [str(raised.value), str(getattr(raised.value, "hint", ""))]
    assert [text for text in texts if INTERNAL.search(ID.sub("", text))] == []
    assert sum("nightly/load" in text for text in texts) > 5
