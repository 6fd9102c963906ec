"""The order of jobs (W2, W14): by priority, own or inherited, and at equal priority by the latest start."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chalicelib.core.instants import HOUR, MINUTE
from chalicelib.core.jobs import deadlines
from tests.acceptance.words import day
from tests.core.builders import NOON, job, schedule, workflow
from tests.support.answers import explain
from tests.support.schedules import after, at_most, partitions
from tests.support.world import EMR, World, flights

GROUP = {"type": "concurrency", "max": 1, "group": "g", "on_unmet": "wait"}


def grouped(workflow: str, number: int, **fields: Any) -> dict[str, Any]:
    """One run of the group at a time. Each schedule waits for a custom event that no other schedule waits for."""
    constraints = [GROUP, *fields.pop("constraints", [])]
    trigger = {"type": "event", "event": f"go.{number}"}
    return {"workflow": workflow, "enabled": True, "trigger": trigger, "constraints": constraints} | fields


def order_of(world: World, *names: str) -> list[str]:
    """Let one run after the other end. Returns the order in which these schedules started."""
    for _ in range(len(names) + 2):
        world.finish()
        world.settle()
    runs = [(run.claimed_at, index, name) for name in names for index, run in enumerate(world.runs(name))]
    calls = [run.name.split(".")[2] for run in world.targets.emr.runs.values()]
    assert len(runs) == len(names)
    return [name for name in calls if name in names]


def queue_up(schedules: dict[str, Any], events: int, **workflows: Any) -> World:
    """A run of the group is active, and then the events come in this order."""
    world = World(start_burst=100)
    first = {"first": grouped("clean", 0)}
    world.deploy(flights({**first, **schedules}, **{name: {"target": EMR} | made for name, made in workflows.items()}))
    for number in range(events + 1):
        world.post(f"go.{number}")
        world.settle()
        world.clock.pass_by("1s")
    return world


def test_w2_upstreams_inherit_priority_through_any_depth() -> None:
    world = queue_up(
        {
            "plain": grouped("plain", 1, priority=6),
            "up": grouped("up", 2, priority=2),
            "middle": after("up", "middle", priority=1),
            "report": after("middle", "join", priority=9),
        },
        2,
        plain={},
        up={},
        middle={},
    )
    [waiting] = world.jobs("up")
    assert waiting.reason.text.endswith("; priority 9, inherited from demo.flights.report")
    assert explain.why_job(world.ports, waiting)["why"].endswith(
        "priority 9, inherited from demo.flights.report; position 1 of 2 in its queue"
    )
    assert order_of(world, "plain", "up") == ["up", "plain"]


def test_w2_freshness_constraint_passes_priority_to_its_workflow() -> None:
    fresh = [{"type": "fresh", "workflows": ["up"], "within": "1h", "on_unmet": "wait"}]
    world = queue_up(
        {
            "plain": grouped("plain", 1, priority=6),
            "up": grouped("up", 2),
            "urgent": partitions(workflow="join", constraints=fresh, priority=8),
        },
        2,
        plain={},
        up={},
    )
    assert world.jobs("up")[0].inherited.text == "priority 8, inherited from demo.flights.urgent"
    assert order_of(world, "plain", "up") == ["up", "plain"]


def test_w2_waiting_for_one_schedule_passes_priority_to_its_jobs() -> None:
    """As for the nodes of a DAG: other schedules of the same workflow inherit no priority."""
    leaf = {"type": "program_status", "workflow": "up", "schedule": "mine"}
    world = queue_up(
        {
            "other": grouped("up", 1),
            "mine": grouped("up", 2),
            "report": {"workflow": "join", "enabled": True, "trigger": leaf, "priority": 9},
        },
        2,
        up={},
    )
    assert world.jobs("other")[0].inherited.text == ""
    assert world.jobs("mine")[0].inherited.text == "priority 9, inherited from demo.flights.report"
    assert order_of(world, "other", "mine") == ["mine", "other"]


def test_w2_failure_listeners_and_disabled_schedules_pass_none() -> None:
    alarm = after("up", "join", "FAILED", priority=9)
    off = after("up", "join", priority=9, enabled=False)
    world = queue_up(
        {"plain": grouped("plain", 1, priority=6), "up": grouped("up", 2), "alarm": alarm, "off": off},
        2,
        plain={},
        up={},
    )
    assert world.jobs("up")[0].inherited.text == ""
    assert order_of(world, "plain", "up") == ["plain", "up"]


def test_w2_enabling_an_urgent_downstream_reranks_waiting_jobs() -> None:
    one = {"type": "concurrency", "max": 1, "on_unmet": "wait"}
    world = World(start_burst=100)
    slow, fast = (partitions(workflow="clean", dataset=dataset, by=["day"], constraints=[one])
                  for dataset in ("flights", "weather"))  # fmt: skip
    world.deploy(flights({"slow": slow, "fast": {**fast, "priority": 6}}))
    for number in (1, 2):
        world.upload(day(number))
        world.pass_by("1s")
    world.upload(day(1, "weather", "x.csv"))
    world.settle()
    world.put("report", after("clean", "join", priority=9))
    world.settle()
    [waiting] = world.jobs("slow")
    assert (waiting.inherited.text, str(waiting.rank)[0]) == ("priority 9, inherited from demo.flights.report", "0")
    assert world.limit_state("workflow:demo.flights.clean").waiters == 2
    world.finish()
    world.settle()
    assert (len(world.runs("slow")), len(world.runs("fast"))) == (2, 0), (
        "both inherit the priority, and the older starts first"
    )


def test_w2_a_dataset_passes_priority_to_its_waiting_jobs() -> None:
    world = World(start_burst=100)
    one = at_most(1)
    document = flights(
        {
            "low": partitions(by=["day"], **one),
            "high": partitions(dataset="weather", by=["day"], **one),
        }
    )
    document["datasets"]["weather"]["priority"] = 8
    world.deploy(document)
    for number in (1, 2):
        world.upload(day(number))
        world.settle()
    world.upload(day(1, "weather", "x.csv"))
    world.settle()
    assert world.jobs("high")[0].inherited.text == "priority 8, inherited from dataset demo.weather"
    world.finish()
    world.settle()
    assert (len(world.runs("low")), len(world.runs("high"))) == (1, 1)
    assert world.runs("high")[0].priority == 8


def test_w14_among_equals_the_earliest_latest_start_goes_first() -> None:
    world = queue_up(
        {
            "none": grouped("a", 1),
            "late": grouped("b", 2, deadline={"start_within": "3h"}),
            "long": grouped("c", 3, deadline={"end_within": "4h"}, expected="2h"),
            "urgent": grouped("d", 4, priority=8),
        },
        4,
        a={},
        b={},
        c={},
        d={},
    )
    assert order_of(world, "none", "late", "long", "urgent") == ["urgent", "long", "late", "none"]


@pytest.mark.parametrize(
    ("fields", "latest"),
    [
        ({}, None),
        ({"deadline": {"start_within": "1h"}}, NOON + HOUR),
        ({"deadline": {"end_within": "1h"}, "expected": "20m"}, NOON + 40 * MINUTE),
        ({"deadline": {"end_within": "1h"}}, NOON + HOUR),
        ({"deadline": {"start_within": "30m", "end_within": "1h"}, "expected": "20m"}, NOON + 30 * MINUTE),
        ({"deadline": {"start_within": "50m", "end_within": "1h"}, "expected": "20m"}, NOON + 40 * MINUTE),
    ],
)
def test_w14_the_latest_start_meets_both_deadlines(fields: dict[str, Any], latest: int | None) -> None:
    waiting = job(created_at=NOON, accepted_at=NOON)
    assert deadlines.latest_start(waiting, schedule(**fields), workflow()) == latest
    assert deadlines.latest_start(waiting, schedule(), workflow(**fields)) == latest, "the workflow's word, if none"


def test_w14_a_deadline_counts_from_the_nominal_instant_or_data() -> None:
    late = job("fire", nominal_at=NOON, due_at=NOON + MINUTE, created_at=NOON + MINUTE, accepted_at=NOON + HOUR)
    by_clock, by_data = ({"start_within": "1h", "from": each} for each in ("nominal", "data"))
    assert deadlines.latest_start(late, schedule(deadline=by_clock), workflow()) == NOON + HOUR
    assert deadlines.latest_start(late, schedule(deadline=by_data), workflow()) == NOON + 2 * HOUR


edges = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(lambda edge: edge[0] < edge[1]), max_size=10)


@given(priorities=st.lists(st.integers(0, 9), min_size=6, max_size=6), edges=edges)
@settings(max_examples=40, deadline=None)
def test_w2_in_any_graph_jobs_are_as_urgent_as_their_downstreams(
    priorities: list[int], edges: list[tuple[int, int]]
) -> None:
    """Workflow n feeds workflow m > n. All of them queue behind one run, ordered by the highest priority of themselves
    and their downstreams.
    """
    schedules = {f"s{number}": grouped(f"w{number}", number + 1, priority=priorities[number]) for number in range(6)}
    for number, (up, down) in enumerate(edges):
        schedules[f"e{number}"] = after(f"w{up}", f"w{down}", priority=priorities[down])
    world = queue_up(schedules, 6, **{f"w{number}": {} for number in range(6)})
    worth = list(priorities)
    for up, down in sorted(set(edges), reverse=True):  # from the leaves up: the priority of ``down`` is final
        worth[up] = max(worth[up], worth[down], priorities[down])
    waiting = [world.jobs(f"s{number}")[0] for number in range(6)]
    assert [9 - int(str(each.rank)[0]) for each in waiting] == worth
