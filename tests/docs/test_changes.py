"""Plays the table of docs/lifecycle.md that says which changes keep what waits (L25): each field of a schedule, of a
workflow and of a DAG."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from chalicelib.core.definitions.app import App
from chalicelib.core.definitions.dag import Dag
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.flow.deploy import deploy
from tests.acceptance.words import Document, delay, event, on, partition, time, to_queue
from tests.acceptance.workflows.test_notices import tells
from tests.support.world import EMR, World, day, flights

PAGE = Path(__file__).parents[2] / "docs" / "lifecycle.md"
PAIR = on(partition(count=2))
SENT = to_queue(event("go"), constraints=[delay("1h")])
TIMES = to_queue(time("* * * * *"))
HALF = {"each": "12h", "format": "dt=%Y-%m-%d/hour=%H", "zone": "UTC"}
PERIOD = on({"type": "partition", "dataset": "halves", "of": "period"}, per="day", zone="UTC")
LISTED = on(partition(count=2), by=["region"], values={"region": ["eu", "us"]})
CALM = {"max_events": 1, "interval": "30m"}

# What waits, and another value of each field.
SCHEDULE: dict[str, tuple[Document, Any]] = {
    "description": (PAIR, "another"),
    "tags": (PAIR, {"team": "a"}),
    "owner": (PAIR, "ann"),
    "workflow": (PAIR, "join"),
    "constraints": (PAIR, [delay("1h")]),
    "properties": (PAIR, {"new": True}),
    "data": (SENT, {"new": True}),
    "content_type": (SENT | {"data": "a"}, "text/html"),
    "data_base64": (SENT, "YQ=="),
    "priority": (PAIR, 9),
    "timeout": (PAIR, "never"),
    "retries": (PAIR, {"attempts": 2, "delay": "1m"}),
    "deadline": (PAIR, {"end_within": "1h"}),
    "expected": (PAIR, "1h"),
    "notify": (PAIR, [tells("failed")]),
    "policy": (SENT, "calm"),
    "pool": (PAIR, "p"),
    "slots": (PAIR | {"pool": "p"}, 2),
    "resources": (PAIR, {"workers": 2}),
    "coalesce": (PAIR, False),
    "pause_after_failures": (PAIR, 3),
    "values": (LISTED, {"region": ["eu", "us", "apac"]}),
    "late": (PERIOD, "again"),
    "catch_up": (TIMES, "latest"),
    "when_done": (TIMES, "delete"),
    "spread": (TIMES | {"coalesce": False}, {"count": 2}),
    "ttl": (PAIR, "2d"),
    "trigger": (PAIR, partition(count=3)),
    "by": (PAIR, ["day"]),
    "per": (PERIOD, "month"),
    "incomplete": (PERIOD, {"after": "1h"}),
    "zone": (PAIR, "Europe/Paris"),
}
ZONED = [(PAIR, True), (TIMES, False)]
WORKFLOW: Document = {
    "description": "another",
    "tags": {"team": "a"},
    "owner": "ann",
    "target": {**EMR, "entry_point": "s3://code/other.py"},
    "properties": {"new": True},
    "priority": 9,
    "retries": {"attempts": 2, "delay": "1m"},
    "delivery": {"tries": 5},
    "timeout": "1h",
    "pool": "p",
    "slots": 2,
    "resources": {"workers": 2},
    "deadline": {"end_within": "1h"},
    "expected": "1h",
    "notify": [tells("failed")],
    "approval": {"type": "approval", "role": "boss"},
    "reads": ["weather"],
    "produces": ["weather"],
}
A, B = ({"workflow": name} for name in ("clean", "join"))
GRAPH = {"enabled": True, "trigger": partition(count=2), "nodes": {"a": A}}
GRAPH_OF_PERIODS = GRAPH | {field: PERIOD[field] for field in ("trigger", "per", "zone")}
DAG: Document = {
    "description": "another",
    "tags": {"team": "a"},
    "owner": "ann",
    "nodes": {"a": A, "b": B},
    "edges": [{"from": "a", "to": "b"}],
    "catch_up": "latest",
    "timeout": "never",
    "late": "again",
    "trigger": partition(count=3),
    "by": ["day"],
    "per": "month",
    "incomplete": {"after": "1h"},
    "zone": "Europe/Paris",
}


def table() -> dict[str, str]:
    """What the page says of each field of a schedule."""
    text = PAGE.read_text().partition("| a change of | what has gathered and what waits |")[2].partition("\n\n")[0]
    rows = [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("| `")]
    return {
        field: says.strip() for fields, says in rows if ":" not in fields for field in re.findall("`(\\w+)`", fields)
    }


def waiting(schedule: Document, **more: Any) -> World:
    """A world in which this schedule, and a DAG, have something that waits."""
    world = World()
    document = flights({"s": schedule}) | {"pools": {"p": {"size": 4}}, "policies": {"calm": CALM}} | more
    halves = {"bucket": "lake", "prefix": "raw/halves/", "keys": ["dt", "hour"], "period": HALF}
    document["datasets"] = {**document["datasets"], "halves": halves}
    world.deploy(document)
    world.upload(day(1))
    world.upload("raw/halves/dt=2026-03-01/hour=00/part-0.parquet", size=5)
    world.post("go")
    world.tick()
    world.settle()
    world.clock.pass_by("1s")
    return world


def kept(world: World, name: str, change: Any) -> bool:
    """Whether all jobs of a schedule wait on after a change. If not, none of them does, and each is on record."""
    before = [job.job_id for job in world.jobs(name) if not job.closed]
    assert before, "something waits"
    change()
    after = [job.job_id for job in world.jobs(name) if not job.closed]
    if set(before) <= set(after):
        assert world.records(name) == []
        return True
    assert not set(before) & set(after)
    return False


@pytest.mark.parametrize("field", list(SCHEDULE))
def test_l25_the_page_says_which_fields_keep_what_waits(field: str) -> None:
    before, value = SCHEDULE[field]
    world = waiting(before)
    stays = kept(world, "s", lambda: world.put("s", {**before, field: value}))
    assert stays is (not table()[field].startswith("is dropped.") and table()[field] != "is dropped")


def test_l25_the_page_has_each_field_of_a_schedule() -> None:
    stored = set(Schedule.model_fields) - {"data_uri", "each"}  # a node has it, whose graph never changes
    assert stored == set(SCHEDULE) == set(table()) - {"nodes", "edges"}
    assert set(Workflow.model_fields) == set(WORKFLOW)
    assert set(Dag.model_fields) == set(DAG)


@pytest.mark.parametrize(("before", "stays"), ZONED)
def test_l25_a_zone_that_the_trigger_takes_begins_again(before: Document, stays: bool) -> None:
    world = waiting(before)
    assert kept(world, "s", lambda: world.put("s", {**before, "zone": "Europe/Paris"})) is stays


@pytest.mark.parametrize("field", list(WORKFLOW))
def test_l25_a_changed_workflow_keeps_what_waits(field: str) -> None:
    world = waiting(PAIR)
    changed = flights({"s": PAIR}, clean={"target": EMR, field: WORKFLOW[field]}) | {"pools": {"p": {"size": 4}}}
    assert kept(world, "s", lambda: deployed(world, changed))


@pytest.mark.parametrize("field", list(DAG))
def test_l25_a_changed_dag_keeps_what_its_start_has_unless(field: str) -> None:
    before = GRAPH_OF_PERIODS if field in ("per", "incomplete", "late") else GRAPH
    world = waiting(PAIR, dags={"d": before})
    changed = before | ({"nodes": DAG["nodes"]} if field == "edges" else {}) | {field: DAG[field]}
    stays = kept(world, "d~", lambda: deployed(world, flights({"s": PAIR}) | {"dags": {"d": changed}}))
    assert stays is (table()[field] != "is dropped")


@pytest.mark.parametrize("group", ["datasets", "policies", "pools"])
def test_l25_a_changed_part_of_a_namespace_keeps_what_waits(group: str) -> None:
    world = waiting(PAIR)
    document = flights({"s": PAIR}) | {"policies": {"calm": CALM}, "pools": {"p": {"size": 4}}}
    name = {"datasets": "flights", "policies": "calm", "pools": "p"}[group]
    part = {**document[group], name: {**document[group][name], "description": "another"}}
    assert kept(world, "s", lambda: deployed(world, document | {group: part}))


@pytest.mark.parametrize("enabled", [False, True])
def test_l25_enabling_and_disabling_drop_what_waits(enabled: bool) -> None:
    world = waiting(PAIR)
    if enabled:
        world.disable("s")
        world.run_now("s")
    assert not kept(world, "s", lambda: world.put("s", {**PAIR, "enabled": enabled}))


def deployed(world: World, document: Document) -> None:
    deploy.deploy(world.ports, "demo", "flights", App.model_validate(document), "ann")
